"""One live socket: its life from the handshake to the close code, and the frames that come in."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from ...protocol import frames
from ...protocol.frames import OURS, OfficialFrame, OwnFrame
from ...protocol.older_frames import is_older
from ..connection import drop, drop_when_stuck, until_closing
from ..security import POLICY_VIOLATION
from ..surface import Surface
from .frame_rate import FrameRate
from .live_requests import LiveRequests
from .older_dialect import OlderDialect
from .outbox import Outbox
from .socket_client import SocketClient
from .socket_listener import SocketListener
from .socket_requests import SocketRequests
from .socket_voice import SocketVoice
from .voice_owners import VoiceOwners

_Decoded = TypeVar("_Decoded")

GOING_AWAY = 1001
_UNREAD_S = 1  # how long a client that reads nothing keeps a server that stops


@dataclass(frozen=True)
class SharedBySockets:
    """What all sockets of one bridge share."""

    requests: LiveRequests
    voices: VoiceOwners


class LiveSocket:
    """Any number of chats and requests of one client."""

    def __init__(self, surface: Surface, websocket: WebSocket, user: str, shared: SharedBySockets) -> None:
        self._client = SocketClient(surface, websocket, user, Outbox(websocket, surface.limits))
        self._listener = SocketListener(self._client, shared.voices)
        self._requests = SocketRequests(self._client, self._listener, shared.requests)
        self._voice = SocketVoice(self._client, self._listener, shared.voices)
        self._rate = FrameRate(surface.limits)
        self._shared = shared
        self._older: OlderDialect | None = None
        self._has_received = False

    # -- its life -----------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        client, websocket = self._client, self._client.websocket
        await websocket.accept(subprotocol=frames.SUBPROTOCOL if client.takes_binary else None)
        work: list[asyncio.Task[Any]] = [
            asyncio.create_task(client.outbox.send_all(), name="adk-stream socket"),
            asyncio.create_task(self._receive_all(), name="adk-stream frames"),
            asyncio.create_task(client.outbox.is_stuck.wait(), name="adk-stream slow reader"),
            asyncio.create_task(until_closing(client.limits.send_timeout_s, websocket.send), name="adk-stream lost"),
            asyncio.create_task(client.until_signed_out(), name="adk-stream login"),
        ]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._listener.leave_all()
            sending, _, slow, lost, login = work
            is_at_fault = login.done() or self._rate.is_flood
            is_stuck = sending.done() or slow.done() or lost.done()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            await self._requests.leave_all()
            if is_stuck:
                await drop(websocket.send)
            await self._shut(POLICY_VIOLATION if is_at_fault else GOING_AWAY, client.limits.send_timeout_s)

    async def announce_restart(self) -> None:
        """Returns when the client's connection has taken it."""
        self._client.send("reconnect")
        with suppress(TimeoutError):
            async with asyncio.timeout(_UNREAD_S):
                await self._client.outbox.flush(_UNREAD_S)

    async def close(self, code: int) -> None:
        """The server stops."""
        with suppress(TimeoutError):
            await self._client.outbox.flush(_UNREAD_S)
        await self._shut(code, _UNREAD_S)

    async def _shut(self, code: int, timeout_s: float) -> None:
        websocket = self._client.websocket
        try:
            async with asyncio.timeout(timeout_s):
                await websocket.close(code)
        except TimeoutError:
            await drop(websocket.send)
        except (RuntimeError, OSError, WebSocketDisconnect):
            pass  # closed by the other side
        else:
            drop_when_stuck(timeout_s, websocket.send)

    # -- frames in ----------------------------------------------------------------------------------------------------

    async def _receive_all(self) -> None:
        while not self._rate.is_flood:
            message = await self._client.websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text, binary = message.get("text") or "", message.get("bytes")
            if binary is not None:
                with self._client.refusing(OURS):
                    self._rate.count_audio()
                    await self._voice.hear_binary(binary)
            else:
                await self._receive(text)

    async def _receive(self, text: str) -> None:
        if not self._has_received:
            self._has_received = True
            if await self._decoded(is_older, text):
                self._speak_older()
        if self._older is not None:
            await self._receive_older(self._older, text)
            return
        received = await self._decoded(lambda text: frames.decode_received(text, self._client.limits), text)
        with self._client.refusing(received.request_id):
            self._rate.count_audio() if isinstance(received, frames.Audio) else self._rate.count()
            if isinstance(received, frames.Refused):
                raise received.error
            await self._act_on(received)

    def _speak_older(self) -> None:
        older = self._older = OlderDialect(self._client, self._shared.voices, self._shared.requests)
        self._client, self._listener, self._requests = older.client, older.listener, older.requests
        self._voice = SocketVoice(older.client, older.listener, self._shared.voices)

    async def _receive_older(self, older: OlderDialect, text: str) -> None:
        received = await self._decoded(older.decode, text)
        with self._client.refusing(OURS):
            self._rate.count()
            if isinstance(received, frames.Refused):
                raise received.error
            older.act_on(received)

    async def _decoded(self, decode: Callable[[str], _Decoded], text: str) -> _Decoded:
        is_large = len(text) > self._client.limits.threaded_decode_bytes
        return await asyncio.to_thread(decode, text) if is_large else decode(text)

    async def _act_on(self, frame: OfficialFrame | OwnFrame) -> None:
        match frame:
            case frames.Send():
                self._requests.begin_send(frame)
            case frames.Resume():
                self._requests.begin_resume(frame)
            case frames.Abort():
                self._requests.abort(frame.request_id)
            case frames.Ping():
                self._client.send("pong")
            case frames.Attach():
                self._listener.attach(frame.id)
            case frames.Detach():
                self._requests.leave(frame.id)
                self._listener.detach(frame.id)
                self._client.send("detached", id=frame.id)
            case frames.VoiceStart():
                await self._voice.start(frame)
            case frames.VoiceEnd():
                self._voice.end()
            case frames.Audio():
                await self._voice.hear(frame.samples())
            case frames.Stop():
                self._requests.stop_run(self._listener.attached_chat())
            case frames.Interrupt():
                self._voice.interrupt()
            case frames.ActivityStart():
                await self._voice.send_activity_start()
            case frames.ActivityEnd():
                await self._voice.send_activity_end()
