"""Messages that go on without a request of their client: after a crash, and after decisions of others."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.session_calls import SessionCall, are_delivered
from ..adk.session import Chat
from ..errors import Restarting
from ..limits import Limits
from ..protocol.answers import CallAnswer
from ..protocol.call_record import CallKey, ChatKey, State
from ..protocol.chunks import SdkVersion
from .leases import ChatLeases
from .prepared import decode_prepared
from .segments import Continuation, Segments

if TYPE_CHECKING:
    from google.adk.events import Event


logger = logging.getLogger(__name__)

OnTurn = Callable[[ChatKey, str], None]
"""Called with the id of a message when it goes on."""


class UnaskedTurns:
    def __init__(self, leases: ChatLeases, segments: Segments, limits: Limits, on_turn: OnTurn) -> None:
        self._leases = leases
        self._segments = segments
        self._limits = limits
        self._on_turn = on_turn
        self._going_on: dict[tuple[ChatKey, CallKey], asyncio.Task[None]] = {}

    async def continue_lost(self, chat: Chat, choose: Callable[[Sequence[SessionCall]], SessionCall | None]) -> None:
        """Continue a message whose run was lost, if there is anything to continue."""
        leased = await self._leases.begin(chat.key)
        if leased is not None:
            await self.continue_undelivered(chat, leased, choose)

    async def continue_undelivered(
        self, chat: Chat, leased: LeasedChat, choose: Callable[[Sequence[SessionCall]], SessionCall | None]
    ) -> None:
        """Continue the message of a call whose outcome, or answer, the session does not have, if there is such a
        call."""
        async with self._segments.ending_at_failure(leased):
            events, calls = await self._segments.read_session(chat, leased)
            chosen = choose([call for call in calls if call.is_undelivered and call.is_asked])
        if chosen is None:
            await self._leases.end(leased)
            return
        needs_reader = chosen.record.chain is None and not chosen.record.is_work
        await self._continue(chat, leased, chosen, (events, calls), needs_reader=needs_reader)

    def continue_soon(self, chat: Chat, call: CallKey) -> None:
        """After a decision that did not come from the call's chat."""
        place = chat.key, call
        if place not in self._going_on:
            task = self._going_on[place] = asyncio.create_task(self._continue_decided(chat, call))
            task.add_done_callback(lambda _: self._going_on.pop(place))

    async def _continue_decided(self, chat: Chat, call: CallKey) -> None:
        try:
            await self.continue_decided(chat, call)
        except Restarting:
            await self._leases.leave(chat.key)
        except Exception as error:  # what is approved is found again: see `Recovery`
            logger.error("a chat did not go on after a decision: %s", type(error).__qualname__)

    async def drain(self) -> None:
        """What is decided is acted on by the next process."""
        await self._leases.leave_to_next(self._going_on)

    async def continue_decided(self, chat: Chat, call: CallKey) -> None:
        """Continue a message after a decision that did not come from its client, as soon as the chat is free. A live
        session that waits for the call sees the decision by itself."""
        run, wanted = self._leases.get(chat.key), frozenset([call])
        if run is not None and run.accepts(wanted):
            return
        if run is not None:
            await run.end_when_idle()
        async with asyncio.timeout(self._limits.max_run_s):
            leased = await self._leases.wait_for(
                chat.key, wanted, is_done=lambda records: are_delivered(chat, wanted, records)
            )
        if not isinstance(leased, LeasedChat):
            return
        async with self._segments.ending_at_failure(leased):
            events, calls = await self._segments.read_session(chat, leased)
            decided = next((each for each in calls if each.key == call), None)
        if decided is None or decided.has_result or not decided.record.is_decided:
            await self._leases.end(leased)
            return
        await self._continue(chat, leased, decided, (events, calls), needs_reader=False)

    async def _continue(
        self,
        chat: Chat,
        leased: LeasedChat,
        call: SessionCall,
        session: "tuple[list[Event], Sequence[SessionCall]]",
        *,
        needs_reader: bool,
    ) -> None:
        """Continue the message of the call, with the settings of the turn that made it."""
        record = call.record
        is_released = record.executor == "browser" and record.state is State.APPROVED
        continuation = Continuation(
            message_id=call.message_id,
            start_id=call.message_id,
            prepared=decode_prepared(record.prepared),
            answers=[CallAnswer(asked=call, approved=True)] if is_released else (),
            sdk_version=cast(SdkVersion | None, record.sdk_version),
            needs_reader=needs_reader,
        )
        log = await self._segments.continue_message(chat, leased, continuation, *session)
        if log is not None:
            self._on_turn(chat.key, call.message_id)
