"""The user's voice, from a live socket to the live session of the attached chat."""

from ...chat.live_voice import LiveVoice
from ...errors import MalformedRequest, RequestTooLarge, VoiceTaken
from ...protocol.frames import SUBPROTOCOL, VoiceStart
from ...protocol.messages import ClientStyle
from .socket_client import SocketClient
from .socket_listener import SocketListener
from .voice_owners import ChatOfUser, VoiceOwner, VoiceOwners


class SocketVoice:
    def __init__(self, client: SocketClient, listener: SocketListener, owners: VoiceOwners) -> None:
        self._client = client
        self._listener = listener
        self._owners = owners
        self._refused_by: VoiceOwner | None = None

    async def start(self, frame: VoiceStart) -> None:
        """The client opens its microphone."""
        style, chat_id = frame.style(), self._listener.attached_chat()
        self._claim(VoiceOwner(self._listener, frame.client, frame.name))
        self._client.service.let_speak(self._client.user, chat_id, self._listener)
        await self._client.service.open_live_voice(self._client.caller, chat_id, self._listener, style)

    def end(self) -> None:
        self._owners.release(self._chat(), self._listener)

    async def hear_binary(self, samples: bytes) -> None:
        if not self._client.takes_binary:
            raise MalformedRequest(f"Binary frames need the subprotocol {SUBPROTOCOL}.")
        await self.hear(samples)

    async def hear(self, samples: bytes) -> None:
        if len(samples) > self._client.limits.max_audio_frame_bytes:
            raise RequestTooLarge("A frame of voice is too large: send less at a time.")
        if len(samples) % 2 or not samples:
            raise MalformedRequest("Voice is 16-bit samples: an even number of bytes.")
        if self._may_speak():
            (await self._session()).hear(samples)

    async def send_activity_start(self) -> None:
        if self._may_speak():
            (await self._session()).send_activity_start()

    async def send_activity_end(self) -> None:
        if self._may_speak():
            (await self._session()).send_activity_end()

    def interrupt(self) -> None:
        session = self._running_session()
        if session is not None:
            session.interrupt()

    def _may_speak(self) -> bool:
        """Who speaks first owns the voice. Others are refused once; what comes after that is dropped."""
        chat = self._chat()
        owner = self._owners.owner_of(chat)
        if owner is not None and owner is self._refused_by and self._owners.is_taken(chat):
            return False
        if owner is None or owner.client is not self._listener:
            self._claim(VoiceOwner(self._listener))
        else:
            owner.spoke()
        return True

    def _claim(self, owner: VoiceOwner) -> None:
        try:
            self._owners.claim(self._chat(), owner)
        except VoiceTaken:
            self._refused_by = self._owners.owner_of(self._chat())
            self._listener.voice_changed(self._listener.attached_chat(), self._refused_by)
            raise

    def _chat(self) -> ChatOfUser:
        return self._client.user, self._listener.attached_chat()

    def _running_session(self) -> LiveVoice | None:
        return self._client.service.live_voice(self._client.user, self._listener.attached_chat())

    async def _session(self) -> LiveVoice:
        """The live session of the attached chat, or a new one."""
        client, running = self._client, self._running_session()
        if running is not None and not running.is_ending:
            return running
        chat_id = self._listener.attached_chat()
        return await client.service.open_live_voice(client.caller, chat_id, self._listener, ClientStyle())
