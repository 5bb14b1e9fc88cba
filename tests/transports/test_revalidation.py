"""`ETag` and `If-None-Match` of the history and of the list: who gets 304, and who never does."""

import pytest
from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware

from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ChatClient, call
from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange
from support.pages import Clock, Till, page

PATHS = ["/c1/messages", ""]
both = pytest.mark.parametrize("path", PATHS, ids=["history", "list"])
ORIGIN = "https://app.example"


async def app_with_chat(**options: object) -> FastAPI:
    app = app_of(bridge_with(*["Hello."] * 5, **options))
    await ChatClient(app, chat_id="c1").send("hi")
    return app


async def ask(app: FastAPI, path: str, known: str | None = None, method: str = "GET", **headers: str) -> Exchange:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    given |= {"if-none-match": known} if known is not None else {}
    return await exchange(app, method=method, path=f"/api/chat{path}", headers={"x-user": "ann", **given})


@both
async def test_a_client_may_keep_it_and_asks_each_time(path: str) -> None:
    app = await app_with_chat()
    first = await ask(app, path)
    assert (first.status, first.headers["cache-control"]) == (200, "private, no-cache")
    again = await ask(app, path, first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert (again.headers["cache-control"], again.headers["etag"]) == ("private, no-cache", first.headers["etag"])
    assert "content-length" not in again.headers
    await ChatClient(app, chat_id="c1").send("more")
    assert (await ask(app, path, first.headers["etag"])).status == 200


@both
@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("{tag}", 304),
        ("{strong}", 304),
        ('"other", {tag}', 304),
        ('{tag},"other"', 304),
        ('W/"other",{strong} , "more"', 304),
        ("*", 304),
        (" * ", 304),
        ('"other"', 200),
        ("{bare}", 200),
        ('"*"', 200),
        ("", 200),
        (",,", 200),
        ('"{bare}x"', 200),
    ],
)
async def test_the_tag_is_found_in_every_form(path: str, form: str, status: int) -> None:
    app = await app_with_chat()
    tag = (await ask(app, path)).headers["etag"]
    assert tag.startswith('W/"')
    known = form.format(tag=tag, strong=tag.removeprefix("W/"), bare=tag.removeprefix("W/").strip('"'))
    for method in ("GET", "HEAD"):
        assert (await ask(app, path, known, method)).status == status


@both
async def test_head_has_the_headers_of_get(path: str) -> None:
    app = await app_with_chat()
    got, head = await ask(app, path), await ask(app, path, method="HEAD")
    assert (head.status, head.body, head.headers) == (200, b"", got.headers)


@pytest.mark.parametrize("known", [None, "*", "etag"])
async def test_what_is_not_the_callers_is_not_found_whatever_the_client_has(known: str | None) -> None:
    app = await app_with_chat()
    known = (await ask(app, PATHS[0])).headers["etag"] if known == "etag" else known
    missing = await ask(app, "/c9/messages", known)
    for refused in (missing, await ask(app, PATHS[0], known, x_user="bob")):
        assert (refused.status, refused.headers["cache-control"]) == (404, "private, no-store")
        assert "etag" not in refused.headers
        assert refused.body == missing.body
    assert (await ask(app, PATHS[0], known, x_user="")).status == 401
    await ask(app, "/c1", method="DELETE")
    assert (await ask(app, PATHS[0], known)).status == 404


async def test_two_users_have_lists_of_their_own() -> None:
    """Also if both are empty."""
    app = await app_with_chat()
    bobs, eves = await ask(app, "", x_user="bob"), await ask(app, "", x_user="eve")
    assert bobs.body == eves.body == b"[]"
    assert bobs.headers["etag"] != eves.headers["etag"]


@both
async def test_a_page_of_another_origin_may_read_the_tag_and_send_it(path: str) -> None:
    app = await app_with_chat(allowed_origins=[ORIGIN])
    tag = (await ask(app, path)).headers["etag"]
    for known, status in ((None, 200), (tag, 304)):
        got = await ask(app, path, known, origin=ORIGIN)
        assert (got.status, got.headers["access-control-allow-origin"]) == (status, ORIGIN)
        assert "etag" in got.headers["access-control-expose-headers"]
        assert "Origin" in got.headers["vary"].split(", ")
    preflight = await exchange(app, method="OPTIONS", path=f"/api/chat{path}", headers={"origin": ORIGIN})
    assert "if-none-match" in preflight.headers["access-control-allow-headers"].split(", ")


async def test_a_cache_keeps_a_history_for_each_version_of_the_client() -> None:
    for options, vary in (({}, "x-ai-sdk-version"), ({"allowed_origins": [ORIGIN]}, "x-ai-sdk-version, Origin")):
        app = await app_with_chat(**options)
        first = await ask(app, PATHS[0], x_ai_sdk_version="7")
        assert first.headers["vary"] == vary
        assert (await ask(app, PATHS[0], first.headers["etag"], x_ai_sdk_version="6")).status == 200


@both
async def test_an_application_may_compress_it(path: str) -> None:
    app = app_of(bridge_with("Hello."))
    app.add_middleware(GZipMiddleware, minimum_size=1)
    await ChatClient(app, chat_id="c1").send("hi")
    first = await ask(app, path, accept_encoding="gzip")
    assert first.headers["content-encoding"] == "gzip"
    assert (await ask(app, path, first.headers["etag"], accept_encoding="gzip")).status == 304


async def test_the_list_changes_when_a_deadline_passes() -> None:
    clock = Clock()
    async with page([call("pay", amount=5)], tools=(Till().gated,), record=MemoryStore(clock=clock)) as at:
        await at.say("Pay.")
        tag = (await at.chat.request_root("GET")).headers["etag"]
        assert (await at.chat.request_root("GET", headers={"if-none-match": tag})).status_code == 304
        clock.now += 601
        late = await at.chat.request_root("GET", headers={"if-none-match": tag})
        assert (late.status_code, late.json()[0]["waiting"]) == (200, False)
