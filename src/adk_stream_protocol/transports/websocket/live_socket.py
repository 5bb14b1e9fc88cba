"""WebSocket: the frames of a live session in and out, for any number of chats and requests on one socket."""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from ...adk.live.live_message import LiveMessage
from ...adk.live.live_run import LiveRun
from ...bridge import ChatBridge
from ...chunk_log import ChunkLog, LogReader
from ...errors import BridgeError, LocalProtocolError, MalformedRequest, NoUser, RemoteProtocolError, RequestTooLarge
from ...protocol import frames
from ...protocol.frames import OURS, OfficialFrame, OwnFrame
from ...protocol.turn import BodyMeter, is_chat_id
from ..connection import drop, drop_when_stuck, until_closing
from ..security import POLICY_VIOLATION
from .live_requests import LiveRequests, Told
from .outbox import FrameRate, Outbox

logger = logging.getLogger(__name__)

GOING_AWAY, RESTART = 1001, 1012
_MAX_OWN_FRAME = 4096


class LiveSockets:
    """All live sockets of a bridge."""

    def __init__(self, bridge: ChatBridge) -> None:
        self._bridge = bridge
        self._requests = LiveRequests(bridge.limits.live_grace_s)
        self._counts: Counter[str] = Counter()
        self._open: set[LiveSocket] = set()

    async def serve(self, websocket: WebSocket) -> None:
        """One socket, from its handshake to its end."""
        bridge = self._bridge
        user: str | None = None
        if bridge.access.may_open_socket(websocket.headers):
            with suppress(BridgeError):
                user = await bridge.identify(websocket)
        if user is None or self._counts[user] >= bridge.limits.max_sockets_per_user:
            await websocket.close(POLICY_VIOLATION)
            return
        self._counts[user] += 1
        socket = LiveSocket(bridge, websocket, user, self._requests)
        self._open.add(socket)
        try:
            await socket.serve()
        finally:
            self._open.discard(socket)
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]

    def announce_restart(self) -> None:
        """The server goes: clients had better look for another."""
        for socket in self._open:
            socket.tell("reconnect")

    async def aclose(self) -> None:
        await asyncio.gather(*(socket.close(RESTART) for socket in list(self._open)), return_exceptions=True)
        await self._requests.aclose()


class LiveSocket:
    """One client. It listens to the live sessions of the chats that it has to do with."""

    def __init__(self, bridge: ChatBridge, websocket: WebSocket, user: str, requests: LiveRequests) -> None:
        self.is_gone = False
        self.wants_pcm = False
        self._bridge = bridge
        self._limits = bridge.limits
        self._websocket = websocket
        self._user = user
        self._requests = requests
        self._takes_binary = frames.SUBPROTOCOL in websocket.scope.get("subprotocols", ())
        self._files_root = websocket.url.path.rsplit("/", 1)[0]
        self._outbox = Outbox(websocket, bridge.limits)
        self._rate = FrameRate(bridge.limits)
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._chats: set[str] = set()
        self._active: dict[str, tuple[str, ChunkLog]] = {}  # the chats and streams of requests under way
        self._unread: dict[str, LiveMessage] = {}  # turns that nobody asked for, by their chats
        self._is_signed_out = asyncio.Event()
        self._aborted: set[str] = set()  # while they were being opened
        self._attached: str | None = None
        self._audio_rate: int | None = None
        self._stops: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        await self._websocket.accept(subprotocol=frames.SUBPROTOCOL if self._takes_binary else None)
        work: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._outbox.send_all(), name="adk-stream socket"),
            asyncio.create_task(self._receive_all(), name="adk-stream frames"),
            asyncio.create_task(self._outbox.is_full.wait(), name="adk-stream slow reader"),
            asyncio.create_task(self._until_given_up(), name="adk-stream lost"),
            asyncio.create_task(self._until_signed_out(), name="adk-stream login"),
        ]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.is_gone = True
            sending, _, slow, lost, login = work
            is_at_fault = login.done() or self._rate.is_flood
            is_stuck = sending.done() or slow.done() or lost.done()
            tasks = [*work, *self._telling.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for chat_id in self._chats:
                self._bridge.unlisten(self._user, chat_id, self)
            if is_stuck:
                await drop(self._websocket.send)
            await self._shut(POLICY_VIOLATION if is_at_fault else GOING_AWAY)

    async def close(self, code: int) -> None:
        with suppress(TimeoutError):
            await self._outbox.flush()
        await self._shut(code)

    async def _shut(self, code: int) -> None:
        try:
            async with asyncio.timeout(self._limits.send_timeout_s):
                await self._websocket.close(code)
        except TimeoutError:
            await drop(self._websocket.send)
        except (RuntimeError, OSError, WebSocketDisconnect):
            pass  # closed by the other side
        else:
            drop_when_stuck(self._limits.send_timeout_s, self._websocket.send)

    async def _until_given_up(self) -> None:
        await until_closing(self._limits.send_timeout_s, self._websocket.send)

    async def _until_signed_out(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_signed_out.wait(), self._limits.login_check_s)
            if self._is_signed_out.is_set() or not await self._is_signed_in():
                with suppress(TimeoutError):
                    await self._outbox.flush()
                return

    async def _is_signed_in(self) -> bool:
        try:
            return await self._bridge.identify(self._websocket) == self._user
        except BridgeError:
            return False

    # -- frames in ----------------------------------------------------------------------------------------------------

    async def _receive_all(self) -> None:
        while not self._rate.is_flood:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text, binary = message.get("text") or "", message.get("bytes")
            if binary is not None:
                with self._refusing(OURS):
                    await self._hear_binary(binary)
            else:
                with self._refusing(frames.decode_request_id(text)):
                    await self._answer(self._read(text))

    @contextmanager
    def _refusing(self, request_id: str) -> Generator[None]:
        """What goes wrong is told to the client, and the socket lives on."""
        try:
            yield
        except BridgeError as error:
            self._refuse(request_id, error)
        except Exception as error:
            # Its text may quote what the user said, so that only its kind is told.
            logger.error("a live frame failed: %s", type(error).__qualname__)
            self._refuse(request_id, LocalProtocolError())

    def _read(self, text: str) -> OfficialFrame | OwnFrame:
        try:
            if len(text) > _MAX_OWN_FRAME:
                BodyMeter(self._limits).feed(text.encode(errors="replace"))
            frame = frames.decode_frame(text)
        except RemoteProtocolError:
            self._rate.count()
            raise
        self._rate.count_audio() if isinstance(frame, frames.Audio) else self._rate.count()
        if not isinstance(frame, frames.Send | frames.Audio) and len(text) > _MAX_OWN_FRAME:
            raise RequestTooLarge
        return frame

    async def _answer(self, frame: OfficialFrame | OwnFrame) -> None:
        match frame:
            case frames.Send():
                self._begin(frame.request_id, self._send(frame))
            case frames.Resume():
                self._begin(frame.request_id, self._resume(frame))
            case frames.Abort():
                self._abort(frame.request_id)
            case frames.Ping():
                self.tell("pong")
            case frames.Attach():
                self._attach(frame.id)
            case frames.Audio():
                await self._hear(frame.samples())
            case frames.Stop():
                self._stop(self._attached_chat())
            case frames.Interrupt():
                live = self._bridge.live_run(self._user, self._attached_chat())
                if live is not None:
                    live.interrupt()
            case frames.ActivityStart():
                (await self._live()).input.send_activity_start()
            case frames.ActivityEnd():
                (await self._live()).input.send_activity_end()

    def _refuse(self, request_id: str, error: BridgeError) -> None:
        self._outbox.put(frames.encode_error(request_id, error))

    # -- requests -----------------------------------------------------------------------------------------------------

    def _begin(self, request_id: str, work: Coroutine[Any, Any, None]) -> None:
        if request_id in self._telling:
            work.close()
            raise MalformedRequest("This requestId is under way.")

        async def told() -> None:
            try:
                with self._refusing(request_id):
                    await work
            finally:
                self._telling.pop(request_id, None)
                self._active.pop(request_id, None)
                self._aborted.discard(request_id)

        self._telling[request_id] = asyncio.create_task(told(), name=f"adk-stream request {request_id}")

    async def _send(self, frame: frames.Send) -> None:
        asked = hashlib.sha256()
        for message in frame.messages:
            asked.update(message)
        if not await self._is_signed_in():
            self._is_signed_out.set()
            raise NoUser
        self._speak_for(frame.id, frame.body)
        key = (self._user, frame.id, frame.request_id)
        told = await self._requests.open(
            key,
            asked.digest(),
            lambda: self._bridge.open_live_turn(self._websocket, self._user, frame, self._files_root, self),
        )
        self._unread.pop(frame.id, None)
        told.log.require_room(self._limits.max_readers_per_run)
        reader = await told.reader(0, self._limits.max_send_bytes)
        await self._tell(frame.request_id, frame.id, told.log, reader, 0)

    async def _resume(self, frame: frames.Resume) -> None:
        if not is_chat_id(frame.id):
            self._outbox.put(frames.encode_no_active(frame.request_id))
            return
        self._speak_for(frame.id, frame.body)
        key = (self._user, frame.id, frame.request_id)
        told = await self._requests.find(key)
        unread = self._unread.get(frame.id)
        log = told.log if told is not None else self._bridge.running(self._user, frame.id)
        log = log or (unread.last_log if unread is not None else None)
        if log is None or (told is None and frame.last_sequence is not None):
            self._outbox.put(frames.encode_no_active(frame.request_id))
            return
        log.require_room(self._limits.max_readers_per_run)
        if told is None:
            self._unread.pop(frame.id, None)
            told = self._requests.add(key, Told.replaying(log))
        start = 0 if frame.last_sequence is None else frame.last_sequence + 1
        reader = await told.reader(start, self._limits.max_send_bytes)
        self._outbox.put(frames.encode_start(frame.request_id))
        await self._tell(frame.request_id, frame.id, log, reader, start)

    async def _tell(self, request_id: str, chat_id: str, log: ChunkLog, reader: LogReader, sequence: int) -> None:
        self._active[request_id] = (chat_id, log)
        if request_id in self._aborted:
            self._abort(request_id)
        waker = asyncio.Event()
        log.watch(waker)
        try:
            while True:
                for _, chunk in reader.take():
                    self._outbox.put(frames.encode_chunk(request_id, sequence, chunk))
                    sequence += 1
                if reader.is_at_end:
                    self._outbox.put(frames.encode_end(request_id))
                    return
                await self._outbox.has_room()
                if reader.has_more:
                    await asyncio.sleep(0)  # an outbox that has room does not give way to others
                else:
                    waker.clear()
                    await waker.wait()
        finally:
            log.unwatch(waker)

    def _abort(self, request_id: str) -> None:
        active = self._active.get(request_id)
        if active is None:
            if request_id in self._telling:
                self._aborted.add(request_id)
            return
        chat_id, log = active
        if self._limits.abort_stops_run and not log.is_closed:
            self._stop(chat_id)  # the stream tells its end by itself
        elif (task := self._telling.get(request_id)) is not None:
            task.cancel()

    def _stop(self, chat_id: str) -> None:
        task = asyncio.create_task(self._bridge.stop(self._user, chat_id), name="adk-stream stop")
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody else looks at it

    # -- voice --------------------------------------------------------------------------------------------------------

    def _attach(self, chat_id: str) -> None:
        self._speak_for(chat_id, {})
        self._attached = chat_id
        self.tell("attached", id=chat_id)

    def _speak_for(self, chat_id: str, body: dict[str, Any] | None) -> None:
        if not is_chat_id(chat_id):
            raise MalformedRequest("This cannot be the id of a chat.")
        self.wants_pcm = self.wants_pcm or (body or {}).get("pcmChunks") is True
        self._chats.add(chat_id)
        self._bridge.listen(self._user, chat_id, self)

    def _attached_chat(self) -> str:
        if self._attached is None:
            raise MalformedRequest("Attach to a chat first.")
        return self._attached

    async def _live(self) -> LiveRun:
        live = self._bridge.live_run(self._user, self._attached_chat())
        if live is not None and not live.is_ending:
            return live
        return await self._bridge.open_live_voice(
            self._websocket, self._user, self._attached_chat(), self._files_root, self
        )

    async def _hear_binary(self, samples: bytes) -> None:
        self._rate.count_audio()
        if not self._takes_binary:
            raise MalformedRequest(f"Binary frames need the subprotocol {frames.SUBPROTOCOL}.")
        await self._hear(samples)

    async def _hear(self, samples: bytes) -> None:
        if len(samples) > self._limits.max_audio_frame_bytes:
            raise RequestTooLarge("A frame of voice is too large: send less at a time.")
        if len(samples) % 2 or not samples:
            raise MalformedRequest("Voice is 16-bit samples: an even number of bytes.")
        (await self._live()).hear(samples)

    # -- what live sessions tell --------------------------------------------------------------------------------------

    def tell(self, kind: str, **fields: Any) -> None:
        self._outbox.put(frames.encode_own(kind, fields))

    def turn(self, chat_id: str, message: LiveMessage) -> None:
        self._unread[chat_id] = message
        self.tell("turn", id=chat_id, messageId=message.message_id, userMessageId=message.user_message_id)

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None:
        if chat_id == self._attached:
            self.tell("transcript", id=chat_id, role=role, messageId=message_id, text=text, final=is_final)

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None:
        if chat_id != self._attached:
            return
        if not self._takes_binary:
            self.tell("audio", id=chat_id, rate=rate, data=frames.encode_audio(samples))
            return
        if rate != self._audio_rate:
            self._audio_rate = rate
            self.tell("audio", id=chat_id, rate=rate)
        self._outbox.put(samples)

    def audio_clear(self, chat_id: str) -> None:
        if chat_id == self._attached:
            self._outbox.drop_audio()
            self.tell("audio-clear", id=chat_id)
