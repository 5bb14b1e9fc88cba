"""The command as people start it: a process, a port, real HTTP, Ctrl-C."""

import json
import os
import re
import secrets
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from adk_stream_protocol import cli
from adk_stream_protocol.testing import Answer

COMMAND = Path(sys.executable).with_name("adk-stream")
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


def test_a_page_is_at_the_root_and_a_visitor_is_known_from_then_on(demo: Server) -> None:
    page = httpx.get(demo.url.removesuffix("/api/chat"), trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    assert "adk_stream_user" in page.cookies


def test_ctrl_c_ends_an_open_stream_properly_and_shows_no_traceback(tmp_path: Path) -> None:
    with serving("demo", cwd=tmp_path) as server, asking(server.url, "Tell me a long story") as response:
        pieces = response.iter_raw()
        begun = next(reads_with_text(pieces))
        server.process.send_signal(signal.SIGINT)
        rest = b"".join([begun, *pieces])
        said = server.process.communicate(timeout=PATIENCE_S)[1]
    assert "Traceback" not in said
    assert server.process.returncode == 0
    assert [chunk["type"] for chunk in chunks_of(rest.decode())][-3:] == ["text-end", "finish-step", "error"]


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


# -- a database -------------------------------------------------------------------------------------------------------

DATABASE = ("--database", "sqlite+aiosqlite:///chats.db")


def found_in(database: Path, query: str) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        return [value for (value,) in connection.execute(query)]
    finally:
        connection.close()


def test_a_payment_waits_for_its_approval_while_its_server_is_killed_and_started_again(tmp_path: Path) -> None:
    with serving("demo", *DATABASE, cwd=tmp_path) as server:
        asked = post(server.url, turn_of("Send 50 dollars to Hanako", "chat-1"))
        (part,) = asked.approvals
        server.process.kill()
        assert server.process.wait(PATIENCE_S) == -signal.SIGKILL
    approved = {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": True}}
    message = {"id": asked.message_id, "role": "assistant", "parts": [approved]}
    with serving("demo", *DATABASE, cwd=tmp_path) as server:
        paid = post(server.url, {"id": "chat-1", "messages": [message]})
        again = post(server.url, {"id": "chat-1", "messages": [message]})
        said = server.stop(signal.SIGINT)
    assert paid.message_id == asked.message_id
    assert [chunk["output"]["balance"] for chunk in paid.of_type("tool-output-available")] == [950]
    assert paid.text == "Paid 50 USD to Hanako. The new balance is 950 USD."
    assert again.of_type("tool-output-available") == paid.of_type("tool-output-available")
    assert "Traceback" not in said
    assert server.process.returncode == 0


def test_the_sessions_of_an_agent_are_kept_beside_its_approvals(project: Path, tmp_path: Path) -> None:
    database = ("--database", f"sqlite+aiosqlite:///{tmp_path}/chats.db")
    with serving("serve", "restaurant.kitchen:agent", *database, cwd=project) as server:
        post(server.url, turn_of("What is for lunch?", "chat-1"))
        said = server.stop(signal.SIGINT)
    assert found_in(tmp_path / "chats.db", "SELECT id FROM sessions") == ["chat-1"]
    assert found_in(tmp_path / "chats.db", "SELECT count(*) FROM adk_stream_approvals") == [0]
    assert "Traceback" not in said


def test_a_runner_keeps_its_own_sessions_and_is_recorded_like_any_agent(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    database = ("--database", f"sqlite+aiosqlite:///{tmp_path}/chats.db")
    turn = turn_of("What is for lunch?", "chat-1")
    with serving("record", str(file), "restaurant.kitchen:runner", *database, cwd=project) as server:
        answer = post(server.url, turn)
        said = server.stop(signal.SIGINT)
    assert answer.text == "Today we have cake."
    tables = found_in(tmp_path / "chats.db", "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert "adk_stream_approvals" in tables
    assert all(name.startswith("adk_stream_") for name in tables)
    lines = recorded_in(file)
    assert lines[0]["body"] == turn
    assert [line["chunk"] for line in lines[2:]] == [*answer.chunks, "[DONE]"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "Traceback" not in said


# -- record -----------------------------------------------------------------------------------------------------------


def recorded_in(file: Path) -> list[dict[str, Any]]:
    *lines, rest = file.read_text().split("\n")
    assert rest == "", "half a line"
    return [json.loads(line) for line in lines]


def test_a_full_disk_ends_the_recording_with_a_whole_line_and_the_chat_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # else it would be the compiled modules that are cut
    small_disk = ("sh", "-c", 'ulimit -f 4; exec "$@"', "sh")  # two or four KiB, as the shell counts
    with serving("record", "chat.jsonl", cwd=tmp_path, under=small_disk) as server:
        first = post(server.url, turn_of("What can you do?", "chat-1"))
        second = post(server.url, turn_of("What is the weather in Tokyo?", "chat-1"))
        said = server.stop(signal.SIGINT)
    assert first.text.startswith("I am a small offline model")
    assert second.text.startswith("The weather in Tokyo is")
    lines = recorded_in(tmp_path / "chat.jsonl")
    assert [line["chunk"] for line in lines[2:]] == first.chunks[: len(lines) - 2]
    assert 2 < len(lines) < 2 + len(first.chunks)
    assert said.count("The recording ends here: ") == 1
    assert "Traceback" not in said


# -- refusals ---------------------------------------------------------------------------------------------------------

HOW_TO_WRITE_IT = "does not name an agent: write package.module:attribute"
ASYNC_SQLITE = "Use sqlite+aiosqlite:///file.db."
REFUSALS = {
    "a path without an attribute": (("restaurant.kitchen",), HOW_TO_WRITE_IT),
    "a relative path": ((".kitchen:agent",), HOW_TO_WRITE_IT),
    "a missing module": (("restaurant.cellar:agent",), "There is no module 'restaurant.cellar' here."),
    "a missing attribute": (("restaurant.kitchen:waiter",), "The module 'restaurant.kitchen' has no 'waiter'."),
    "no agent": (("restaurant.kitchen:menu",), "A ChatBridge needs an ADK agent, App or Runner, not list."),
    "a public address": (("restaurant.kitchen:agent", "--host", "0.0.0.0"), "--user-header x-forwarded-user"),
    "a database of the wrong form": (("restaurant.kitchen:agent", "--database", "sqlite:///chats.db"), ASYNC_SQLITE),
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


@pytest.fixture
def taken_port() -> Generator[str]:
    """What is not refused then ends here, and does not serve for ever."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield str(taken.getsockname()[1])


def refusal_of(*arguments: str) -> str:
    with pytest.raises(SystemExit) as refused:
        cli.main(arguments)
    said = str(refused.value.code)
    assert said.startswith("adk-stream: ")
    assert "\n" not in said
    return said.removeprefix("adk-stream: ")


ASYNC_POSTGRES = "Use postgresql+asyncpg://user:password@host/database."
DATABASES = {
    "sqlite:///chats.db": ASYNC_SQLITE,
    "postgresql://ann:secret@db/chats": ASYNC_POSTGRES,
    "postgres://ann:secret@db/chats": ASYNC_POSTGRES,
    "mysql://ann:secret@db/chats": f"{ASYNC_SQLITE[:-1]} or {ASYNC_POSTGRES[4:]}",
    "chats.db": f"{ASYNC_SQLITE[4:-1]} or {ASYNC_POSTGRES[4:]}",
    "sqlite+aiosqlite:///no/such/folder/chats.db": "unable to open database file",
    "sqlite+aiosqlite:///notes.txt": "file is not a database",
    "postgresql+asyncpg://ann:secret@127.0.0.1:1/chats": "Connect call failed ('127.0.0.1', 1)",
    "postgresql+asyncpg://ann:secret@127.0.0.1:1/chats?sslmode=on": "unexpected keyword argument 'sslmode'",
}


@pytest.mark.parametrize("url", DATABASES)
def test_a_database_that_cannot_be_used_is_refused_before_anything_is_served(
    url: str, taken_port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("Buy milk. " * 100)
    said = refusal_of("record", "chat.jsonl", "--database", url, "--port", taken_port)
    assert said.endswith(DATABASES[url])
    assert "secret" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_recording_needs_a_new_file_in_a_folder_that_exists(taken_port: str, tmp_path: Path) -> None:
    old = tmp_path / "chat.jsonl"
    old.write_text("an older recording\n")
    assert refusal_of("record", str(old), "--port", taken_port) == f"{old} exists already: record into a new file."
    assert old.read_text() == "an older recording\n"
    lost = tmp_path / "missing" / "chat.jsonl"
    assert (
        refusal_of("record", str(lost), "--port", taken_port) == f"{lost} cannot be created: No such file or directory"
    )


def test_a_model_is_refused_for_an_agent_that_has_its_own(taken_port: str) -> None:
    said = refusal_of("record", "chat.jsonl", "kitchen:agent", "--model", "gemini-flash-latest", "--port", taken_port)
    assert said == "--model is for the demo: an agent of yours brings its own."
