"""Restarts a command when files below the current folder change."""

import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from watchfiles import PythonFilter, watch

_FILES = (".yaml", ".env")  # beside Python's
_END_S = 35  # longer than a server takes to end its runs
_LOOK_MS = 200  # between looks for a signal


def run_again_on_changes(command: Sequence[str], folder: Path, *, on_restart: Callable[[str], None]) -> None:
    """Until Ctrl-C or SIGTERM. A command that ends by itself is started again after the next change.

    `on_restart`: gets the name of a file that has changed."""
    for ending in (signal.SIGINT, signal.SIGTERM):  # a shell lets what it starts in the background ignore the first
        signal.signal(ending, _interrupt)
    process: subprocess.Popen[bytes] | None = None
    wanted = PythonFilter(extra_extensions=_FILES)
    try:
        for changes in watch(folder, watch_filter=wanted, rust_timeout=_LOOK_MS, yield_on_timeout=True):
            if process is None:  # only now, so that no change is missed
                process = _start(command)
            elif changes:
                on_restart(min(path for _, path in changes))
                _stop(process)
                process = _start(command)
    except KeyboardInterrupt:
        pass
    finally:
        if process is not None:
            _stop(process)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    # In a session of its own: a Ctrl-C in the terminal would reach it beside our signal, and two end it at once.
    return subprocess.Popen(command, start_new_session=True)  # noqa: S603 -- our own command


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
