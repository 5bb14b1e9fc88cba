"""Behind the rewrite of a real Next.js server (`next build`, `next start`) a stream arrives word by word."""

import asyncio
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
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import text
from support.apps import app_of, user_of
from support.live_server import serving

HERE = Path(__file__).parent
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
def next_server(chat_origin: str) -> Generator[str]:
    """The rewrites are written down by the build, and so is the address of the chat API."""
    environment = {**os.environ, "CHAT_ORIGIN": chat_origin, "NEXT_TELEMETRY_DISABLED": "1"}
    built = subprocess.run(
        ["node", NEXT, "build"], cwd=HERE, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
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


def test_the_first_words_arrive_while_the_model_still_speaks(capsys: pytest.CaptureFixture[str]) -> None:
    model = PausingModel()
    bridge = ChatBridge(LlmAgent(name="helper", model=model), user_id=user_of)
    with serving(app_of(bridge)) as chat_origin, next_server(chat_origin) as origin:
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
    async with httpx.AsyncClient(base_url=origin, timeout=20, headers=headers) as http:
        took_s = [await _turn(http, model, chat_id) for chat_id in ("c1", "c2", "c3")]
        assert (await http.post("/api/chat/c1/stop")).status_code == 204
        assert (await http.get("/api/chat/c1/messages")).headers["cache-control"] == "private, no-store"
        return took_s


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
