"""Writes down what a chat API is asked and what it answers; docs/reference/recording.md has the format."""

import errno
import itertools
import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

_WITHOUT_BODY = ("GET", "HEAD", "DELETE")


class Recording:
    """A new file of JSON lines, which only its owner may read. Each line is in the file when `write` returns."""

    def __init__(self, path: Path) -> None:
        """Raises an OSError if the file cannot be created, or is there already."""
        self._path = path
        # A raw file: what a buffer holds is lost with a process that is killed.
        self._file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115 -- lives as long as we do
        self._size = 0
        self._began_at = time.monotonic()
        self._exchanges = itertools.count(1)

    def __enter__(self) -> "Recording":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def next_exchange(self) -> int:
        return next(self._exchanges)

    def write(self, exchange: int, direction: str, fields: dict[str, Any]) -> None:
        """Never fails: a chat is worth more than its recording."""
        if self._file.closed:
            return
        at = round(time.monotonic() - self._began_at, 3)
        line = msgspec.json.encode({"at": at, "exchange": exchange, "direction": direction, **fields}) + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            logger.error("The recording ends here: %s", error.strerror)
            with suppress(OSError):
                self._file.truncate(self._size)  # half a line is no JSON
            self.close()
        else:
            self._size += len(line)

    def close(self) -> None:
        """May be called twice. A file in which nothing was written would only be in the way of the next attempt."""
        if self._file.closed:
            return
        with suppress(OSError):
            self._file.close()
        if self._size == 0:
            with suppress(OSError):
                self._path.unlink()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Recorder:
    """ASGI middleware: both directions of everything below `prefix`. Headers and queries may hold secrets, so that
    neither is written down."""

    def __init__(self, app: ASGIApp, recording: Recording, prefix: str) -> None:
        self._app = app
        self._recording = recording
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_recorded = scope["type"] == "websocket" or (scope["type"] == "http" and scope["method"] != "OPTIONS")
        if not is_recorded or not self._is_ours(scope["path"]):
            await self._app(scope, receive, send)
            return
        exchange = (
            _Socket(self._recording, scope["path"])
            if scope["type"] == "websocket"
            else _Exchange(self._recording, scope["method"], scope["path"])
        )

        async def hear() -> Message:
            message = await receive()
            exchange.hear(message)
            return message

        async def say(message: Message) -> None:
            exchange.say(message)  # first, so that nobody has read what is not in the file
            await send(message)

        await self._app(scope, hear, say)

    def _is_ours(self, path: str) -> bool:
        return path == self._prefix or path.startswith(f"{self._prefix}/")


class _Exchange:
    """One request and what comes back."""

    def __init__(self, recording: Recording, method: str, path: str) -> None:
        self._recording = recording
        self._number = recording.next_exchange()
        self._request = {"method": method, "path": path}
        self._is_asked = False
        self._asked = bytearray()
        self._status = 0
        self._media_type = ""
        self._answered = bytearray()
        if method in _WITHOUT_BODY:
            self._write_request(b"")

    def hear(self, message: Message) -> None:
        if self._is_asked or message["type"] != "http.request":
            return
        self._asked += message.get("body", b"")
        if not message.get("more_body", False):
            self._write_request(bytes(self._asked))

    def say(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if not self._is_asked:  # refused before all of it was read
                self._write_request(b"")
            self._status = message["status"]
            self._media_type = Headers(raw=message["headers"]).get("content-type", "").partition(";")[0]
            if self._media_type != "application/json":
                self._write("response", status=self._status)
        elif self._media_type == "text/event-stream":
            self._write_chunks(message.get("body", b""))
        elif self._media_type == "application/json":
            self._answered += message.get("body", b"")
            if not message.get("more_body", False):
                self._write("response", status=self._status, **_told(bytes(self._answered)))

    def _write_request(self, body: bytes) -> None:
        self._is_asked = True
        self._asked.clear()
        self._write("request", **self._request, **_told(body))

    def _write_chunks(self, piece: bytes) -> None:
        *events, self._answered = (self._answered + piece).split(b"\n\n")
        for event in events:
            for line in bytes(event).split(b"\n"):
                if line.startswith(b"data: "):
                    data = line.removeprefix(b"data: ")
                    self._write("chunk", chunk="[DONE]" if data == b"[DONE]" else msgspec.Raw(data))

    def _write(self, direction: str, **fields: Any) -> None:
        self._recording.write(self._number, direction, fields)


class _Socket:
    """One WebSocket, from its opening to its end."""

    def __init__(self, recording: Recording, path: str) -> None:
        self._recording = recording
        self._number = recording.next_exchange()
        self._is_closed = False
        self._write("open", path=path)

    def hear(self, message: Message) -> None:
        if message["type"] == "websocket.receive":
            self._write_frame("client", message)
        elif message["type"] == "websocket.disconnect":
            self._close("client", message.get("code", 1005))

    def say(self, message: Message) -> None:
        if message["type"] == "websocket.send":
            self._write_frame("server", message)
        elif message["type"] == "websocket.close":
            self._close("server", message.get("code", 1000))

    def _close(self, by: str, code: int) -> None:
        if not self._is_closed:  # who comes second only finds it closed
            self._is_closed = True
            self._write("close", by=by, code=code)

    def _write_frame(self, by: str, message: Message) -> None:
        text, binary = message.get("text"), message.get("bytes")
        if binary is not None:  # voice: what was said is in the transcripts
            self._write("frame", by=by, bytes=len(binary))
            return
        told = _told((text or "").encode(errors="replace"))
        self._write("frame", by=by, **({"frame": told["body"]} if "body" in told else told))

    def _write(self, direction: str, **fields: Any) -> None:
        self._recording.write(self._number, direction, fields)


def _told(body: bytes) -> dict[str, Any]:
    """Numbers and the order of keys stay as they came; only the white space between them goes."""
    if not body:
        return {}
    try:
        body.decode()  # which `format` does not look at
        return {"body": msgspec.Raw(msgspec.json.format(body, indent=-1))}
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return {"text": body.decode(errors="replace")}
