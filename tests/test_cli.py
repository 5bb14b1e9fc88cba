"""The command as people start it: a process, a port, real HTTP, Ctrl-C."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

COMMAND = Path(sys.executable).with_name("adk-stream")
PATIENCE_S = 60  # only for a process that hangs; everything else is waited for


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    offline = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "GEMINI_"))}
    return subprocess.Popen(
        [COMMAND, *arguments], cwd=cwd, env=offline, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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
def serving(*arguments: str, cwd: Path) -> Generator[Server]:
    port = free_port()
    process = start(*arguments, "--port", str(port), cwd=cwd)
    assert process.stderr is not None
    said = ""
    try:
        for line in process.stderr:
            said += line
            if "Uvicorn running on" in line:
                break
        address = re.search(r"chat API at (\S+)$", said, re.MULTILINE)
        assert address is not None, said
        yield Server(process, port, address[1])
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@contextmanager
def asking(url: str, question: str, headers: dict[str, str] | None = None) -> Generator[httpx.Response]:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": question}]}
    turn = {"id": f"chat-{secrets.token_hex(8)}", "messages": [message]}
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


# -- demo -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    with serving("demo", cwd=tmp_path_factory.mktemp("demo")) as server:
        yield server


def test_the_demo_answers_a_question_about_the_weather(demo: Server) -> None:
    with asking(demo.url, "What is the weather in Tokyo?") as response:
        chunks = chunks_of(response.read().decode())
    kinds = [chunk["type"] for chunk in chunks]
    assert [kind for kind in kinds if kind != "text-delta"] == [
        "start",
        "start-step", "tool-input-start", "tool-input-available", "tool-output-available", "finish-step",
        "start-step", "text-start", "text-end", "finish-step",
        "finish",
    ]  # fmt: skip
    deltas = [position for position, kind in enumerate(kinds) if kind == "text-delta"]
    assert len(deltas) > 1
    assert kinds[deltas[0] - 1] == "text-start"
    assert kinds[deltas[-1] + 1] == "text-end"
    assert chunks[4]["output"]["location"] == "Tokyo"
    assert f"{chunks[4]['output']['temperature_c']} °C" in text_of(chunks)


def test_text_is_on_the_wire_before_the_answer_is_complete(demo: Server) -> None:
    with asking(demo.url, "Tell me a long story") as response:
        arriving = reads_with_text(response.iter_raw())
        reads = [next(arriving) for _ in range(3)]
    assert not any(b'"finish"' in read for read in reads)


def test_the_page_names_the_address_at_which_it_is_served(demo: Server) -> None:
    page = httpx.get(demo.url.removesuffix("/api/chat"), trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    named = re.findall(r"http://[\w.:\[\]]+/api/chat", page.text)
    assert named
    assert set(named) == {demo.url} == {f"http://127.0.0.1:{demo.port}/api/chat"}


def test_ctrl_c_ends_an_open_stream_properly_and_shows_no_traceback(tmp_path: Path) -> None:
    with serving("demo", cwd=tmp_path) as server, asking(server.url, "Tell me a long story") as response:
        pieces = response.iter_raw()
        begun = next(reads_with_text(pieces))
        server.process.send_signal(signal.SIGINT)
        rest = b"".join([begun, *pieces])
        said = server.process.communicate(timeout=PATIENCE_S)[1]
    assert "Traceback" not in said
    assert server.process.returncode == 0
    assert [chunk["type"] for chunk in chunks_of(rest.decode())][-3:] == ["text-end", "finish-step", "abort"]


# -- serve ------------------------------------------------------------------------------------------------------------

KITCHEN = """
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.testing import ScriptedModel


def cook(dish):
    return LlmAgent(name="cook", model=ScriptedModel([f"Today we have {dish}."]))


agent = cook("soup")
app = App(name="kitchen", root_agent=cook("rice"))
runner = Runner(agent=cook("cake"), app_name="kitchen", session_service=InMemorySessionService())
menu = ["soup", "rice", "cake"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as a user has it, with a package and a module beside it."""
    root = tmp_path_factory.mktemp("project")
    (root / "restaurant").mkdir()
    (root / "restaurant" / "kitchen.py").write_text(KITCHEN)
    (root / "bakery_agent.py").write_text("import bakery\n")
    return root


@pytest.mark.parametrize(
    ("attribute", "options", "headers", "dish", "stopped_by"),
    [
        ("agent", (), {}, "soup", signal.SIGINT),
        ("app", (), {"x-demo-user": "ann"}, "rice", signal.SIGTERM),
        ("runner", ("--user-header", "x-remote-user"), {"x-remote-user": "ann"}, "cake", signal.SIGTERM),
    ],
    ids=["agent", "app", "runner"],
)
def test_an_agent_an_app_and_a_runner_are_served_until_a_signal(
    project: Path,
    attribute: str,
    options: tuple[str, ...],
    headers: dict[str, str],
    dish: str,
    stopped_by: signal.Signals,
) -> None:
    with serving("serve", f"restaurant.kitchen:{attribute}", *options, cwd=project) as server:
        with asking(server.url, "What is for lunch?", headers) as response:
            chunks = chunks_of(response.read().decode())
        said = server.stop(stopped_by)
    assert text_of(chunks) == f"Today we have {dish}."
    assert "Traceback" not in said
    assert "Application shutdown complete." in said
    # uvicorn passes a SIGTERM on when all is closed, so that whoever waits for the process sees its cause.
    assert server.process.returncode == (0 if stopped_by is signal.SIGINT else -signal.SIGTERM)


# -- refusals ---------------------------------------------------------------------------------------------------------

HOW_TO_WRITE_IT = "does not name an agent: write package.module:attribute"
REFUSALS = {
    "a path without an attribute": (("restaurant.kitchen",), HOW_TO_WRITE_IT),
    "a relative path": ((".kitchen:agent",), HOW_TO_WRITE_IT),
    "a missing module": (("restaurant.cellar:agent",), "There is no module 'restaurant.cellar' here."),
    "a missing attribute": (("restaurant.kitchen:waiter",), "The module 'restaurant.kitchen' has no 'waiter'."),
    "no agent": (("restaurant.kitchen:menu",), "A ChatBridge needs an ADK agent, App or Runner, not list."),
    "a public address": (("restaurant.kitchen:agent", "--host", "0.0.0.0"), "--user-header x-forwarded-user"),
}


@pytest.fixture(scope="module")
def refused(project: Path) -> Generator[dict[str, subprocess.Popen[str]]]:
    """All of them at once: most of the time of each is spent on importing ADK."""
    processes = {why: start("serve", *arguments, cwd=project) for why, (arguments, _) in REFUSALS.items()}
    yield processes
    for process in processes.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_is_one_line_that_says_what_to_change(why: str, refused: dict[str, subprocess.Popen[str]]) -> None:
    out, said = refused[why].communicate(timeout=PATIENCE_S)
    assert refused[why].returncode == 1
    assert out == ""
    (line,) = said.splitlines()
    assert line.startswith("adk-stream: ")
    assert line.endswith(REFUSALS[why][1])


def test_an_import_that_fails_inside_the_agents_module_is_shown_with_its_place(project: Path) -> None:
    process = start("serve", "bakery_agent:agent", cwd=project)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "bakery_agent.py" in said
    assert said.splitlines()[-1] == "ModuleNotFoundError: No module named 'bakery'"
