"""The command as a process: how it is started, and how it is asked."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from adk_stream_protocol.testing import Answer

COMMAND = Path(sys.executable).with_name("adk-stream")
DATABASE = ("--database", "sqlite+aiosqlite:///chats.db")
PATIENCE_S = 180  # only for a process that hangs; everything else is waited for


def start(*arguments: str, cwd: Path, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    offline = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "GEMINI_"))}
    return subprocess.Popen(
        [*under, COMMAND, *arguments], cwd=cwd, env=offline, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@dataclass
class Server:
    process: subprocess.Popen[str]
    port: int
    url: str  # as the command has printed it

    def stop(self, by: signal.Signals = signal.SIGTERM) -> str:
        """What the command still had to say."""
        self.process.send_signal(by)
        return self.process.communicate(timeout=PATIENCE_S)[1]


@contextmanager
def serving(*arguments: str, cwd: Path, under: tuple[str, ...] = ()) -> Generator[Server]:
    """`under`: a command that starts ours."""
    port = free_port()
    process = start(*arguments, "--port", str(port), cwd=cwd, under=under)
    assert process.stderr is not None
    try:
        said = "".join(lines_until(process.stderr, "Uvicorn running on"))
        address = re.search(r"chat API(?: of \w+)? at (\S+)$", said, re.MULTILINE)
        assert address is not None, said
        yield Server(process, port, address[1])
    finally:
        if "--reload" in arguments:  # it takes the server with it
            process.terminate()
        else:
            process.kill()
        process.communicate()


def lines_until(output: IO[str], last: str) -> Iterator[str]:
    for line in output:
        yield line
        if last in line:
            return


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def turn_of(question: str, chat_id: str) -> dict[str, Any]:
    message = {"id": uuid.uuid4().hex, "role": "user", "parts": [{"type": "text", "text": question}]}
    return {"id": chat_id, "messages": [message]}


def post(url: str, turn: dict[str, Any]) -> Answer:
    response = httpx.post(url, json=turn, trust_env=False, timeout=PATIENCE_S)
    assert response.status_code == 200, response.text
    return Answer(200, chunks_of(response.text))


@contextmanager
def asking(url: str, question: str, headers: dict[str, str] | None = None) -> Generator[httpx.Response]:
    turn = turn_of(question, f"chat-{secrets.token_hex(8)}")
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE_S) as client,
        client.stream("POST", url, json=turn, headers=headers) as response,
    ):
        assert response.status_code == 200
        yield response


def chunks_of(events: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in events.splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def text_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


def reads_with_text(pieces: Iterator[bytes]) -> Iterator[bytes]:
    return (piece for piece in pieces if b'"text-delta"' in piece)


KITCHEN = """
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.testing import ScriptedModel


def cook(dish):
    return LlmAgent(name="cook", model=ScriptedModel([f"Today we have {dish}."]), output_key="dish")


agent = cook("soup")
app = App(name="kitchen", root_agent=cook("rice"))
runner = Runner(agent=cook("cake"), app_name="kitchen", session_service=InMemorySessionService())
menu = ["soup", "rice", "cake"]
"""


def new_project(root: Path) -> Path:
    """A directory as a user has it, with a package and a module beside it."""
    (root / "restaurant").mkdir()
    (root / "restaurant" / "kitchen.py").write_text(KITCHEN)
    (root / "bakery_agent.py").write_text("import bakery\n")
    return root


CREATED = """
from google.adk.agents import LlmAgent

from adk_stream_protocol.testing import ScriptedModel

root_agent = LlmAgent(name="root_agent", model=ScriptedModel(["Today we have DISH."]))
"""


def create(folder: Path, dish: str) -> None:
    """An agent as `adk create` lays it out."""
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from . import agent as agent\n")
    (folder / "agent.py").write_text(CREATED.replace("DISH", dish))
