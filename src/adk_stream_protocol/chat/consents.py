"""The answers to requests for credentials, which come from the application and never from a page."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import msgspec

from ..adk.calls.consent_inside import Given, hand_over, take_back
from ..adk.calls.credentials import GRANTED, answer_of_consent, answer_of_key, is_asked_with, state_of
from ..adk.calls.leased_chat import LeasedChat
from ..adk.chats import Chats
from ..adk.event_parts import CREDENTIAL
from ..adk.session import Chat
from ..errors import NotFound
from ..protocol import call_record
from ..protocol.call_record import CallKey, CallRecord, NotAllowed, State
from ..protocol.chunks import SdkVersion
from ..store.base import Store, advance
from .leases import ChatLeases
from .prepared import decode_prepared
from .segments import Continuation, Segments
from .unasked_turns import OnTurn

_AT_ONCE = 100  # chats that are looked at together


class Consents:
    def __init__(self, store: Store, chats: Chats, leases: ChatLeases, segments: Segments, on_turn: OnTurn) -> None:
        self._store = store
        self._chats = chats
        self._leases = leases
        self._segments = segments
        self._on_turn = on_turn

    async def give_consent(self, user: str, callback_url: str) -> None:
        """The provider has sent the user to this address of the application."""
        state = state_of(callback_url)
        if state is None:
            raise NotFound
        chat, record = await self._find(user, lambda record: is_asked_with(record, state))
        if record.is_nested:
            await self._answer_inside(chat, record.call, {"callback_url": callback_url})
        else:
            await self._answer(chat, record.call, lambda arguments: answer_of_consent(arguments, callback_url))

    async def give_key(self, user: str, request_id: str, api_key: str) -> None:
        chat, record = await self._find(user, lambda record: record.call.call_id == request_id)
        if record.is_nested:
            await self._answer_inside(chat, record.call, {"api_key": api_key})
        else:
            await self._answer(chat, record.call, lambda arguments: answer_of_key(arguments, api_key))

    async def _find(self, user: str, is_meant: Callable[[CallRecord], bool]) -> tuple[Chat, CallRecord]:
        """Among the requests that wait in chats of this user, and nobody else's."""
        keys = [self._chats.key(user, session.id) for session in await self._chats.newest(user)]
        for place in range(0, len(keys), _AT_ONCE):
            listed = await self._store.overview(keys[place : place + _AT_ONCE])
            for key in (key for key, found in listed.items() if found.is_waiting):
                for record in (await self._store.read(key)).records:
                    if record.tool == CREDENTIAL and record.state is State.APPROVED and is_meant(record):
                        return self._chats.open(user, key.chat_id), record
        raise NotFound

    async def _answer_inside(self, chat: Chat, call: CallKey, given: Given) -> None:
        """The call waits in a run, here or in another worker: what is given must be there when the record says so."""
        run = self._leases.get(chat.key)
        if run is not None:
            run.leased.given.setdefault(call, given)
        else:
            await hand_over(chat.runner.session_service, chat.key, call, given)
        try:
            await advance(self._store, chat.key, call, lambda found, now: _granted(found, now=now))
        except NotAllowed:  # expired, refused, or answered meanwhile
            if run is None:
                await take_back(chat.runner.session_service, chat.key, call)
            raise NotFound from None
        if run is not None and run.leased.observer is not None:
            run.leased.observer.wake()

    async def _answer(self, chat: Chat, call: CallKey, encode: Callable[[Any], dict[str, Any]]) -> None:
        """As soon as the chat is free: the tool runs again, and the message goes on."""
        run = self._leases.get(chat.key)
        if run is not None:
            await run.end_when_idle()
        leased = await self._leases.wait_for(chat.key, frozenset({call}))
        if not isinstance(leased, LeasedChat):
            return  # the same answer has come twice
        async with self._segments.ending_at_failure(leased):
            events, calls = await self._segments.read_session(chat, leased)
            asked = next((found for found in calls if found.key == call), None)
            record = leased.records.get(call)
            if asked is None or record is None or record.state is not State.APPROVED:
                raise NotFound  # taken back or answered meanwhile
            request = next(each for each in asked.asked_by.get_function_calls() if each.id == call.call_id)
            done = await advance(
                self._store,
                chat.key,
                call,
                lambda found, now: call_record.take_output(found, by=chat.user_id, result=GRANTED, now=now),
                lease=leased.lease,
            )
            # Only this process has the answer itself. Should the run be lost, the tool asks again.
            answered = msgspec.structs.replace(done, result={"output": encode(request.args)})
            leased.records[call] = answered
            leased.delivered.add(call)
            calls = [replace(found, record=answered) if found.key == call else found for found in calls]
        continuation = Continuation(
            message_id=asked.message_id,
            start_id=asked.message_id,
            prepared=decode_prepared(record.prepared),
            sdk_version=cast(SdkVersion | None, record.sdk_version),
            needs_reader=False,
        )
        await self._segments.continue_message(chat, leased, continuation, events, calls)
        leased.records[call] = done
        current = self._leases.get(chat.key)
        if current is not None and call in current.answered:
            self._on_turn(chat.key, asked.message_id)


def _granted(record: CallRecord, *, now: float) -> CallRecord:
    if not record.waits(now):
        raise NotAllowed("nobody waits for it")
    return call_record.take_output(record, by=record.chat.user_id, result=GRANTED, now=now)
