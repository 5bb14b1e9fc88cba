"""Processes of a test run that come from one parent, which has everything imported: each costs a fork."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2]
MAX_LINE_BYTES = 2**26


def fork_for_ever(control: socket.socket, child: Callable[..., None]) -> None:
    """The parent's side: for each configuration and socket that come in, a process that runs `child` with them."""
    assert threading.active_count() == 1, "a fork would lose threads"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    control.send(b"ready")
    while True:
        configuration, files, _, _ = socket.recv_fds(control, MAX_LINE_BYTES, 1)
        if not configuration:
            return
        if os.fork() == 0:
            control.close()
            with socket.socket(fileno=files[0]) as connection:
                child(connection, **json.loads(configuration))
            os._exit(0)
        os.close(files[0])


def fork(script: str, configuration: dict[str, Any]) -> socket.socket:
    """The test's side: a new process of this script, at the other end of the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(_parent(script), [json.dumps(configuration).encode()], [theirs.fileno()])
    return ours


@cache
def _parent(script: str) -> socket.socket:
    """It ends when its socket is closed, with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, script, str(theirs.fileno())]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        parent = subprocess.Popen(command, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path})
    assert ours.recv(100) == b"ready", "the processes' parent did not start"
    atexit.register(parent.wait)
    atexit.register(ours.close)
    return ours
