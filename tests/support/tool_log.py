"""What the bodies of tools did, in their own words: begun with which arguments, and how it ended."""

import asyncio
import json
import os
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.adk.tools import ToolContext

from adk_stream_protocol.protocol.call_record import CallKey


@dataclass(frozen=True)
class ToolRun:
    """One run of a tool's body."""

    chat_id: str
    call: CallKey
    tool: str
    arguments: Any
    end: str | None = None
    """`returned`, `raised` or `cancelled`; None for one that still runs, or died with its process."""


class ToolLog:
    """Kept in memory, or in a file that several processes write and that outlives them."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._lines: list[str] = []

    @contextmanager
    def running(self, tool: str, tool_context: ToolContext, **arguments: Any) -> Generator[None]:
        """Around all that the body does."""
        run_id = uuid.uuid4().hex
        call = [tool_context.invocation_id, tool_context.function_call_id]
        chat_id = tool_context.session.id
        self._note({"run": run_id, "chat": chat_id, "call": call, "tool": tool, "arguments": arguments})
        try:
            yield
        except BaseException as error:
            is_failure = isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError)
            self._note({"run": run_id, "end": "raised" if is_failure else "cancelled"})
            raise
        self._note({"run": run_id, "end": "returned"})

    def runs(self, chat_id: str | None = None) -> list[ToolRun]:
        """All runs, or those of one chat, in the order in which they began."""
        lines = self._lines
        if self._file is not None:
            lines = self._file.read_text().splitlines() if self._file.exists() else []
        begun: dict[str, dict[str, Any]] = {}
        for noted in map(json.loads, lines):
            begun.setdefault(noted["run"], {}).update(noted)
        return [
            ToolRun(noted["chat"], CallKey(*noted["call"]), noted["tool"], noted["arguments"], noted.get("end"))
            for noted in begun.values()
            if chat_id in (None, noted["chat"])
        ]

    def _note(self, noted: dict[str, Any]) -> None:
        line = json.dumps(noted)
        if self._file is None:
            self._lines.append(line)
        else:
            append_line(self._file, line)


def append_line(path: Path, line: str) -> None:
    """In one write, so that lines of several processes do not mix, and what was written outlives its process."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
