"""Clients that speak the older frames: one chat and one stream on each socket.

Their requests are those of all sockets, and so are the logs that they read. But they answer in mid-stream, so the end
of a segment that waits for them is kept back, and the next segment of the message goes on without a `start`.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import msgspec

from ...chunk_log import ChunkLog, LogReader
from ...errors import BridgeError
from ...protocol import frames, older_frames
from ...protocol.older_frames import OlderPing, Target
from .live_requests import LiveRequests
from .outbox import Outbox
from .socket_client import SocketClient
from .socket_listener import SocketListener
from .socket_requests import SocketRequests
from .voice_owners import VoiceOwners

_START = b'{"type":"start"'
_ENDS = (b'{"type":"finish"', b'{"type":"abort"', b'{"type":"error"')


class _Edge(msgspec.Struct, rename="camel"):
    """The first or the last chunk of a segment."""

    message_id: str = ""
    finish_reason: str = ""


class OlderStream:
    """All that the client reads, segment after segment."""

    def __init__(self, outbox: Outbox) -> None:
        self.message_id: str | None = None
        """The message whose stream is open."""
        self._outbox = outbox
        self._kept_back: bytes | None = None

    @property
    def waits(self) -> bool:
        """Whether its last segment has ended, because the client is to answer."""
        return self._kept_back is not None

    def put(self, chunk: bytes) -> None:
        if chunk.startswith(_START):
            self._begin(chunk)
        elif chunk.startswith(_ENDS):
            self._end(chunk)
        else:
            self._send(chunk)

    def _begin(self, chunk: bytes) -> None:
        message_id = msgspec.json.decode(chunk, type=_Edge).message_id
        if message_id == self.message_id:
            self._kept_back = None
            return
        self.close()
        self.message_id = message_id
        self._send(chunk)

    def _end(self, chunk: bytes) -> None:
        if msgspec.json.decode(chunk, type=_Edge).finish_reason == "tool-calls":
            self._kept_back = chunk
        else:
            self._send(chunk)
            self._done()

    def close(self, error: BridgeError | None = None) -> None:
        """Nobody waits for an answer any more. `error`: why, if something has failed."""
        if self._kept_back is not None:
            if error is None:
                self._send(self._kept_back)
            else:
                self._outbox.put(older_frames.encode_older_error(error))
            self._done()

    def _done(self) -> None:
        self._outbox.put(older_frames.DONE)
        self.message_id = self._kept_back = None

    def refuse(self, error: BridgeError, *, is_all: bool) -> None:
        """`is_all`: whether the client waits for nothing else."""
        self._outbox.put(older_frames.encode_older_error(error))
        if is_all and self.message_id is None:
            self._outbox.put(older_frames.DONE)

    def _send(self, chunk: bytes) -> None:
        self._outbox.put(older_frames.encode_older(chunk))


@dataclass(frozen=True, eq=False)
class OlderClient(SocketClient):
    stream: OlderStream = field(kw_only=True)
    waiting_for: set[str] = field(default_factory=set[str], kw_only=True)
    """The requests that are under way."""

    def send(self, kind: str, **fields: Any) -> None:
        """These clients know none of our own frames."""

    def refuse(self, request_id: str, error: BridgeError) -> None:
        self.stream.refuse(error, is_all=self.waiting_for <= {request_id})


class OlderListener(SocketListener):
    def __init__(self, client: OlderClient, voices: VoiceOwners) -> None:
        super().__init__(client, voices)
        self.on_turn: Callable[[str, str], None] = lambda chat_id, message_id: None
        self.on_end: Callable[[str, BridgeError | None], None] = lambda chat_id, error: None

    def turn(self, chat_id: str, message_id: str, user_message_id: str) -> None:
        self.on_turn(chat_id, message_id)

    def failed(self, chat_id: str, error: BridgeError) -> None:
        self.on_end(chat_id, error)

    def ended(self, chat_id: str) -> None:
        self.on_end(chat_id, None)


class OlderRequests(SocketRequests):
    """Requests begin at once, and are read one after the other: two answers may go on in one segment."""

    def __init__(self, client: OlderClient, listener: OlderListener, known: LiveRequests) -> None:
        super().__init__(client, listener, known)
        self._older = client
        self._one_at_a_time = asyncio.Lock()
        self._read: WeakSet[ChunkLog] = WeakSet()
        listener.on_turn = self._turn
        listener.on_end = self._close_after_the_others

    def _begin(self, frame: frames.Request, work: Callable[[], Awaitable[None]], *, has_begun: bool = True) -> None:
        self._older.waiting_for.add(frame.request_id)
        super()._begin(frame, work, has_begun=has_begun)

    def _ended(self, frame: frames.Request) -> None:
        super()._ended(frame)
        self._older.waiting_for.discard(frame.request_id)

    async def _stream(self, request_id: str, log: ChunkLog, reader: LogReader, sequence: int) -> None:
        chat_id = self._under_way[request_id].chat_id
        async with self._one_at_a_time:
            if log not in self._read:
                self._read.add(log)
                await super()._stream(request_id, log, reader, sequence)
            stream = self._older.stream
            if stream.message_id is not None and stream.waits:
                self._look_for_more(chat_id, stream.message_id)

    def _look_for_more(self, chat_id: str, message_id: str) -> None:
        """The session was faster than this reader: it goes on already, or has ended."""
        client = self._client
        if client.service.live_voice(client.user, chat_id) is None:
            self._older.stream.close()  # as request mode ends its streams
        else:
            self._carry_on(chat_id, message_id)

    def _put_chunk(self, request_id: str, sequence: int, chunk: bytes) -> None:
        self._older.stream.put(chunk)

    def _put_end(self, request_id: str) -> None:
        """The stream has its own."""

    # -- what nobody here asked for -----------------------------------------------------------------------------------

    def _turn(self, chat_id: str, message_id: str) -> None:
        """A call of this message was answered elsewhere, or has expired. Other messages are left to the history."""
        if message_id == self._older.stream.message_id:
            self._carry_on(chat_id, message_id)
        else:
            self._close_after_the_others(chat_id)

    def _carry_on(self, chat_id: str, message_id: str) -> None:
        client = self._client
        log = client.service.running(client.user, chat_id, message_id)
        if log is not None and log not in self._read:
            frame = frames.Resume(new_id(), chat_id)
            reader = LogReader(log, client.limits.max_send_bytes)
            self._begin(frame, lambda: self._stream(frame.request_id, log, reader, 0))

    def _close_after_the_others(self, chat_id: str, error: BridgeError | None = None) -> None:
        async def close() -> None:
            async with self._one_at_a_time:
                self._older.stream.close(error)

        self._begin(frames.Resume(new_id(), chat_id), close)


class OlderDialect:
    def __init__(self, client: SocketClient, voices: VoiceOwners, known: LiveRequests) -> None:
        stream = OlderStream(client.outbox)
        self.client = OlderClient(
            client.surface, client.websocket, client.user, client.outbox, client.has_signed_out, stream=stream
        )
        self.listener = OlderListener(self.client, voices)
        self.requests = OlderRequests(self.client, self.listener, known)
        self._chat_id = client.websocket.query_params.get("chat") or f"chat-{new_id()}"

    def decode(self, text: str) -> "frames.Send | OlderPing | frames.Refused":
        return older_frames.decode_older(text, Target(self._chat_id, new_id()), self.client.limits)

    def act_on(self, frame: "frames.Send | OlderPing") -> None:
        if isinstance(frame, OlderPing):
            self.client.outbox.put(older_frames.encode_older_pong(frame))
        else:
            self.requests.begin_send(frame)


def new_id() -> str:
    return secrets.token_urlsafe(12)
