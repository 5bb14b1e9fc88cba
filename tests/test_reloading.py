"""A command that is restarted when files change: a real one, that writes down when it begins and ends."""

import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 60  # only for a process that hangs

PACKAGE = Path(__file__).parent.parent / "src" / "adk_stream_protocol"

# The module alone: the whole package imports ADK, which takes seconds.
WATCHER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(PACKAGE)!r})
from reloading import run_again_on_changes
command = [sys.executable, "command.py"]
run_again_on_changes(command, Path.cwd(), on_restart=lambda path: print("changed", Path(path).name, flush=True))
print("over", flush=True)
"""
EXEC = f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', {WATCHER!r}])"
SERVER = """
import signal
print("begins", flush=True)
try:
    signal.pause()
except KeyboardInterrupt:
    print("ends", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "command.py").write_text(SERVER)
    (tmp_path / "node_modules").mkdir()
    return tmp_path


@pytest.fixture
def watcher(folder: Path) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", WATCHER], cwd=folder, stdout=subprocess.PIPE, text=True)
    yield process
    process.terminate()  # it takes its command with it
    process.communicate(timeout=PATIENCE_S)


def said_by(watcher: subprocess.Popen[str]) -> Iterator[str]:
    assert watcher.stdout is not None
    return (line.strip() for line in watcher.stdout)


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_its_watcher(watcher: subprocess.Popen[str], stopped_by: signal.Signals) -> None:
    said = said_by(watcher)
    assert next(said) == "begins"
    watcher.send_signal(stopped_by)
    assert list(said) == ["ends", "over"]
    assert watcher.wait(PATIENCE_S) == 0


def test_it_ends_at_sigint_also_where_a_script_has_started_it_in_the_background(folder: Path) -> None:
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{EXEC}"  # as `command &` in a script
    process = subprocess.Popen([sys.executable, "-c", ignoring], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        said = said_by(process)
        assert next(said) == "begins"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert out.split() == ["ends", "over"]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_it_is_ended_and_begun_again_after_a_change(watcher: subprocess.Popen[str], folder: Path) -> None:
    said = said_by(watcher)
    assert next(said) == "begins"
    for name in ("agent.py", ".env", "root_agent.yaml"):
        (folder / "node_modules" / "left_out.py").write_text("")
        (folder / "notes.txt").write_text("")
        (folder / name).write_text("x = 1")
        assert [next(said) for _ in range(3)] == [f"changed {name}", "ends", "begins"]


def test_a_command_that_fails_is_begun_again_after_the_next_change(
    watcher: subprocess.Popen[str], folder: Path
) -> None:
    said = said_by(watcher)
    assert next(said) == "begins"
    (folder / "command.py").write_text("print('broken', flush=True); raise SystemExit(1)")
    assert [next(said) for _ in range(3)] == ["changed command.py", "ends", "broken"]
    (folder / "command.py").write_text(SERVER)
    assert [next(said) for _ in range(2)] == ["changed command.py", "begins"]
