"""What the application reports of long-running calls: how far they are, and their ends."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.long_running import decode_call_ref, find_work
from ..adk.calls.outcomes import can_be_stored
from ..adk.calls.session_calls import SessionCall
from ..adk.chats import Chats
from ..adk.session import Chat
from ..errors import NotFound, Restarting
from ..protocol import call_record
from ..protocol.call_keys import work_key
from ..protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed
from ..protocol.chunks import plain_json
from ..protocol.nul import without_nul
from ..store.base import Store, advance
from .leases import ChatLeases
from .unasked_turns import UnaskedTurns

logger = logging.getLogger(__name__)

_PATIENCE_S = 1800  # for a chat that another worker runs: a live session there looks for the end by itself
_FORGET_S = 5  # for a deletion that has begun, until it has ended


class CallCompletions:
    def __init__(self, store: Store, chats: Chats, leases: ChatLeases, unasked: UnaskedTurns) -> None:
        self._store = store
        self._chats = chats
        self._leases = leases
        self._unasked = unasked
        self._deliveries: dict[tuple[ChatKey, CallKey], asyncio.Task[None]] = {}

    async def complete(self, ref: str, result: dict[str, Any], *, is_final: bool) -> dict[str, Any]:
        """Record it, then give it to the conversation. Returns what is recorded: `{"output": ...}` or
        `{"error": text}`."""
        named = decode_call_ref(ref)
        if named is None or named[0] not in self._chats:
            raise NotFound
        chat_key, call = named
        chat = self._chats.open(chat_key.user_id, chat_key.chat_id)
        plain = without_nul(plain_json(result, is_cut=not can_be_stored(result)))
        record = await self._record(chat, call, plain, is_final=is_final)
        run = self._leases.get(chat_key)
        is_delivered = run is not None and await run.take_work(record)
        if record.is_final and record.delivered is not True and not is_delivered:
            self._deliver_later(chat, record.call)
        return record.result

    async def _record(self, chat: Chat, call: CallKey, result: dict[str, Any], *, is_final: bool) -> CallRecord:
        def move(found: CallRecord, _: float) -> CallRecord:
            if is_final:
                return call_record.complete(found, result=result)
            return call_record.report(found, output=result["output"])

        own = (await self._store.read(chat.key, call)).find(call)
        # If the tool has returned nothing, the call is the client's, and has a record of its own.
        is_left = own is not None and own.executor == "browser"
        if not is_left and not (await self._store.read(chat.key, work_key(call))).records:
            await self._open_work(chat, call)
        try:
            return await advance(self._store, chat.key, call if is_left else work_key(call), move)
        except NotAllowed:
            raise NotFound from None

    async def _open_work(self, chat: Chat, call: CallKey) -> None:
        """The tool has not returned yet, or the store was down when it did."""
        work = await find_work(chat, call)
        if work is None:
            raise NotFound
        run = self._leases.get(chat.key)
        if run is not None and run.message_id == work.message_id:
            work = msgspec.structs.replace(work, **run.leased.turn)
            run.leased.records[work.call] = work
        await record_late(self._store, self._leases, chat, work)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _deliver_later(self, chat: Chat, call: CallKey) -> None:
        """Once the chat is free: nobody needs to be there."""
        key = chat.key, call
        if key not in self._deliveries:
            task = asyncio.create_task(self._deliver(chat, call), name="adk-stream completed call")
            self._deliveries[key] = task
            task.add_done_callback(lambda _: self._deliveries.pop(key, None))

    async def _deliver(self, chat: Chat, call: CallKey) -> None:
        def choose(undelivered: Sequence[SessionCall]) -> SessionCall | None:
            return next((found for found in undelivered if found.key == call), None)

        try:
            async with asyncio.timeout(_PATIENCE_S):
                place = await self._leases.wait_for(chat.key, frozenset({call}), makes_room=False)
            if isinstance(place, LeasedChat):
                await self._unasked.continue_undelivered(chat, place, choose)
        except Restarting:
            await self._leases.leave(chat.key)
        except Exception as error:  # it is delivered before the user's next message
            logger.error("the end of a long-running call was not delivered: %s", type(error).__qualname__)

    async def drain(self) -> None:
        """What is recorded is delivered by the next process."""
        await self._leases.leave_to_next(self._deliveries)


# -- without the lease of the chat ------------------------------------------------------------------------------------


async def record_late(store: Store, leases: ChatLeases, chat: Chat, record: CallRecord) -> None:
    """Record a call that its run has not recorded, or not yet. Anybody may delete the chat meanwhile, on any worker:
    what is added before its session is gone is forgotten with it (`ChatService.delete`), and all else here. Raises
    `NotFound` if there is nobody to get it."""
    was_recorded = any(entry.call == record.call for entry in await store.audit(chat.key))
    if was_recorded and not (await store.read(chat.key, record.call)).records:
        raise NotFound  # only a deletion forgets records, and it leaves the trail
    await store.add(record)
    if await chat.load(recent=1) is None:
        await _forget(store, leases, chat, record.call)
        raise NotFound


async def _forget(store: Store, leases: ChatLeases, chat: Chat, call: CallKey) -> None:
    """The call of a chat that was deleted: not of a new one that has its id by now, and may run."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_FORGET_S):
            place = await leases.wait_for(chat.key, frozenset({call}), makes_room=False)
            if isinstance(place, LeasedChat):
                try:
                    if await chat.load(recent=1) is None and await store.forget(place.lease):
                        place.records.clear()
                finally:
                    await leases.end(place)
