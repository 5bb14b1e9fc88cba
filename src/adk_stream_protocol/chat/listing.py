"""The list of a user's chats: ADK's list of sessions and one query of the store.

Sessions are loaded only to find a title that the store does not have: once each, for chats of older versions and of
other clients.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

from ..adk.calls.session_calls import open_questions
from ..adk.chats import Chats
from ..adk.title import title_of
from ..protocol.call_record import CallRecord, ChatKey
from ..store.base import Listed, Store

if TYPE_CHECKING:
    from google.adk.sessions import Session

logger = logging.getLogger(__name__)

_RECORDING_S = 10
_LOADS_AT_ONCE = 4  # for all lists together, since a session may be long


class ChatSummary(TypedDict):
    """One line of the list of chats."""

    id: str
    title: str
    updatedAt: str
    waiting: bool


class ChatList:
    def __init__(self, chats: Chats, store: Store, longest: int) -> None:
        self._chats = chats
        self._store = store
        self._longest = longest
        self._loads = asyncio.Semaphore(_LOADS_AT_ONCE)
        self._looks: dict[ChatKey, asyncio.Task[Listed]] = {}

    async def of(self, user: str) -> list[ChatSummary]:
        """The user's newest chats, newest first."""
        shown = (await self._chats.newest(user))[: self._longest]
        keys = [self._chats.key(user, session.id) for session in shown]
        known = dict(await self._store.overview(keys)) if keys else {}
        untitled = [key for key in keys if known[key].title is None]
        for key, found in zip(untitled, await asyncio.gather(*map(self._first_look, untitled)), strict=True):
            known[key] = Listed(found.title, is_waiting=known[key].is_waiting or found.is_waiting)
        return [_summary(session, known[key]) for session, key in zip(shown, keys, strict=True)]

    async def _first_look(self, key: ChatKey) -> Listed:
        """Lists that are asked for at the same time share one look at a chat."""
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = asyncio.create_task(self._look(key), name="adk-stream title")
            look.add_done_callback(lambda _: self._looks.pop(key))
        return await asyncio.shield(look)

    async def _look(self, key: ChatKey) -> Listed:
        """Store what the chat's own runs would have stored: its title, and questions that no tool has asked."""
        try:
            async with self._loads:
                chat = self._chats.open(key.user_id, key.chat_id)
                session = await chat.load()
                title = await title_of(session.events) if session is not None else None
                if session is None or title is None:
                    return Listed(title)
                questions = await open_questions(chat, session.events)
                if questions:
                    await self._record(key, title, questions)
                else:
                    await self._store.keep_title(key, title)
                return Listed(title, is_waiting=bool(questions))
        except Exception as error:  # one chat that cannot be read hides no other
            logger.error("a chat's title was not found: %s", type(error).__qualname__)
            return Listed()

    async def _record(self, key: ChatKey, title: str, questions: Sequence[CallRecord]) -> None:
        """Only the holder of a chat's lease records its calls: a run may be about to record one of these itself. While
        a run has the chat, nothing is stored, and the next list looks again."""
        lease, snapshot = await self._store.acquire(key, _RECORDING_S)
        if lease is not None:
            for question in questions:
                if snapshot.find(question.call) is None:
                    await self._store.add(question)
            await self._store.release(lease, (), title)


def _summary(session: "Session", listed: Listed) -> ChatSummary:
    updated_at = datetime.fromtimestamp(session.last_update_time, UTC).isoformat(timespec="milliseconds")
    return {
        "id": session.id,
        "title": listed.title or "",
        "updatedAt": updated_at.replace("+00:00", "Z"),
        "waiting": listed.is_waiting,
    }
