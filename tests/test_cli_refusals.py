"""What the command refuses at its start, in one line each; its version and its help."""

import os
import secrets
import socket
import sys
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import adk_stream_protocol
from adk_stream_protocol import cli
from support.commands import CREATED, PATIENCE_S, create, new_project, start

HOW_TO_WRITE_IT = "does not name an agent: write a folder, package.module or package.module:attribute."
ASYNC_SQLITE = "Use sqlite+aiosqlite:///file.db."
REFUSALS = {
    "a folder without an agent": (("restaurant",), "agent.py that defines root_agent, or folders that have one."),
    "a relative path": ((".kitchen:agent",), HOW_TO_WRITE_IT),
    "a missing module": (("restaurant.cellar:agent",), "There is no module 'restaurant.cellar' here."),
    "a missing attribute": (("restaurant.kitchen:waiter",), "The module 'restaurant.kitchen' has no 'waiter'."),
    "no agent": (
        ("restaurant.kitchen:menu",),
        "'restaurant.kitchen:menu' must be an ADK agent, App or Runner, not list.",
    ),
    "an unset variable of the shell": (("",), HOW_TO_WRITE_IT),
    "a public address": (("restaurant.kitchen:agent", "--host", "0.0.0.0"), "--user-header x-forwarded-user"),
    "a database of the wrong form": (("restaurant.kitchen:agent", "--database", "sqlite:///chats.db"), ASYNC_SQLITE),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_is_one_line_that_says_what_to_change(
    why: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: a process of its own takes seconds to import ADK."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [*sys.path])
    arguments, what_to_change = REFUSALS[why]
    assert refusal_of("serve", *arguments).endswith(what_to_change)
    assert capsys.readouterr() == ("", "")


def test_a_refusal_is_all_that_a_process_says(project: Path) -> None:
    arguments, what_to_change = REFUSALS["no agent"]
    process = start("serve", *arguments, cwd=project)
    out, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, said) == (1, "", f"adk-stream: {what_to_change}\n")


def test_an_import_that_fails_inside_the_agents_module_is_shown_with_its_place(project: Path) -> None:
    process = start("serve", "bakery_agent:agent", cwd=project)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert said.splitlines() == [
        "adk-stream: The agent in 'bakery_agent' cannot be imported:",
        "Traceback (most recent call last):",
        f'  File "{project}/bakery_agent.py", line 1, in <module>',
        "    import bakery",
        "ModuleNotFoundError: No module named 'bakery'",
    ]


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


@pytest.mark.parametrize("url", DATABASES)
def test_the_audit_of_a_database_that_cannot_be_used_says_why_and_creates_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("Buy milk. " * 100)
    said = refusal_of("audit", "--database", url)
    why = "There is no file no/such/folder/chats.db." if "no/such" in url else DATABASES[url]
    assert said.endswith(why)
    assert "secret" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", ["none.db", "file:none.db?uri=true", "file:none.db?mode=rwc&uri=true"])
def test_the_audit_creates_no_database(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal_of("audit", "--database", f"sqlite+aiosqlite:///{name}") == "There is no file none.db."
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a chat.db", "file:a%2520chat.db?uri=true"])
def test_the_audit_of_a_database_in_which_nobody_was_asked_is_empty(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a chat.db").touch()
    cli.main(["audit", "--database", f"sqlite+aiosqlite:///{name}"])
    assert capsys.readouterr() == ("", "")


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
    assert said == "--model is only for the demo. Your own agent has its model already."


@pytest.fixture
def gemini_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith(("GOOGLE_", "GEMINI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    agent = "from google.adk.agents import LlmAgent\nroot_agent = LlmAgent(name='a', model='gemini-2.5-flash')\n"
    folder = tmp_path / f"agent_{secrets.token_hex(4)}"
    folder.mkdir()
    (folder / "agent.py").write_text(agent)
    return folder.name


def test_a_port_in_use_is_said_with_the_option_for_another(taken_port: str, gemini_agent: str) -> None:
    said = refusal_of("serve", gemini_agent, "--port", taken_port)
    assert said == f"Port {taken_port} is in use. Choose another one: --port {int(taken_port) + 1}"


def test_the_addresses_have_the_port_that_was_free(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ports: list[int] = []

    class NoServer:
        def __init__(self, app: Any, *, port: int, **options: Any) -> None:
            ports.append(port)

        def run(self) -> None: ...

    monkeypatch.setattr(cli, "UvicornServer", NoServer)
    cli.main(["demo", "--port", "0"])
    (port,) = ports
    assert port > 0
    assert f"adk-stream: chat API at http://127.0.0.1:{port}/api/chat\n" in capsys.readouterr().err


def test_an_address_of_another_machine_is_refused(gemini_agent: str) -> None:
    said = refusal_of("serve", gemini_agent, "--host", "192.0.2.1", "--user-header", "x-user")
    assert said == "192.0.2.1:8000 cannot be used: Cannot assign requested address"


def test_a_missing_key_is_said_in_a_line_at_the_start(
    taken_port: str, gemini_agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal_of("serve", gemini_agent, "--port", taken_port)
    where = Path.cwd() / gemini_agent / ".env"
    hint = f"adk-stream: gemini-2.5-flash needs a key. Set GOOGLE_API_KEY in the environment or in {where}\n"
    assert capsys.readouterr().err == hint
    where.write_text("GOOGLE_API_KEY=x\n")
    refusal_of("serve", gemini_agent, "--port", taken_port)
    assert capsys.readouterr().err == ""
    os.environ.pop("GOOGLE_API_KEY")


@pytest.mark.parametrize("command", [("demo",), ("record", "chat.jsonl")])
def test_a_missing_key_for_the_model_of_the_demo_is_said_too(
    command: tuple[str, ...], taken_port: str, gemini_agent: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a file: the demo reads no `.env`."""
    refusal_of(*command, "--model", "gemini-flash-latest", "--port", taken_port)
    assert (
        capsys.readouterr().err
        == "adk-stream: gemini-flash-latest needs a key. Set GOOGLE_API_KEY in the environment\n"
    )
    (Path.cwd() / "chat.jsonl").unlink(missing_ok=True)
    refusal_of(*command, "--port", taken_port)
    assert capsys.readouterr().err == ""


def test_a_recording_is_of_one_agent(tmp_path: Path, taken_port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("cook_of_two", "baker_of_two"):
        create(tmp_path / "agents" / name, "soup")
    said = refusal_of("record", "chat.jsonl", "agents", "--port", taken_port)
    assert said == "Only one agent can be recorded at a time. Name the folder of one: baker_of_two, cook_of_two"


def test_agents_whose_chats_would_be_mixed_are_refused(
    tmp_path: Path, taken_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("cook_with_app", "baker_with_app"):
        create(tmp_path / "agents" / name, "soup")
        app = f"{CREATED}\nfrom google.adk.apps import App\napp = App(name='one', root_agent=root_agent)\n"
        (tmp_path / "agents" / name / "agent.py").write_text(app)
    said = refusal_of("serve", "agents", "--port", taken_port)
    assert said == "2 agents have the name 'one'. Give each App a name of its own."


def test_the_version_is_that_of_the_package_and_of_adk(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    adk = version("google-adk")
    assert capsys.readouterr().out == f"adk-stream {adk_stream_protocol.__version__} (google-adk {adk})\n"


@pytest.mark.parametrize("command", ["demo", "serve", "record", "replay"])
def test_the_help_names_the_defaults(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "the port to listen on (default: 8000)" in text
    if command != "replay":
        assert "(default: 127.0.0.1)" in text
        assert "(default: memory; they are lost when the server ends)" in text
