"""Writes the requests and responses of a chat API into a file; docs/reference/recording.md has the format."""

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
    """A new file of JSON lines that only its owner may read. Each line is in the file when `write` returns."""

    def __init__(self, path: Path) -> None:
        """Raises an OSError if the file exists or cannot be created."""
        self._path = path
        # Unbuffered: a buffer is lost when the process is killed.
        self._file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115 -- lives as long as we do
        self._size = 0
        self._started_at = time.monotonic()
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
        """Never raises: the chat is more important than its recording."""
        if self._file.closed:
            return
        at = round(time.monotonic() - self._started_at, 3)
        line = msgspec.json.encode({"at": at, "exchange": exchange, "direction": direction, **fields}) + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            logger.error("The recording ends here: %s", error.strerror)
            with suppress(OSError):
                self._file.truncate(self._size)  # half a line is not JSON
            self.close()
        else:
            self._size += len(line)

    def close(self) -> None:
        """May be called twice. Deletes an empty file, so that the next attempt can use its name."""
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
    """ASGI middleware: records both directions of everything below `prefix`, without headers and queries, which may
    contain secrets."""

    def __init__(self, app: ASGIApp, recording: Recording, prefix: str) -> None:
        self._app = app
        self._recording = recording
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_recorded = scope["type"] == "websocket" or (scope["type"] == "http" and scope["method"] != "OPTIONS")
        if not is_recorded or not self._is_below_prefix(scope["path"]):
            await self._app(scope, receive, send)
            return
        exchange = (
            _SocketExchange(self._recording, scope["path"])
            if scope["type"] == "websocket"
            else _HttpExchange(self._recording, scope["method"], scope["path"])
        )

        async def recorded_receive() -> Message:
            message = await receive()
            exchange.record_received(message)
            return message

        async def recorded_send(message: Message) -> None:
            exchange.record_sent(message)  # first: whatever a client has read is in the file
            await send(message)

        await self._app(scope, recorded_receive, recorded_send)

    def _is_below_prefix(self, path: str) -> bool:
        return path == self._prefix or path.startswith(f"{self._prefix}/")


class _HttpExchange:
    """One request and its response."""

    def __init__(self, recording: Recording, method: str, path: str) -> None:
        self._recording = recording
        self._number = recording.next_exchange()
        self._request = {"method": method, "path": path}
        self._has_request = False
        self._request_body = bytearray()
        self._status = 0
        self._media_type = ""
        self._response_body = bytearray()
        if method in _WITHOUT_BODY:
            self._write_request(b"")

    def record_received(self, message: Message) -> None:
        if self._has_request or message["type"] != "http.request":
            return
        self._request_body += message.get("body", b"")
        if not message.get("more_body", False):
            self._write_request(bytes(self._request_body))

    def record_sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if not self._has_request:  # refused before the whole body was read
                self._write_request(b"")
            self._status = message["status"]
            self._media_type = Headers(raw=message["headers"]).get("content-type", "").partition(";")[0]
            if self._media_type != "application/json":
                self._write("response", status=self._status)
        elif self._media_type == "text/event-stream":
            self._write_chunks(message.get("body", b""))
        elif self._media_type == "application/json":
            self._response_body += message.get("body", b"")
            if not message.get("more_body", False):
                self._write("response", status=self._status, **_body_fields(bytes(self._response_body)))

    def _write_request(self, body: bytes) -> None:
        self._has_request = True
        self._request_body.clear()
        self._write("request", **self._request, **_body_fields(body))

    def _write_chunks(self, piece: bytes) -> None:
        *events, self._response_body = (self._response_body + piece).split(b"\n\n")
        for event in events:
            for line in bytes(event).split(b"\n"):
                if line.startswith(b"data: "):
                    data = line.removeprefix(b"data: ")
                    self._write("chunk", chunk="[DONE]" if data == b"[DONE]" else msgspec.Raw(data))

    def _write(self, direction: str, **fields: Any) -> None:
        self._recording.write(self._number, direction, fields)


class _SocketExchange:
    """One WebSocket, from its opening to its end."""

    def __init__(self, recording: Recording, path: str) -> None:
        self._recording = recording
        self._number = recording.next_exchange()
        self._is_closed = False
        self._write("open", path=path)

    def record_received(self, message: Message) -> None:
        if message["type"] == "websocket.receive":
            self._write_frame("client", message)
        elif message["type"] == "websocket.disconnect":
            self._close("client", message.get("code", 1005))

    def record_sent(self, message: Message) -> None:
        if message["type"] == "websocket.send":
            self._write_frame("server", message)
        elif message["type"] == "websocket.close":
            self._close("server", message.get("code", 1000))

    def _close(self, by: str, code: int) -> None:
        if not self._is_closed:  # the other side only confirms it
            self._is_closed = True
            self._write("close", by=by, code=code)

    def _write_frame(self, by: str, message: Message) -> None:
        text, binary = message.get("text"), message.get("bytes")
        if binary is not None:  # voice: its words are in the transcripts
            self._write("frame", by=by, bytes=len(binary))
            return
        fields = _body_fields((text or "").encode(errors="replace"))
        self._write("frame", by=by, **({"frame": fields["body"]} if "body" in fields else fields))

    def _write(self, direction: str, **fields: Any) -> None:
        self._recording.write(self._number, direction, fields)


def _body_fields(body: bytes) -> dict[str, Any]:
    """The JSON as it came, without white space; numbers and the order of keys stay the same."""
    if not body:
        return {}
    try:
        body.decode()  # `format` does not check that it is UTF-8
        return {"body": msgspec.Raw(msgspec.json.format(body, indent=-1))}
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return {"text": body.decode(errors="replace")}
