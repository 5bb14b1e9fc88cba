"""What becomes of a chat's open calls when its lease is taken and when it is given back."""

import logging
from collections.abc import Collection
from functools import reduce
from typing import Any

import msgspec

from ..adk.calls.gated_call import STORE_DOWN
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.outcomes import outer_of
from ..adk.calls.waiting import GIVEN_UP
from ..protocol import call_record
from ..protocol.call_record import CallKey, CallRecord, NotAllowed, State
from ..store.base import Step, Store, advance

logger = logging.getLogger(__name__)

_NOT_STARTED = "This call was not run: the server failed before it began."
_TAKEN_BACK = "This call was not run: the user edited or regenerated the turn."
_NOT_ASKED = "the run ended before anybody was asked"
_REWOUND = "the user edited or regenerated the turn"


class LeasedCalls:
    def __init__(self, store: Store, recover_s: float) -> None:
        """`recover_s`: how long after its approval a call may still be started."""
        self._store = store
        self._recover_s = recover_s

    # -- when the lease is taken --------------------------------------------------------------------------------------

    async def clean_up_lost(self, leased: LeasedChat) -> None:
        """Calls of a run that was lost, and approvals that no run has acted on for too long."""
        token = leased.lease.token

        def lose(found: CallRecord, _: float) -> CallRecord:
            return call_record.lose_run(found, living_run=token)

        def expire(found: CallRecord, now: float) -> CallRecord:
            return call_record.expire_unclaimed(found, now=now, recover_s=self._recover_s)

        def expire_chain(found: CallRecord, now: float) -> CallRecord:
            return call_record.expire(found, now=now) if found.state is State.IN_CHAIN else found

        def end(found: CallRecord, now: float) -> CallRecord:
            return call_record.end_nested(found, reason=GIVEN_UP, now=now)

        for call, found in list(leased.records.items()):
            moves = (lose, expire, expire_chain, end)
            if reduce(lambda record, move: move(record, leased.now), moves, found) is not found:
                leased.records[call] = await advance(
                    self._store, leased.key, call, *moves, lease=leased.lease, known=leased.known()
                )
                if found.is_nested and outer_of(found) is None:
                    leased.delivered.add(call)  # the session has no place for it

    async def take_back(self, leased: LeasedChat, made: Collection[CallKey]) -> None:
        """After a rewind. `made`: the calls that are still in the session. The others are given up or refused, and
        their outcomes need not be delivered. Somebody may have answered them since the lease was taken."""
        result = {"response": {"error": _TAKEN_BACK}, "state": {}}
        gone = [call for call, found in leased.records.items() if call not in made and found.delivered is not True]
        for call in gone:
            await self._settle(
                leased,
                call,
                lambda found, now: call_record.refuse(found, reason=_REWOUND, now=now),
                lambda found, _: call_record.give_up(found, result=result),
            )
        leased.delivered |= {call for call in gone if leased.records[call].is_final}

    # -- before it is given back --------------------------------------------------------------------------------------

    async def end_run(self, leased: LeasedChat, answered: Collection[CallKey]) -> None:
        """A request run is over. `answered`: the calls that it was to start. Those that it did not are given up,
        unless the run leaves them to the next one."""
        await self._record_questions(leased)
        await self._end_nested(leased)
        if not leased.leaves_calls:
            await self._give_up(leased, set(answered) - leased.not_run)
            await self.end_unasked(leased, leased.unasked)

    async def _end_nested(self, leased: LeasedChat) -> None:
        """They waited in the run, and nobody else can continue them."""

        def end(found: CallRecord, now: float) -> CallRecord:
            return call_record.end_nested(found, reason=GIVEN_UP, now=now)

        for call, found in list(leased.records.items()):
            if found.is_nested and not found.is_final and not leased.is_lost:
                await self._settle(leased, call, lambda found, _: call_record.lose_run(found, living_run=None), end)
                leased.store_result(call)

    async def _record_questions(self, leased: LeasedChat) -> None:
        """The list of chats finds who is waited for in the records alone."""
        about: dict[str, Any] = {"message_id": leased.message_id, "delivered": False, **leased.turn}
        for call, question in leased.questions.items():
            if call not in leased.records:  # a tool that asks by itself is recorded by the gate
                leased.records[call] = msgspec.structs.replace(question, **about)
                try:
                    await self._store.add(leased.records[call])
                except Exception as error:  # whatever a store raises
                    logger.error("question %s was not recorded: %s", call.call_id, type(error).__qualname__)

    async def _give_up(self, leased: LeasedChat, calls: Collection[CallKey]) -> None:
        """Approved calls that nobody will start fail."""
        result = {"response": {"error": _NOT_STARTED}, "state": {}}
        for call in calls:
            found = leased.records.get(call)
            if found is None or found.executor != "server" or found.state not in (State.APPROVED, State.CLAIMED):
                continue
            await self._settle(
                leased,
                call,
                lambda found, _: call_record.lose_run(found, living_run=None),
                lambda found, _: call_record.give_up(found, result=result),
            )

    async def end_unasked(self, leased: LeasedChat, calls: Collection[CallKey]) -> None:
        """Approvers may have decided in their inbox by now: they are asked as soon as the call is recorded."""
        result = {"response": {"error": _NOT_STARTED}, "state": {}}
        for call in calls:
            await self._settle(leased, call, _deny_unasked, lambda found, _: call_record.give_up(found, result=result))

    async def end_not_run(self, leased: LeasedChat) -> None:
        """A run is over, of either mode: what it has told of calls counts. The store may have recorded the start of one
        that it refused to start. Only this run could have run it then, and it has not."""
        result = {"response": {"error": STORE_DOWN}, "state": {}}
        token = leased.lease.token

        def fail(found: CallRecord, _: float) -> CallRecord:
            is_started = found.state is State.STARTED
            return call_record.fail(found, lease_token=token, result=result) if is_started else found

        for call in leased.not_run:
            await self._settle(
                leased,
                call,
                _deny_unasked,
                fail,
                lambda found, _: call_record.lose_run(found, living_run=None),
                lambda found, _: call_record.give_up(found, result=result),
            )

    async def _settle(self, leased: LeasedChat, call: CallKey, *moves: Step) -> None:
        try:
            leased.records[call] = await advance(
                self._store, leased.key, call, *moves, lease=leased.lease, known=leased.known()
            )
        except NotAllowed:
            pass  # somebody was faster
        except Exception as error:  # whatever a store raises
            logger.error("call %s was not settled: %s", call.call_id, type(error).__qualname__)


def _deny_unasked(found: CallRecord, now: float) -> CallRecord:
    return call_record.refuse(found, reason=_NOT_ASKED, now=now)
