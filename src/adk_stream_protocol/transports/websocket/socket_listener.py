"""What live sessions notify one client of: turns it did not ask for, transcripts, the model's voice."""

from collections import Counter, defaultdict
from typing import Any

from ...errors import BridgeError, MalformedRequest, TooMany
from ...protocol import frames
from ...protocol.turn import CHAT_ID_RULE, is_chat_id
from .socket_client import SocketClient
from .voice_owners import ChatOfUser, VoiceOwner, VoiceOwners

_TOO_MANY_CHATS = "This socket has too many chats. Detach from one that you no longer read, then try again."
_MOST_UNREAD = 4  # messages of one chat


class SocketListener:
    """Listens to the live sessions of all chats that its client has named, until it detaches from them."""

    def __init__(self, client: SocketClient, voices: VoiceOwners) -> None:
        self.wants_pcm = False
        """Whether voice comes in the stream, too."""
        self.unread: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The last messages of each chat that no request of this client asked for, until one reads them."""
        self.requests: Counter[str] = Counter()
        """How many requests are under way in each chat."""
        self._client = client
        self._voices = voices
        self._chats: dict[str, None] = {}  # the chat that was named last is the last one
        self._attached: dict[str, None] = {}  # likewise
        self._is_gone = False
        self._announced_audio: tuple[str, int] | None = None  # the chat and the rate of the binary frames

    # -- the chats that it listens to ---------------------------------------------------------------------------------

    def listen(self, chat_id: str, body: dict[str, Any] | None = None) -> None:
        """`body`: what a request sends beside its messages."""
        if not is_chat_id(chat_id):
            raise MalformedRequest(CHAT_ID_RULE)
        self.wants_pcm = self.wants_pcm or (body or {}).get("pcmChunks") is True
        if chat_id not in self._chats and len(self._chats) >= self._client.limits.max_chats_per_socket:
            self.detach(self._idle_chat())
        self._chats.pop(chat_id, None)
        self._chats[chat_id] = None
        self._client.service.listen(self._client.user, chat_id, self)

    def _idle_chat(self) -> str:
        """The one that its client has not used for the longest time, among those that it does not need any more."""
        for chat_id in self._chats:
            if chat_id not in self._attached and not self.requests[chat_id]:
                return chat_id
        raise TooMany(_TOO_MANY_CHATS)

    def listens_to(self, chat_id: str) -> bool:
        return chat_id in self._chats and not self._is_gone

    def leave_all(self) -> None:
        """The socket has ended."""
        self._is_gone = True
        for chat_id in list(self._chats):
            self.detach(chat_id)

    def attach(self, chat_id: str) -> None:
        """Voice and transcripts are those of this chat from now on."""
        self.listen(chat_id)
        self._client.service.let_speak(self._client.user, chat_id, self)
        if self._attached and not self._speaks_for(chat_id):
            self._voices.release(self._key(self.attached_chat()), self)
        self._attached.pop(chat_id, None)
        self._attached[chat_id] = None
        self._client.send("attached", id=chat_id)
        self._voices.attach(self._key(chat_id), self)

    def detach(self, chat_id: str) -> None:
        """The client reads this chat no more. Voice and transcripts are those of the chat that was attached before."""
        self._chats.pop(chat_id, None)
        self._attached.pop(chat_id, None)
        self._voices.detach(self._key(chat_id), self)
        self.unread.pop(chat_id, None)
        self._client.service.unlisten(self._client.user, chat_id, self)

    def attached_chat(self) -> str:
        if not self._attached:
            raise MalformedRequest("Attach to a chat first: send `attach` with its `id`.")
        return next(reversed(self._attached))

    def _key(self, chat_id: str) -> ChatOfUser:
        return self._client.user, chat_id

    def _speaks_for(self, chat_id: str) -> bool:
        return bool(self._attached) and chat_id == self.attached_chat()

    def voice_changed(self, chat_id: str, owner: VoiceOwner | None) -> None:
        """Notifies the client who speaks in a chat that it is attached to."""
        if owner is None or owner.client is self:
            self._client.send("voice", id=chat_id, owner=None if owner is None else "you")
        else:
            self._client.send("voice", id=chat_id, owner="other", name=owner.name)

    # -- what live sessions call --------------------------------------------------------------------------------------

    def turn(self, chat_id: str, message_id: str, user_message_id: str) -> None:
        self.unread[chat_id].pop(message_id, None)
        self.unread[chat_id][message_id] = None
        while len(self.unread[chat_id]) > _MOST_UNREAD:
            self.unread[chat_id].pop(next(iter(self.unread[chat_id])))
        self._client.send("turn", id=chat_id, messageId=message_id, userMessageId=user_message_id)

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None:
        if self._speaks_for(chat_id):
            self._client.send("transcript", id=chat_id, role=role, messageId=message_id, text=text, final=is_final)

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None:
        if not self._speaks_for(chat_id):
            return
        if not self._client.takes_binary:
            self._client.send("audio", id=chat_id, rate=rate, data=frames.encode_audio(samples))
            return
        if self._announced_audio != (chat_id, rate):
            self._announced_audio = (chat_id, rate)
            self._client.send("audio", id=chat_id, rate=rate)
        self._client.outbox.put(samples)

    def failed(self, chat_id: str, error: BridgeError) -> None:
        self._client.send("error", id=chat_id, code=error.code, message=str(error))

    def ended(self, chat_id: str) -> None:
        """Its streams have their own ends."""

    def audio_clear(self, chat_id: str) -> None:
        if self._speaks_for(chat_id):
            self._client.outbox.drop_audio()
            self._client.send("audio-clear", id=chat_id)
