"""How the outcomes of calls get into ADK's session, where no run puts them there by itself."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from google.adk.events import Event

from ...loop_share import LoopShare
from ...protocol import call_record
from ...protocol.call_record import CallKey, CallRecord, ChatKey, NotAllowed, State
from ...protocol.live_effects import Why
from ...store.base import Store, advance, load_results
from ..session import Chat, kept_events
from .gated_call import NOT_BEGUN
from .leased_chat import LeasedChat
from .resumption import lost_call_events, outcome_events, question_events
from .session_calls import SessionCall, find_session_calls


async def deliver_outcomes(store: Store, chat: Chat, leased: LeasedChat) -> None:
    """Before the user's next message: expire calls of browsers and chains whose time is up, and append all outcomes
    that the session does not have. Loads the session only if there may be such outcomes."""
    for call, found in list(leased.records.items()):
        if found.state in (State.APPROVED, State.IN_CHAIN) and call_record.expire(found, now=leased.now) is not found:
            with suppress(NotAllowed):
                leased.records[call] = await advance(
                    store, chat.key, call, lambda found, now: call_record.expire(found, now=now), known=leased.known()
                )
    if not any(found.is_final and found.delivered is not True for found in leased.records.values()):
        return
    session = await chat.load()
    if session is not None:
        calls = await find_session_calls(chat, session.events, leased.records.values())
        ended = [call for call in calls if call.record.is_final]
        owed = [call for call in ended if call.is_undelivered]  # some again: a rewind has taken their results back
        owed = await with_results(store, chat.key, owed, leased.records)
        nested = {key for key, found in leased.records.items() if found.is_nested and found.is_final}
        kept = await kept_events(session.events, LoopShare()) if nested else []
        await chat.append([*outcome_events(owed), *lost_call_events(kept, leased.records)], session)
        leased.delivered |= {call.key for call in ended} | nested


async def deliver_again(store: Store, chat: Chat, leased: LeasedChat, kept: list[Event]) -> None:
    """After a rewind. It takes back everything after one message, and so also late results of calls that it keeps."""
    calls = await find_session_calls(chat, kept, leased.records.values())
    owed = [call for call in calls if call.is_undelivered and call.record.is_final]
    await chat.append(outcome_events(await with_results(store, chat.key, owed, leased.records)))


async def with_results(
    store: Store, chat: ChatKey, calls: Sequence[SessionCall], records: dict[CallKey, CallRecord]
) -> list[SessionCall]:
    """The calls with their records, and with results that the store did not read before."""
    await load_results(store, chat, records, [call.key for call in calls])
    return [replace(call, record=records.get(call.key, call.record)) for call in calls]


async def refuse_call(store: Store, chat: ChatKey, call: CallKey, reason: str) -> None:
    """Record that nobody will answer this call."""
    with suppress(NotAllowed):
        await advance(store, chat, call, lambda found, now: call_record.refuse(found, reason=reason, now=now))


async def stop_call(store: Store, leased: LeasedChat, call: CallKey) -> None:
    """Record that nobody answers this call, and that nobody runs it if it is approved by now. What has begun goes
    on."""
    result = {"response": {"error": NOT_BEGUN}, "state": {}}
    with suppress(NotAllowed):
        leased.records[call] = await advance(
            store,
            leased.key,
            call,
            lambda found, now: call_record.refuse(found, reason=Why.STOPPED, now=now),
            lambda found, _: call_record.give_up(found, result=result),
        )


async def withdraw_call(store: Store, leased: LeasedChat, call: CallKey) -> None:
    """Record that the model took this call back, unless it has begun."""
    with suppress(NotAllowed):
        leased.records[call] = await advance(store, leased.key, call, lambda found, _: call_record.withdraw(found))


async def leave_calls_pending(store: Store, chat: Chat, leased: LeasedChat) -> None:
    """At the end of a live session. What it has asked gets the events that request mode would have left, so that
    either mode can continue."""
    recorded = {found.call: found for found in (await store.read(chat.key)).records}
    session = await chat.load() if any(found.approval_id for found in recorded.values()) else None
    if session is not None:
        asked = await find_session_calls(chat, session.events, recorded.values())
        # Outcomes are stored here only where a call of the same message still waits. In all other messages the next run
        # continues the call at once, and gives the outcome to the model.
        is_open = [call for call in asked if not call.has_result and not call.record.is_final]
        waiting = {call.asked_by.id for call in is_open if not call.record.is_work}
        ended = [call for call in asked if call.is_undelivered and call.record.is_final]
        ended = [call for call in ended if call.asked_by.id in waiting]
        delivered = {call.key for call in ended}
        questions = question_events(call for call in asked if call.key not in delivered)
        ended = await with_results(store, chat.key, ended, recorded)
        await chat.append([*questions, *outcome_events(ended)], session)
        leased.delivered |= delivered
