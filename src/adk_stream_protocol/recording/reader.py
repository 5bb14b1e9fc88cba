"""Reads a file that `recorder` has written: its turns in order, and its other responses by their paths."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..errors import ConfigurationError

_NONE = msgspec.Raw(b"")
_LIVE = "/live"
_NO_TURN = re.compile(r"/stop$|/approvals/[^/]+$")


@dataclass(eq=False)
class RecordedTurn:
    """What one request got: a stream, or a refusal."""

    requested_at: float
    is_announced: bool = False
    """No request asked for it: the reply to speech, or the effect of a deadline."""
    message_id: str = ""
    chunks: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]])
    refusal: tuple[int, bytes] | None = None

    def add(self, at: float, chunk: bytes) -> None:
        head = msgspec.json.decode(chunk, type=_ChunkHead)
        self.message_id = self.message_id or head.message_id
        self.chunks.append((at, chunk))


class _ChunkHead(msgspec.Struct, rename="camel"):
    type: str
    message_id: str = ""


class _Line(msgspec.Struct):
    at: float
    exchange: int
    direction: str
    method: str = ""
    path: str = ""
    status: int = 0
    body: msgspec.Raw = _NONE
    chunk: msgspec.Raw = _NONE
    by: str = ""
    frame: msgspec.Raw = _NONE


class _Frame(msgspec.Struct, rename="camel"):
    type: str = ""
    request_id: str = ""
    sequence: int = -1
    chunk: msgspec.Raw = _NONE
    code: str = "internal"
    error_text: str = ""


class Recorded:
    """The content of a recording. It does not matter whether a turn came over HTTP or over a socket."""

    def __init__(self, lines: list[_Line]) -> None:
        self.turns: list[RecordedTurn] = []
        self._root: str | None = None
        self._turns_by_exchange: dict[int, RecordedTurn] = {}
        self._turns_by_request: dict[str, RecordedTurn] = {}
        self._paths: dict[int, str] = {}  # of requests that are no turns, by their exchanges
        self._responses: dict[str, tuple[int, bytes]] = {}
        self._has_announced_turn = False
        for line in lines:
            self._read(line)
        self.turns = [turn for turn in self.turns if turn.chunks or turn.refusal]

    def response(self, path: str) -> tuple[int, bytes] | None:
        """Status and JSON of the last response to a GET of `path`, relative to the chat API."""
        return self._responses.get(f"{self._root or ''}{path}")

    def _read(self, line: _Line) -> None:
        turn = self._turns_by_exchange.get(line.exchange)
        if line.direction == "open":
            self._root = self._root or line.path.removesuffix(_LIVE)
        elif line.direction == "frame" and line.frame:
            self._read_frame(line, msgspec.json.decode(line.frame, type=_Frame))
        elif line.direction == "request" and line.method == "POST" and not _NO_TURN.search(line.path):
            self._root = self._root or line.path
            self._turns_by_exchange[line.exchange] = self._new_turn(line.at)
        elif line.direction == "request":
            self._paths[line.exchange] = line.path
        elif line.direction == "response" and turn is not None and line.status != 200:
            turn.refusal = (line.status, bytes(line.body) or b"{}")
        elif line.direction == "response" and line.body and line.exchange in self._paths:
            self._responses[self._paths[line.exchange]] = (line.status, bytes(line.body))
        elif line.direction == "chunk" and turn is not None and bytes(line.chunk) != b'"[DONE]"':
            turn.add(line.at, bytes(line.chunk))

    def _read_frame(self, line: _Line, frame: _Frame) -> None:
        turn = self._turns_by_request.get(frame.request_id)
        if line.by == "client":
            if frame.type == "send":
                self._turns_by_request[frame.request_id] = self._new_turn(line.at)
            elif frame.type == "resume" and turn is None and self._has_announced_turn:
                self._has_announced_turn = False
                self._turns_by_request[frame.request_id] = self._new_turn(line.at, is_announced=True)
        elif frame.type == "turn":
            self._has_announced_turn = True
        elif turn is not None and frame.type == "chunk" and frame.sequence == len(turn.chunks):  # else repeated
            turn.add(line.at, bytes(frame.chunk))
        elif turn is not None and frame.type == "error" and not turn.chunks:
            body = {"error": {"code": frame.code, "message": frame.error_text}}
            turn.refusal = (400, msgspec.json.encode(body))

    def _new_turn(self, at: float, *, is_announced: bool = False) -> RecordedTurn:
        turn = RecordedTurn(at, is_announced)
        self.turns.append(turn)
        return turn


def read_recording(path: Path) -> Recorded:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    decoder = msgspec.json.Decoder(_Line)
    lines: list[_Line] = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line:
            continue
        try:
            lines.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise ConfigurationError(f"{path} is not a recording: see its line {number}.") from None
    try:
        recorded = Recorded(lines)
    except msgspec.DecodeError:
        raise ConfigurationError(f"{path} is not a recording: it has a malformed chunk or frame.") from None
    if not recorded.turns:
        raise ConfigurationError(f"{path} has nothing to replay: no request in it got a stream or a refusal.")
    return recorded
