"""Who speaks in each chat. It may be open in several pages, but the model hears one microphone."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import VoiceTaken

ChatOfUser = tuple[str, str]
"""User and chat."""


class AttachedClient(Protocol):
    def voice_changed(self, chat_id: str, owner: "VoiceOwner | None") -> None: ...


@dataclass(eq=False)
class VoiceOwner:
    client: AttachedClient
    client_id: str | None = None
    """The client's own id, which it also has on its next socket."""
    name: str | None = None
    """What the user's other pages call it."""
    spoke_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def spoke(self) -> None:
        self.spoke_at = asyncio.get_running_loop().time()


class VoiceOwners:
    """The first client that opens its microphone in a chat owns the voice there, until it ends its voice or leaves, or
    has been quiet when another one asks."""

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._owners: dict[ChatOfUser, VoiceOwner] = {}
        self._attached: defaultdict[ChatOfUser, set[AttachedClient]] = defaultdict(set)

    def attach(self, chat: ChatOfUser, client: AttachedClient) -> None:
        """Notify the client who speaks, now and whenever that changes."""
        self._attached[chat].add(client)
        if chat in self._owners:
            client.voice_changed(chat[1], self._owners[chat])

    def detach(self, chat: ChatOfUser, client: AttachedClient) -> None:
        self._attached[chat].discard(client)
        self.release(chat, client)
        if not self._attached[chat]:
            del self._attached[chat]

    def owner_of(self, chat: ChatOfUser) -> VoiceOwner | None:
        return self._owners.get(chat)

    def is_taken(self, chat: ChatOfUser) -> bool:
        """Whether its owner still speaks."""
        owner = self._owners.get(chat)
        return owner is not None and asyncio.get_running_loop().time() - owner.spoke_at < self._quiet_s

    def claim(self, chat: ChatOfUser, new: VoiceOwner) -> None:
        old = self._owners.get(chat)
        is_same_client = old is not None and new.client_id is not None and old.client_id == new.client_id
        if old is not None and old.client is not new.client and not is_same_client and self.is_taken(chat):
            raise VoiceTaken
        self._owners[chat] = new
        self._notify(chat)

    def release(self, chat: ChatOfUser, client: AttachedClient) -> None:
        owner = self._owners.get(chat)
        if owner is not None and owner.client is client:
            del self._owners[chat]
            self._notify(chat)

    def _notify(self, chat: ChatOfUser) -> None:
        for client in self._attached[chat]:
            client.voice_changed(chat[1], self._owners.get(chat))
