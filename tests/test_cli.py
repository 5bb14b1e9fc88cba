"""The command as people start it: a process, a port, real HTTP, Ctrl-C."""

import json
import signal
import sqlite3
import stat
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adk_stream_protocol import cli
from support.commands import (
    CREATED,
    DATABASE,
    PATIENCE_S,
    Server,
    asking,
    chunks_of,
    create,
    lines_until,
    new_project,
    post,
    reads_with_text,
    serving,
    text_of,
    turn_of,
)

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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize(
    ("attribute", "options", "headers", "dish", "stopped_by"),
    [
        ("agent", ("--send-state", "dish"), {}, "soup", signal.SIGINT),
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
    state = [chunk["data"] for chunk in chunks if chunk["type"] == "data-adk-state"]
    assert state == ([{"dish": "Today we have soup."}] if "--send-state" in options else [])
    assert "Traceback" not in said
    assert "Application shutdown complete." in said
    # uvicorn passes a SIGTERM on when all is closed, so that whoever waits for the process sees its cause.
    assert server.process.returncode == (0 if stopped_by is signal.SIGINT else -signal.SIGTERM)


def test_a_folder_of_one_agent_is_served_and_starts_again_when_it_changes(tmp_path: Path) -> None:
    create(tmp_path / "cook", "soup")
    with serving("serve", "cook", "--reload", cwd=tmp_path) as server:
        assert server.url.endswith(f":{server.port}/api/chat")
        assert post(server.url, turn_of("What is for lunch?", "chat-1")).text == "Today we have soup."
        (tmp_path / "cook" / "agent.py").write_text(CREATED.replace("DISH", "rice"))
        assert server.process.stderr is not None
        said = "".join(lines_until(server.process.stderr, "Uvicorn running on"))
        assert post(server.url, turn_of("What is for lunch?", "chat-1")).text == "Today we have rice."
        rest = server.stop(signal.SIGINT)
    assert f"adk-stream: {tmp_path}/cook/agent.py has changed: starting again" in said
    assert "Traceback" not in said + rest
    assert server.process.returncode == 0


def test_several_agents_of_a_folder_keep_their_chats_apart(tmp_path: Path) -> None:
    for name, dish in (("cook", "soup"), ("baker", "cake")):
        create(tmp_path / "agents" / name, dish)
    with serving("serve", "agents", *DATABASE, cwd=tmp_path) as server:
        root = f"http://127.0.0.1:{server.port}/api"
        for name, dish in (("cook", "soup"), ("baker", "cake")):
            answer = post(f"{root}/{name}/chat", turn_of("What is for lunch?", f"chat-of-{name}"))
            assert answer.text == f"Today we have {dish}."
        listed = {name: httpx.get(f"{root}/{name}/chat", trust_env=False).json() for name in ("cook", "baker")}
        said = server.stop(signal.SIGINT)
    assert {name: [chat["id"] for chat in chats] for name, chats in listed.items()} == {
        "cook": ["chat-of-cook"],
        "baker": ["chat-of-baker"],
    }
    assert "Traceback" not in said


# -- a database -------------------------------------------------------------------------------------------------------


def found_in(database: Path, query: str) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        return [value for (value,) in connection.execute(query)]
    finally:
        connection.close()


def test_a_payment_waits_for_its_approval_while_its_server_is_killed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    monkeypatch.chdir(tmp_path)
    cli.main(["audit", *DATABASE, "--tool", "process_payment"])
    audited = [json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()]
    assert audited == ["pending", "approved", "claimed", "started", "done"]
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
