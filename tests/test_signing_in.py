"""The ways to sign in of docs/howto/signing-in.md let their users in, and nobody else."""

import time
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ChatClient, ScriptedLiveModel
from support.documents import ROOT, run_page
from support.live_client import Closed, live_socket
from support.sessions import signed_in

PAGE = ROOT / "docs" / "howto" / "signing-in.md"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SESSION_KEY", raising=False)
    names = run_page(PAGE)
    agent: LlmAgent = names["root_agent"]
    agent.model = ScriptedLiveModel(["Hello."] * 4, family="2.5")
    return names


def token(key: str, *, audience: str = "chat", lasts_s: float = 60, user: str = "ann") -> str:
    return jwt.encode({"sub": user, "aud": audience, "exp": time.time() + lasts_s}, key, algorithm="HS256")


async def is_let_in(app: FastAPI, headers: dict[str, str]) -> bool:
    answer = await ChatClient(app, headers=headers).send("hi")
    assert (answer.status, answer.text) in ((200, "Hello."), (401, "")), answer
    return answer.status == 200


async def is_let_in_live(app: FastAPI, headers: dict[str, str], query: str = "") -> bool:
    async with live_socket(app, headers=headers, query=query) as client:
        try:
            return (await client.say("hi")).text == "Hello."
        except Closed as closed:
            return closed.code != 1008


async def test_a_session_cookie(page: dict[str, Any]) -> None:
    app = page["with_session"]
    for is_in in (is_let_in, is_let_in_live):
        assert await is_in(app, signed_in(key=page["KEY"]))
        assert not await is_in(app, signed_in(key="another key"))
        assert not await is_in(app, {"x-user": "ann", "cookie": "user=ann"})


async def test_a_jwt_in_a_cookie(page: dict[str, Any]) -> None:
    app, key = page["with_cookie"], page["KEY"]
    for is_in in (is_let_in, is_let_in_live):
        assert await is_in(app, {"cookie": f"token={token(key)}"})
        unsigned = jwt.encode({"sub": "ann", "aud": "chat"}, "", algorithm="none")
        for bad in (token("x" * 32), token(key, lasts_s=-1), token(key, audience="other"), unsigned):
            assert not await is_in(app, {"cookie": f"token={bad}"})


async def test_bearer_tokens_and_tickets(page: dict[str, Any]) -> None:
    app, key = page["with_tokens"], page["KEY"]
    bearer = {"authorization": f"Bearer {token(key)}"}
    assert await is_let_in(app, bearer)
    assert not await is_let_in(app, {"authorization": f"Bearer {token(key, audience='socket')}"})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        ticket = (await http.post("/api/ticket", headers=bearer)).json()
    assert await is_let_in_live(app, {}, f"ticket={ticket}")
    assert not await is_let_in_live(app, {}, f"ticket={token(key)}")
    assert not await is_let_in_live(app, bearer)


async def test_a_page_on_another_site(page: dict[str, Any]) -> None:
    app = page["with_other_page"]
    ours, theirs = {"origin": "https://app.example.com"}, {"origin": "https://evil.example"}
    ann = signed_in(key=page["KEY"])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://api.example.com") as http:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        allowed = await http.options("/api/chat", headers={**ours, **asked})
        assert (allowed.status_code, allowed.headers["access-control-allow-credentials"]) == (200, "true")
        assert "access-control-allow-origin" not in (await http.options("/api/chat", headers=theirs)).headers
        stopped = await http.post("/api/chat/c1/stop", headers={**ours, **ann})
        assert (stopped.status_code, stopped.headers.get_list("access-control-allow-origin")) == (
            204,
            ["https://app.example.com"],
        )
        assert (await http.post("/api/chat/c1/stop", headers={**theirs, **ann})).status_code == 403
    assert await is_let_in_live(app, {**ours, **ann})
    assert not await is_let_in_live(app, {**theirs, **ann})


async def test_cors_middleware_allows_and_exposes_what_the_bridge_does(page: dict[str, Any]) -> None:
    """It answers in front of the bridge's routes, too."""
    origin = "https://app.example.com"
    bare = FastAPI()
    bridge = ChatBridge(page["root_agent"], user_id=page["user_of_session"], allowed_origins=[origin])
    bare.include_router(bridge.router("/api/chat"))

    async def preflight(app: FastAPI, method: str, header: str) -> httpx.Response:
        asked = {"access-control-request-method": method, "access-control-request-headers": header}
        return await requested(app, "OPTIONS", {"origin": origin, **asked})

    allowed = (await preflight(bare, "POST", "content-type")).headers
    for method in named(allowed, "allow-methods"):
        for header in named(allowed, "allow-headers"):
            answer = await preflight(page["with_other_page"], method, header)
            assert answer.is_success, (method, header, answer.text)

    headers = {"origin": origin, **signed_in(key=page["KEY"])}
    shown = [
        named((await requested(app, "GET", headers)).headers, "expose-headers")
        for app in (bare, page["with_other_page"])
    ]
    assert {"x-adk-running", "retry-after", "etag"} <= shown[0] <= shown[1]


async def requested(app: FastAPI, method: str, headers: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://api.example.com") as http:
        return await http.request(method, "/api/chat", headers=headers)


def named(headers: httpx.Headers, field: str) -> set[str]:
    return set(headers[f"access-control-{field}"].split(", "))
