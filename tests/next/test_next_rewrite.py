"""The files of docs/howto/nextjs.md, built and started by a real Next.js (`next build`, `next start`): streams arrive
word by word, cookies and WebSockets go through, and the page shows the history."""

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import httpx
import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from adk_stream_protocol.testing import text
from support.documents import ROOT, blocks_of, run_page
from support.live_server import serving

HERE = Path(__file__).parent
PAGE = ROOT / "docs" / "howto" / "nextjs.md"
NEXT = HERE / "node_modules" / "next" / "dist" / "bin" / "next"
STARTING_S = 60


class PausingModel(BaseLlm):
    """Says its last words only after the first ones have come to the client."""

    model: str = "pausing"
    _go_on: Event = PrivateAttr(default_factory=Event)

    def go_on(self) -> None:
        self._go_on.set()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[text("Once ")]), partial=True)
        assert await asyncio.to_thread(self._go_on.wait, 15), "the first words were held back"
        self._go_on.clear()
        yield LlmResponse(content=types.Content(role="model", parts=[text("upon a time.")]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[text("Once upon a time.")]), partial=False)


@contextmanager
def next_server(chat_origin: str, port: int) -> Generator[str]:
    """The rewrites are written down by the build, and so is the address of the chat API."""
    environment = {**os.environ, "CHAT_ORIGIN": chat_origin, "NEXT_TELEMETRY_DISABLED": "1"}
    built = subprocess.run(
        ["node", NEXT, "build"], cwd=HERE, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    server = subprocess.Popen(
        ["node", NEXT, "start", "--hostname", "127.0.0.1", "--port", str(port)],
        cwd=HERE,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        origin, deadline = f"http://127.0.0.1:{port}", time.monotonic() + STARTING_S
        while not _answers(origin):
            assert server.poll() is None, "Next.js has ended"
            assert time.monotonic() < deadline, "Next.js does not answer"
            time.sleep(0.05)
        yield origin
    finally:
        server.terminate()
        server.wait(timeout=10)


def _answers(origin: str) -> bool:
    try:
        return httpx.get(f"{origin}/health").text == "ready"
    except httpx.HTTPError:
        return False


def test_the_files_here_are_those_of_the_page() -> None:
    files = {block.file: block.code for block in blocks_of(PAGE, "ts", "tsx") if block.file}
    assert len(files) == 4
    for name, code in files.items():
        assert (HERE / name).read_text() == code, name


def test_streams_cookies_and_sockets_go_through_the_rewrite(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.setenv("PAGE_ORIGIN", f"http://127.0.0.1:{port}")
    page, model = run_page(PAGE), PausingModel()
    page["root_agent"].model = model
    with serving(page["app"], ws="websockets-sansio") as chat_origin, next_server(chat_origin, port) as origin:
        cold, *warm = asyncio.run(_talk(origin, model))
    with capsys.disabled():
        print(
            f"\nfirst words through `next start`: {_ms(cold)} in new processes, then {', '.join(map(_ms, warm))}",
            end=" ",
        )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


async def _talk(origin: str, model: PausingModel) -> list[float]:
    # As a browser sends it. Next.js asks the server behind it under another name.
    headers = {"accept-encoding": "gzip, deflate, br", "origin": origin, "sec-fetch-site": "same-origin"}
    async with httpx.AsyncClient(base_url=origin, timeout=20, headers=headers, trust_env=False) as http:
        assert (await http.get("/api/chat")).status_code == 401
        assert "Sign in</button>" in (await http.get("/chat/c1")).text
        assert (await http.post("/api/login", json={"name": "ann"})).json() == "ann"
        took_s = [await _turn(http, model, chat_id) for chat_id in ("c1", "c2", "c3")]
        assert (await http.post("/api/chat/c1/stop")).status_code == 204
        assert (await http.get("/api/chat/c1/messages")).headers["cache-control"] == "private, no-cache"
        assert "Once upon a time." in (await http.get("/chat/c1")).text
        cookie = f"session={http.cookies['session']}"
    await _open_socket(origin, origin, cookie)
    with pytest.raises(InvalidStatus, match="403"):
        await _open_socket(origin, "http://evil.example", cookie)
    return took_s


async def _open_socket(origin: str, page: str, cookie: str) -> None:
    address = f"{origin.replace('http', 'ws')}/api/chat/live"
    async with connect(address, origin=page, additional_headers={"cookie": cookie}, proxy=None) as live:  # pyright: ignore[reportArgumentType]
        await live.send(json.dumps({"type": "ping", "requestId": "-"}))
        assert json.loads(await live.recv())["type"] == "pong"


async def _turn(http: httpx.AsyncClient, model: PausingModel, chat_id: str) -> float:
    """How long the first words took."""
    said = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "A story."}]}
    began, read, took_s = time.monotonic(), "", None
    async with http.stream("POST", "/api/chat", json={"id": chat_id, "messages": [said]}) as response:
        assert response.status_code == 200
        assert "content-encoding" not in response.headers
        assert response.headers["cache-control"] == "no-cache, no-transform"
        async for words in response.aiter_text():
            read += words
            if took_s is None and "Once" in read:
                took_s = time.monotonic() - began
                model.go_on()
    assert took_s is not None, read
    assert "upon a time." in read
    assert read.endswith("data: [DONE]\n\n")
    return took_s
