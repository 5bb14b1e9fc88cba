"""The real AI SDK clients, driven from Python through one Node process.

`NodeDriver.chat` and `NodeDriver.fold` block until the answer is there: a server under test has to run in another
thread or process. One driver takes one command at a time; a second browser is a second driver.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from threading import Timer
from types import TracebackType
from typing import IO, Any, Literal

RELEASES = ("5", "6.0.0", "6", "7.0.0", "7")
"""The newest AI SDK of each line, and the first one of the lines that have approvals."""

HERE = Path(__file__).parent
CHAT_TIMEOUT_S = 30
# A chat has its own deadline in the driver; this one is for a driver that no longer answers at all.
ANSWER_TIMEOUT_S = 300


class DriverError(Exception):
    """A command could not be carried out. `answer` is what the driver could still tell, empty when it died."""

    def __init__(self, message: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.answer = answer or {}


class NodeDriver:
    def __enter__(self) -> NodeDriver:
        if not (HERE / "node_modules").is_dir():
            raise DriverError("the AI SDK clients are not installed: run npm ci in tests/conformance")
        self._stderr: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._node = subprocess.Popen(
            [_find_node(), "driver.ts"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            encoding="utf-8",
            # A group of its own: node beside Python is a script that starts the real one, and both have to go.
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Popen's own exit closes the pipes, which ends the driver, and waits for it; a stuck one would never end.
        with self._stderr, self._killed_after(5), suppress(BrokenPipeError):
            self._node.__exit__(kind, error, trace)

    def releases(self) -> dict[str, dict[str, str]]:
        """The versions of `ai` and `@ai-sdk/react` behind each name in `RELEASES`."""
        return self._ask({"command": "releases"})

    def chat(
        self,
        *,
        release: str,
        api: str,
        steps: Sequence[dict[str, Any]],
        timeout_s: float = CHAT_TIMEOUT_S,
        **options: Any,
    ) -> dict[str, Any]:
        """Take `steps` (steps.ts) with a real `Chat`; `options` are those of `SessionOptions` (session.ts).

        The answer is a `ChatAnswer` (chat.ts). Steps that cannot be taken raise `DriverError`.
        """
        command = {"release": release, "api": api, "steps": list(steps), "timeoutMs": timeout_s * 1000}
        return self._ask({"command": "chat", **command, **options}, timeout_s + ANSWER_TIMEOUT_S)

    def fold(
        self,
        release: str,
        streams: Iterable[str | Sequence[dict[str, Any]]],
        *,
        returning: Literal["messages", "errors"] = "errors",
    ) -> dict[str, Any]:
        """Fold streams, each the SSE text or the list of chunks, as `release` does; ids count from 0.

        The answer is a `FoldAnswer` (fold.ts); a stream that does not fold is an entry in its `errors`.
        """
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for number, stream in enumerate(streams):
                content = {"sse": stream} if isinstance(stream, str) else {"chunks": list(stream)}
                file.write(json.dumps({"id": number, **content}) + "\n")
            file.flush()
            return self._ask({"command": "fold", "release": release, "file": file.name, "return": returning})

    def _ask(self, command: dict[str, Any], timeout_s: float = ANSWER_TIMEOUT_S) -> dict[str, Any]:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        line = ""
        with self._killed_after(timeout_s), suppress(BrokenPipeError):
            self._node.stdin.write(json.dumps(command) + "\n")
            self._node.stdin.flush()
            line = self._node.stdout.readline()
        if not line:
            raise self._death(command)
        answer = json.loads(line)
        if "failure" in answer:
            raise DriverError(answer["failure"], answer)
        return answer

    @contextmanager
    def _killed_after(self, timeout_s: float) -> Generator[None]:
        timer = Timer(timeout_s, os.killpg, (self._node.pid, SIGKILL))
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _death(self, command: dict[str, Any]) -> DriverError:
        code = self._node.wait()
        self._stderr.seek(0)
        return DriverError(f"the driver ended with {code} at {command}; it wrote:\n{self._stderr.read()[-4000:]}")


def _find_node() -> str:
    beside_python = Path(sys.executable).with_name("node")
    node = str(beside_python) if beside_python.exists() else shutil.which("node")
    if node is None:
        raise DriverError("no node beside the Python executable and none on PATH")
    return node
