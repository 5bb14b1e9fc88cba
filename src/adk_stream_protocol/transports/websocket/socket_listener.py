"""What live sessions notify one client of: turns it did not ask for, transcripts, the model's voice."""

from typing import Any

from ...errors import MalformedRequest
from ...protocol import frames
from ...protocol.turn import is_chat_id
from .socket_client import SocketClient


class SocketListener:
    """Listens to the live sessions of all chats that its client has named."""

    def __init__(self, client: SocketClient) -> None:
        self.is_gone = False
        """Whether the socket has ended: it keeps no live session open any more."""
        self.wants_pcm = False
        """Whether voice comes in the stream, too."""
        self.unread: dict[str, str] = {}
        """The last message of each chat that no request of this client asked for, until one reads it."""
        self._client = client
        self._chats: set[str] = set()
        self._attached: str | None = None
        self._audio_rate: int | None = None

    # -- the chats that it listens to ---------------------------------------------------------------------------------

    def listen(self, chat_id: str, body: dict[str, Any] | None = None) -> None:
        """`body`: what a request sends beside its messages."""
        if not is_chat_id(chat_id):
            raise MalformedRequest("This cannot be the id of a chat.")
        self.wants_pcm = self.wants_pcm or (body or {}).get("pcmChunks") is True
        self._chats.add(chat_id)
        self._client.service.listen(self._client.user, chat_id, self)

    def unlisten_all(self) -> None:
        for chat_id in self._chats:
            self._client.service.unlisten(self._client.user, chat_id, self)

    def attach(self, chat_id: str) -> None:
        """Voice and transcripts are those of this chat from now on."""
        self.listen(chat_id)
        self._attached = chat_id
        self._client.send("attached", id=chat_id)

    def attached_chat(self) -> str:
        if self._attached is None:
            raise MalformedRequest("Attach to a chat first.")
        return self._attached

    # -- what live sessions call --------------------------------------------------------------------------------------

    def turn(self, chat_id: str, message_id: str, user_message_id: str) -> None:
        self.unread[chat_id] = message_id
        self._client.send("turn", id=chat_id, messageId=message_id, userMessageId=user_message_id)

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None:
        if chat_id == self._attached:
            self._client.send("transcript", id=chat_id, role=role, messageId=message_id, text=text, final=is_final)

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None:
        if chat_id != self._attached:
            return
        if not self._client.takes_binary:
            self._client.send("audio", id=chat_id, rate=rate, data=frames.encode_audio(samples))
            return
        if rate != self._audio_rate:
            self._audio_rate = rate
            self._client.send("audio", id=chat_id, rate=rate)
        self._client.outbox.put(samples)

    def audio_clear(self, chat_id: str) -> None:
        if chat_id == self._attached:
            self._client.outbox.drop_audio()
            self._client.send("audio-clear", id=chat_id)

    def failed(self, chat_id: str, text: str) -> None:
        self._client.send("error", id=chat_id, code="live-failed", message=text)
