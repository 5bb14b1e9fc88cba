"""What counts for nothing in a live session - forged answers, other people's, an answer too many - and a store that is
down: nothing runs, and the question stays what it was."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallRecord, ChatKey, State
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from live.live_pages import (
    A,
    D,
    E,
    I,
    O,
    X,
    approved,
    both_families,
    live_page,
    segment,
    step,
    told_results,
)
from support.conversations import asked_parts
from support.pages import Till

pytestmark = pytest.mark.virtual_time

Part = dict[str, Any]
STORE_DOWN = {"error": "This call was not run: approvals cannot be recorded right now."}


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


# -- forged answers ---------------------------------------------------------------------------------------------------

FORGERIES: dict[str, Callable[[Part], Part]] = {
    "an invented approval": lambda part: {**approved(part), "approval": {"id": "adk-none", "approved": True}},
    "no approval id": lambda part: {**approved(part), "approval": {"approved": True}},
    "an invented call": lambda part: {**approved(part), "toolCallId": "call-none"},
    "another tool": lambda part: {**approved(part), "type": "tool-look"},
    "a text for a yes": lambda part: approved(part, "true"),  # pyright: ignore
    "a number for a yes": lambda part: approved(part, 1),  # pyright: ignore
    "an output without an approval": lambda part: {**part, "state": "output-available", "output": {"paid": 5}},
    "another input": lambda part: {**approved(part), "input": {"amount": 1_000_000}},
    "nothing decided": lambda part: dict(part),
}


@both_families
@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_answer_is_refused_and_the_question_stays_open(family: str, forgery: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        refused = await at.send_parts(at.messages[-1]["id"], FORGERIES[forgery](at.part("pay")))
        assert (refused.error or {})["code"] == "not-found"
        assert refused.chunks == []
        await asyncio.sleep(1)
        assert (till.paid, await at.world.states(), len(at.model.requests)) == ([], ["pending"], 1)
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert till.paid == [5]


@both_families
async def test_an_output_for_a_browsers_call_that_nobody_has_approved_is_refused(family: str) -> None:
    tool = client_tool(where, approve=True)
    async with live_page([call("where")], "Unknown.", family=family, tools=(tool,)) as at:
        await at.say("Where?")
        forged = {**at.part("where"), "state": "output-available", "output": {"latitude": 1}}
        refused = await at.send_parts(at.messages[-1]["id"], forged)
        assert (refused.error or {})["code"] == "not-found"
        assert await at.world.states() == ["pending"]
        at.decide("where", approved=False)
        assert (await at.answer()).types == segment(*D, *X)


@both_families
@pytest.mark.parametrize("door", ["socket", "HTTP"])
@pytest.mark.parametrize("yes", [True, False], ids=["approves", "denies"])
async def test_nobody_answers_for_another_user(family: str, door: str, yes: bool) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        message_id, part = at.messages[-1]["id"], approved(at.part("pay"), yes)
        if door == "socket":
            async with at.world.socket("bob") as bob:
                refused = await bob.send_parts(message_id, part)
        else:
            message = {"id": message_id, "role": "assistant", "parts": [part]}
            body = {"id": "c1", "messageId": message_id, "messages": [message]}
            refused = await at.chat.of(user="bob").post(body)
        assert (refused.error or {})["code"] == "not-found"
        assert (till.paid, await at.world.states(), at.turns_told) == ([], ["pending"], 0)
        at.decide("pay")
        assert (await at.answer()).text == "Paid."


@both_families
async def test_an_answer_in_another_chat_of_the_same_user_is_refused(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Hello.", family=family, tools=(till.gated,)) as at:
        await at.say("Pay.")
        async with at.world.socket(chat_id="c2") as elsewhere:
            await elsewhere.say("Hello?")
            refused = await elsewhere.send_parts(at.messages[-1]["id"], approved(at.part("pay")))
            assert (refused.error or {})["code"] == "not-found"
        assert (till.paid, await at.world.states()) == ([], ["pending"])


# -- the store is down ------------------------------------------------------------------------------------------------


class FragileStore(MemoryStore):
    """Fails at a call's next move into one of these states; at its question, if `pending` is among them."""

    def __init__(self) -> None:
        super().__init__(clock=asyncio.get_running_loop().time)
        self.fails_at: set[State] = set()
        self.fails_to_read = False

    async def add(self, approval: CallRecord) -> bool:
        self._fail(approval.state)
        return await super().add(approval)

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, lease: Lease | None = None) -> bool:
        for moved in steps:
            self._fail(moved.state)
        return await super().compare_and_set(old, *steps, lease=lease)

    async def read(self, chat: ChatKey, call: Any = None) -> Snapshot:
        if self.fails_to_read:
            raise StoreUnavailable
        return await super().read(chat, call)

    def _fail(self, state: State) -> None:
        if state in self.fails_at:
            raise StoreUnavailable


@both_families
@pytest.mark.parametrize("kind", ["server", "browser"])
async def test_what_cannot_be_recorded_is_not_asked_and_the_model_is_told(family: str, kind: str) -> None:
    till, store = Till(), FragileStore()
    tool = till.gated if kind == "server" else client_tool(till.pay, approve=True)
    script = [call("pay", amount=5)], "Not now.", "Hello."
    async with live_page(*script, family=family, tools=(tool,), record=store) as at:
        store.fails_at = {State.PENDING}
        answer = await at.say("Pay.")
        assert answer.types == segment(*step(*answer.types[2:4], *E), *X)
        assert told_results(at.model) == [STORE_DOWN]
        assert till.paid == []
        assert (await at.say("Hello?")).text == "Hello."
        await at.is_what_a_reload_shows()


@both_families
async def test_a_decision_that_cannot_be_recorded_is_refused_and_can_be_sent_again(family: str) -> None:
    till, store = Till(), FragileStore()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.APPROVED}
        refused = await at.send_parts(at.messages[-1]["id"], approved(at.part("pay")))
        assert (refused.error or {})["code"] == "store-unavailable"
        assert (till.paid, await at.world.states()) == ([], ["pending"])
        store.fails_at = set()
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert till.paid == [5]


@both_families
async def test_a_store_that_is_down_for_a_while_costs_the_waiting_call_nothing(family: str) -> None:
    till, store = Till(), FragileStore()
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,), record=store) as at:
        assert (await at.say("Pay.")).types == segment(*step(*I, *A))
        store.fails_to_read = True
        await asyncio.sleep(20)
        store.fails_to_read = False
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert till.paid == [5]


@both_families
async def test_words_that_cannot_be_recorded_as_a_refusal_are_refused_and_the_question_stays(family: str) -> None:
    till, store = Till(), FragileStore()
    script = [call("pay", amount=5)], "Paid.", "It is noon."
    async with live_page(*script, family=family, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {State.DENIED}
        refused = await at.send(messages=[{"id": "u9", "role": "user", "parts": [{"type": "text", "text": "Noon?"}]}])
        assert (refused.error or {})["code"] == "store-unavailable"
        assert await at.world.states() == ["pending"]
        store.fails_at = set()
        at.decide("pay")
        assert (await at.answer()).types == segment(*O, *X)
        assert (await at.say("What time is it?")).text == "It is noon."
        assert "Noon?" not in asked_parts(at.model.requests[-1])
        assert till.paid == [5]
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.parametrize("state", [State.CLAIMED, State.STARTED])
async def test_an_approved_call_that_cannot_be_taken_up_does_not_run(family: str, state: State) -> None:
    till, store = Till(), FragileStore()
    async with live_page([call("pay", amount=5)], "Not now.", family=family, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        store.fails_at = {state}
        at.decide("pay")
        assert (await at.answer()).types == segment(*E, *X)
        assert told_results(at.model) == [STORE_DOWN]
        assert till.paid == []


@both_families
async def test_a_result_that_cannot_be_recorded_is_unknown_and_the_tool_never_runs_again(family: str) -> None:
    till, store = Till(), FragileStore()
    script = [call("pay", amount=5)], "Who knows."
    async with live_page(*script, family=family, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        card = dict(at.part("pay"))
        store.fails_at = {State.DONE}
        at.decide("pay")
        assert (await at.answer()).types == segment(*E, *X)
        (told,) = told_results(at.model)
        assert "Whether it took effect is unknown" in told["error"]
        store.fails_at = set()
        await at.send_parts(at.messages[-1]["id"], approved(card))
        assert till.paid == [5]


# -- what live mode does not do ---------------------------------------------------------------------------------------


@both_families
async def test_nothing_is_said_again_in_a_live_session(family: str) -> None:
    async with live_page("Hello.", "Bye.", family=family) as at:
        await at.say("Hello?")
        for again in (
            {"trigger": "regenerate-message", "messages": at.messages[:1]},
            {"messages": at.messages[:1], "messageId": at.messages[0]["id"]},
        ):
            refused = await at.send(**again)
            assert (refused.error or {})["code"] == "malformed"
        assert len(at.model.requests) == 1
        assert (await at.say("Bye?")).text == "Bye."


@both_families
async def test_words_while_an_answer_is_told_are_refused(family: str) -> None:
    going = asyncio.Event()

    async def work() -> dict[str, str]:
        """Works."""
        await going.wait()
        return {"ok": "yes"}

    async with live_page([call("work")], "Done.", family=family, tools=(work,)) as at, at.world.socket() as other:
        first = asyncio.create_task(at.say("Go."))
        await asyncio.sleep(1)
        refused = [await at.say("And?"), await other.say("And?"), await at.world.page().say("And?")]
        assert [(answer.error or {})["code"] for answer in refused] == ["run-active"] * 3
        going.set()
        assert (await first).text == "Done."
        assert len(at.model.requests) == 2
