"""The routes: what is where, and who may fetch which file."""

import asyncio
from typing import Any

import pytest
from fastapi import Depends, FastAPI, HTTPException
from google.genai import types

from adk_stream_protocol.testing import ChatClient, call
from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange


def app_with_artifact(name: str, media_type: str) -> FastAPI:
    async def save(tool_context: Any) -> dict[str, str]:
        """Saves."""
        await tool_context.save_artifact(name, types.Part.from_bytes(data=b"<svg>", mime_type=media_type))
        return {}

    return app_of(bridge_with([call("save")], "Saved.", tools=(save,)))


async def fetch(app: FastAPI, path: str, query: str = "", user: str = "ann") -> Exchange:
    return await exchange(app, method="GET", path=f"/api/chat/{path}", query=query, headers={"x-user": user})


@pytest.mark.parametrize(
    ("name", "media_type", "shown"),
    [
        ("cat.png", "image/png", "inline; filename*=UTF-8''cat.png"),
        ("voice.wav", "audio/wav", "inline; filename*=UTF-8''voice.wav"),
        ("page.html", "text/html", "attachment; filename*=UTF-8''page.html"),
        ("pic.svg", "image/svg+xml", "attachment; filename*=UTF-8''pic.svg"),
        ('a"b.bin', "application/octet-stream", "attachment; filename*=UTF-8''a%22b.bin"),
    ],
)
async def test_a_file_is_served_with_its_type_and_may_not_act(name: str, media_type: str, shown: str) -> None:
    app = app_with_artifact(name, media_type)
    await ChatClient(app, chat_id="c1").send("save")
    file = await fetch(app, f"c1/files/{name}")
    assert (file.status, file.body) == (200, b"<svg>")
    assert file.headers["content-type"].split(";")[0] == media_type
    assert file.headers["content-disposition"] == shown
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_a_version_may_be_named() -> None:
    app = app_with_artifact("cat.png", "image/png")
    await ChatClient(app, chat_id="c1").send("save")
    statuses = [(await fetch(app, "c1/files/cat.png", f"version={v}")).status for v in ("0", "1", "-1", "x", "²")]
    assert statuses == [200, 404, 404, 404, 404]


async def test_a_file_of_another_user_does_not_exist() -> None:
    app = app_with_artifact("cat.png", "image/png")
    await ChatClient(app, chat_id="c1").send("save")
    foreign = await fetch(app, "c1/files/cat.png", user="bob")
    missing = await fetch(app, "c9/files/none.png", user="bob")
    assert foreign.status == 404
    assert (foreign.body, foreign.headers) == (missing.body, missing.headers)


async def test_nobody_fetches_nothing() -> None:
    app = app_of(bridge_with("x", user_id=lambda _: None))
    assert (await fetch(app, "c1/files/cat.png")).status == 401


async def test_dependencies_of_the_application_guard_the_routes() -> None:
    def locked() -> None:
        raise HTTPException(403)

    app = FastAPI()
    app.include_router(bridge_with("x").router("/api/chat"), dependencies=[Depends(locked)])
    assert (await exchange(app, body=b"{}")).status == 403
    assert (await fetch(app, "c1/files/cat.png")).status == 403


async def test_every_route_answers_a_preflight_and_an_unknown_one_is_not_found() -> None:
    app = app_of(bridge_with("x"))
    for path in ("", "/c1", "/c1/stream", "/c1/stop", "/c1/messages", "/c1/files/a/b.png"):
        assert (await exchange(app, method="OPTIONS", path=f"/api/chat{path}")).status == 204
    assert (await exchange(app, method="GET", path="/api/chat/c1/nonsense")).status == 404


# -- where the routes are ---------------------------------------------------------------------------------------------

PATHS = [("POST", ""), ("GET", ""), ("HEAD", ""), ("OPTIONS", ""), ("GET", "/c1/messages"), ("DELETE", "/c1")]


def included(**options: Any) -> FastAPI:
    app = FastAPI()
    app.include_router(bridge_with("Hello.", user_id=lambda _: None).router(), **options)
    return app


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_without_a_prefix_the_routes_are_at_the_root_or_below_that_of_include_router(
    method: str, path: str
) -> None:
    expected = 204 if method == "OPTIONS" else 401
    at_root = await exchange(included(), method=method, path=path or "/")
    below = await exchange(included(prefix="/api/chat"), method=method, path=f"/api/chat{path}")
    assert (at_root.status, below.status) == (expected, expected)
    assert (await exchange(included(prefix="/api/chat"), method="GET", path="/")).status == 404


@pytest.mark.parametrize(("options", "root"), [({}, ""), ({"prefix": "/api/chat"}, "/api/chat")])
async def test_without_a_prefix_a_chat_and_its_files_are_found(options: dict[str, Any], root: str) -> None:
    async def save(tool_context: Any) -> dict[str, str]:
        """Saves."""
        await tool_context.save_artifact("a.txt", types.Part.from_bytes(data=b"hi", mime_type="text/plain"))
        return {}

    app = FastAPI()
    app.include_router(bridge_with([call("save")], "Saved.", tools=(save,)).router(), **options)
    answer = await ChatClient(app, root or "/", chat_id="c1").send("save")
    (file,) = answer.of_type("file")
    assert file["url"] == f"{root}/c1/files/a.txt?version=0"
    assert (await exchange(app, method="GET", path=f"{root}/c1/files/a.txt")).body == b"hi"
    history = await exchange(app, method="GET", path=f"{root}/c1/messages")
    assert f'"url":"{root}/c1/files/a.txt?version=0"'.encode() in history.body
    assert (await exchange(app, method="GET", path=root or "/")).body.startswith(b'[{"id":"c1"')


# -- what caches may keep ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/approvals", 200),
        ("GET", "/c1/stream", 204),
        ("HEAD", "/c1/stream", 204),
        ("POST", "/c1/stop", 204),
        ("GET", "/c9/messages", 404),
        ("GET", "/c1/files/none.png", 404),
        ("POST", "", 400),
        ("DELETE", "/c1", 204),
    ],
)
async def test_nothing_of_a_chat_is_kept_by_caches(method: str, path: str, status: int) -> None:
    app = app_of(bridge_with("Hello."))
    await ChatClient(app, chat_id="c1").send("hi")
    answer = await exchange(app, method=method, path=f"/api/chat{path}", body=b"{}")
    assert (answer.status, answer.headers["cache-control"]) == (status, "private, no-store")


# -- HEAD -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/c1/messages", "/c9/messages", "/c1/files/cat.png", "/c1/stream"])
async def test_head_has_the_headers_that_get_would_have_sent(path: str) -> None:
    app = app_with_artifact("cat.png", "image/png")
    await ChatClient(app, chat_id="c1").send("save")
    got = await exchange(app, method="GET", path=f"/api/chat{path}")
    head = await exchange(app, method="HEAD", path=f"/api/chat{path}")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")


async def test_head_of_a_running_answer_comes_back_at_once_and_does_not_count_as_a_reader() -> None:
    goes_on, runs = asyncio.Event(), asyncio.Event()

    async def slow() -> dict[str, str]:
        """Slow."""
        runs.set()
        await goes_on.wait()
        return {}

    bridge = bridge_with([call("slow")], "Done.", tools=(slow,))
    app = app_of(bridge)
    turn = asyncio.create_task(ChatClient(app, chat_id="c1").send("go"))
    await runs.wait()
    head = await asyncio.wait_for(exchange(app, method="HEAD", path="/api/chat/c1/stream"), 5)
    assert (head.status, head.body, "content-length" in head.headers) == (200, b"", False)
    assert head.headers["content-type"] == "text/event-stream"
    assert head.headers["cache-control"] == "no-cache, no-transform"
    goes_on.set()
    assert (await turn).text == "Done."


# -- the lifespan -----------------------------------------------------------------------------------------------------


async def test_a_mounted_application_whose_lifespan_nobody_runs_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    outer = FastAPI()
    outer.mount("/assistant", app_of(bridge_with("One.", "Two.")))
    async with outer.router.lifespan_context(outer):
        for _ in range(2):
            assert (await ChatClient(outer, path="/assistant/api/chat").send("hi")).status == 200
    (line,) = [record.message for record in caplog.records if record.name.endswith("transports.router")]
    assert "is mounted at /assistant" in line
    assert "Include bridge.router(...) in the outer application" in line


@pytest.mark.parametrize("is_mounted", [True, False])
async def test_an_application_whose_lifespan_runs_is_not_told(
    is_mounted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(bridge_with("One."))
    outer = FastAPI()
    outer.mount("/assistant", app)
    client = ChatClient(outer, path="/assistant/api/chat") if is_mounted else ChatClient(app)
    async with app.router.lifespan_context(app):
        assert (await client.send("hi")).status == 200
    assert [record for record in caplog.records if record.name.endswith("transports.router")] == []


async def test_a_test_that_runs_no_lifespan_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    await ChatClient(app_of(bridge_with("One."))).send("hi")
    assert [record for record in caplog.records if record.name.endswith("transports.router")] == []
