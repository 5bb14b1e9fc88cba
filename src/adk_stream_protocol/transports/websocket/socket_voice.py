"""The user's voice, from a live socket to the live session of the attached chat."""

from ...chat.live_voice import LiveVoice
from ...errors import MalformedRequest, RequestTooLarge
from ...protocol.frames import SUBPROTOCOL
from .socket_client import SocketClient
from .socket_listener import SocketListener


class SocketVoice:
    def __init__(self, client: SocketClient, listener: SocketListener) -> None:
        self._client = client
        self._listener = listener

    async def hear_binary(self, samples: bytes) -> None:
        if not self._client.takes_binary:
            raise MalformedRequest(f"Binary frames need the subprotocol {SUBPROTOCOL}.")
        await self.hear(samples)

    async def hear(self, samples: bytes) -> None:
        if len(samples) > self._client.limits.max_audio_frame_bytes:
            raise RequestTooLarge("A frame of voice is too large: send less at a time.")
        if len(samples) % 2 or not samples:
            raise MalformedRequest("Voice is 16-bit samples: an even number of bytes.")
        (await self._session()).hear(samples)

    async def send_activity_start(self) -> None:
        (await self._session()).send_activity_start()

    async def send_activity_end(self) -> None:
        (await self._session()).send_activity_end()

    def interrupt(self) -> None:
        session = self._running_session()
        if session is not None:
            session.interrupt()

    def _running_session(self) -> LiveVoice | None:
        return self._client.service.live_voice(self._client.user, self._listener.attached_chat())

    async def _session(self) -> LiveVoice:
        """The live session of the attached chat, or a new one."""
        client, running = self._client, self._running_session()
        if running is not None and not running.is_ending:
            return running
        return await client.service.open_live_voice(client.caller, self._listener.attached_chat(), self._listener)
