"""The servers of docs/howto/production.md, started by its commands: they serve, refuse and end well."""

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ScriptedModel
from support.apps import app_of, user_of
from support.documents import ROOT, blocks_of, run_page
from support.live_server import serving
from support.sessions import KEY, signed_in

PAGE = ROOT / "docs" / "howto" / "production.md"
NGINX = os.environ.get("NGINX_PROGRAM") or shutil.which("nginx")
PATIENCE_S = 60
SERVERS = ["uvicorn", "gunicorn", "main.py"] if os.environ.get("FULL_SIZE") else ["uvicorn", "gunicorn"]
USER = signed_in()

# The application of the page, with a model that needs no key and a tool that blocks for longer than streams are kept.
TESTED = """
import threading, time
from pathlib import Path
from app import *
from adk_stream_protocol.testing import ScriptedModel, call

def block() -> str:
    Path("began").write_text(threading.current_thread().name)
    time.sleep(3)
    Path("ended").touch()
    return "done"

root_agent.model = ScriptedModel(["Hello.", [call("block")], "Blocked."])
root_agent.tools = [block]
"""


def files() -> dict[str, str]:
    return {block.file: block.code for block in blocks_of(PAGE, "python") if block.file}


def command_of(program: str) -> str:
    [found] = [block.code for block in blocks_of(PAGE, "sh") if block.code.startswith(f"{program} app:app")]
    return found.replace("\\\n", " ").replace("app:app", "tested:app")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@contextmanager
def started(command: list[str], folder: Path, port: int) -> Generator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "SESSION_KEY": KEY, "PYTHONPATH": str(folder)}
    with (folder / "stderr").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(port):
            assert process.poll() is None, (folder / "stderr").read_text()
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def turn(chat_id: str) -> dict[str, object]:
    said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    return {"id": chat_id, "messages": [said]}


async def read(http: httpx.AsyncClient, chat_id: str) -> str:
    """The stream of a turn, as far as it comes."""
    told = ""
    try:
        async with http.stream("POST", "/api/chat", json=turn(chat_id)) as response:
            assert response.status_code == 200, await response.aread()
            async for words in response.aiter_text():
                told += words
    except httpx.RemoteProtocolError:
        told += "cut"
    return told


@pytest.mark.figures
@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_of_the_page_serves_refuses_and_ends_well(server: str, tmp_path: Path) -> None:
    port = free_port()
    for name, code in files().items():
        (tmp_path / name).write_text(code.replace("8000", str(port)).replace("from app import", "from tested import"))
    (tmp_path / "tested.py").write_text(TESTED)
    if server == "main.py":
        command = [sys.executable, "main.py"]
    else:
        program, *arguments = shlex.split(command_of(server).replace("8000", str(port)))
        command = [sys.executable, "-m", program, *arguments]
    with started(command, tmp_path, port) as process:
        origin = f"127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=f"http://{origin}", headers=USER, timeout=60, trust_env=False) as http:
            assert (await http.get("/readyz")).json() == "ok"
            assert (await http.get("/api/chat", headers={"cookie": "session=forged"})).status_code == 401
            assert '"delta":"Hello."' in await read(http, "c1")
            async with connect(f"ws://{origin}/api/chat/live", additional_headers=USER, proxy=None) as live:
                assert live.response is not None
                await live.send(json.dumps({"type": "ping", "requestId": "-"}))
                assert json.loads(await live.recv())["type"] == "pong"
                if server != "main.py":
                    assert "sec-websocket-extensions" not in live.response.headers
            if server != "main.py":
                large = {"x-large": "x" * 1_000_000}
                assert (await http.get("/healthz", headers=large)).status_code in (400, 431)

            reading = asyncio.create_task(read(http, "c2"))
            while not (tmp_path / "began").exists():
                assert not reading.done(), await reading
                await asyncio.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            told = await reading
            while process.poll() is None:
                await asyncio.sleep(0.02)
    assert (tmp_path / "ended").exists(), "the tool was not let finish"
    assert (tmp_path / "began").read_text() != "MainThread", "the tool blocked the event loop"
    if server == "main.py":
        assert "The server restarts" in told
        assert told.endswith("data: [DONE]\n\n")


async def test_a_database_that_does_not_answer_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", "sqlite+aiosqlite:////nowhere/chats.db")
    page = run_page(PAGE)
    app, bridge = page["app"], page["bridge"]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/readyz")).status_code == 500
    await bridge.aclose()


@pytest.mark.skipif(NGINX is None, reason="there is no nginx on this machine")
async def test_nginx_passes_streams_and_sockets_on(tmp_path: Path) -> None:
    from google.adk.agents import LlmAgent

    bridge = ChatBridge(LlmAgent(name="helper", model=ScriptedModel(["Hello."])), user_id=user_of)
    with serving(app_of(bridge)) as behind:
        port = free_port()
        blocks = [block.code for block in blocks_of(PAGE, "nginx")]
        server, upstream = blocks
        for configuration in (server, upstream + server.replace("http://127.0.0.1:8000", "http://chat")):
            used = configuration.replace("listen 80;", f"listen 127.0.0.1:{port};")
            used = used.replace("127.0.0.1:8000", behind.removeprefix("http://")).replace(
                "server 127.0.0.1:8001;", f"server {behind.removeprefix('http://')} down;"
            )
            with nginx(used, tmp_path, port):
                await _talk_through(f"127.0.0.1:{port}")


@contextmanager
def nginx(configuration: str, folder: Path, port: int) -> Generator[None]:
    assert NGINX is not None
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"pid {folder}/pid; error_log {folder}/error.log; user root; daemon off; events {{}} "
        f"http {{ access_log off; {temporary}\n{configuration}\n}}"
    )
    process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


async def _talk_through(origin: str) -> None:
    page = {"origin": f"http://{origin}", "sec-fetch-site": "same-origin"}
    async with httpx.AsyncClient(base_url=f"http://{origin}", headers=page, timeout=60, trust_env=False) as http:
        assert (await http.post("/api/chat/c1/stop")).status_code == 204
        without_metadata = {"origin": f"http://{origin}"}  # then the Host decides
        assert (await http.post("/api/chat/c1/stop", headers=without_metadata)).status_code == 204
        large = turn("c1") | {"padding": "x" * 2_000_000}  # more than nginx takes by itself
        assert (await http.post("/api/chat", json=large)).status_code == 200
    async with connect(f"ws://{origin}/api/chat/live", origin=f"http://{origin}", proxy=None) as live:  # pyright: ignore
        await live.send(json.dumps({"type": "ping", "requestId": "-"}))
        assert json.loads(await live.recv())["type"] == "pong"
