"""Answers that arrive while their turn is taken back: each call is settled with what the store has, and whoever
answered is told so at once, while the other turn runs."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import AgentTool

from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.testing import ScriptedModel, call
from support.pages import Slow, Till
from support.workers import Workers, workers

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own
]

PAY = [call("pay", amount=5)]
TAKEN_BACK = "This call was not run: the user edited or regenerated the turn."


class Rewinding(InMemorySessionService):
    """A rewind takes a moment; its news is lost if it is told so."""

    is_lossy = False

    async def append_event(self, session: Session, event: Event) -> Event:
        if not event.actions.rewind_before_invocation_id:
            return await super().append_event(session, event)
        await asyncio.sleep(0.3)
        stored = await super().append_event(session, event)
        if self.is_lossy:
            self.is_lossy = False
            raise ConnectionError
        return stored


async def approved_meanwhile(staff: Workers, *, is_other_worker: bool) -> "tuple[Any, asyncio.Task[Any]]":
    """What the other tab is told, and the edited turn, which goes on."""
    at = staff.page()
    await at.say("Pay.")
    tab = staff.page() if is_other_worker else await at.second_tab()
    tab.messages = at.messages
    editing = asyncio.create_task(at.chat.edit("u0", "Something else."))
    await asyncio.sleep(0.1)
    body = {"id": "c1", "messages": at.messages, "messageId": at.messages[-1]["id"]}
    at.decide("pay")
    answer = await tab.chat.post(body)
    return answer, editing


@pytest.mark.parametrize("is_other_worker", [True, False], ids=["another worker", "this worker"])
async def test_an_approval_during_an_edit_is_settled_while_the_edited_turn_still_works(is_other_worker: bool) -> None:
    till, work = Till(), Slow()

    async def draw() -> dict[str, Any]:
        """Draws."""
        return await work.pay(0)

    script = PAY, [call("draw")], "Drawn."
    async with workers(*script, tools=(till.gated, draw), sessions=Rewinding()) as staff:
        answer, editing = await approved_meanwhile(staff, is_other_worker=is_other_worker)
        assert [chunk["errorText"] for chunk in answer.of_type("tool-output-error")] == [TAKEN_BACK]
        assert asyncio.get_running_loop().time() < 5
        assert not editing.done()
        assert await staff.states() == [State.FAILED]
        work.go_on.set()
        assert (await editing).text == "Drawn."
        assert [entry.state for entry in await staff.trail()] == ["pending", "approved", "failed"]
        assert till.paid == []


@pytest.mark.parametrize("is_other_worker", [True, False], ids=["another worker", "this worker"])
async def test_an_approval_during_an_edit_leaves_what_the_edited_turn_asks_open(is_other_worker: bool) -> None:
    """It asks inside an agent, so that it keeps the chat."""
    till = Till()
    cashier = LlmAgent(name="cashier", description="Pays.", model=ScriptedModel([PAY, "Paid."]), tools=[till.gated])
    script = PAY, [call("cashier", request="Pay 5.")], "Well."
    async with workers(*script, tools=(till.gated, AgentTool(cashier)), sessions=Rewinding()) as staff:
        answer, editing = await approved_meanwhile(staff, is_other_worker=is_other_worker)
        assert [chunk["errorText"] for chunk in answer.of_type("tool-output-error")] == [TAKEN_BACK]
        assert asyncio.get_running_loop().time() < 5
        await editing
        assert await staff.states() == [State.FAILED, State.PENDING]
        assert till.paid == []


async def test_a_call_whose_turn_was_taken_back_without_news_of_it_is_told_as_taken_back() -> None:
    till, sessions = Till(), Rewinding()
    async with workers(PAY, "Other words.", tools=(till.gated,), sessions=sessions) as staff:
        at = staff.page()
        await at.say("Pay.")
        sessions.is_lossy = True
        assert (await at.chat.edit("u0", "Something else.")).status == 503
        assert (await at.chat.edit("u0", "Something else.")).text == "Other words."
        [found] = await staff.records()
        assert (found.state, found.reason) == (State.DENIED, "the user edited or regenerated the turn")


async def test_what_an_edit_of_unknown_words_finds_open_stays_open() -> None:
    till = Till()
    async with workers(PAY, "Other words.", tools=(till.gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        assert (await at.chat.edit("never-seen", "Something else.")).text == "Other words."
        assert await staff.states() == [State.PENDING]
