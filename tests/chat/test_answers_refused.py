"""A refused answer is not recorded, and a recorded one is not refused: also if one request has an approval and the
output that comes with it, which are two lines of the audit trail."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol import ApprovalPolicy, Limits, client_tool
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.conversations import Conversation
from support.pages import Page, Slow, Till
from support.workers import Workers, answer_body, words_body, workers

pytestmark = pytest.mark.virtual_time

PLACE = {"latitude": 1}
KEPT = "Your answer is recorded, but the server cannot continue now. It will continue later."


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


WHERE = client_tool(where, approve=True)


class Goes(MemoryStore):
    """The server begins to go as soon as one of these methods has begun, or has written."""

    at: str = ""
    bridge: Any = None

    async def _go(self, name: str) -> None:
        if self.at == name:
            asyncio.get_running_loop().create_task(self.bridge.drain())
            await asyncio.sleep(1)

    async def compare_and_set(self, old: CallRecord, *steps: CallRecord, **options: Any) -> bool:
        await self._go("before a step")
        is_set = await super().compare_and_set(old, *steps, **options)
        await self._go("after a step")
        return is_set

    async def acquire(self, *args: Any, **options: Any) -> Any:
        await self._go("before the lease")
        acquired = await super().acquire(*args, **options)
        await self._go("after the lease")
        return acquired


async def allowed_and_done(at: Page) -> None:
    await at.say("Where?")
    at.decide("where")
    at.output("where", PLACE)


async def trail(staff: Workers) -> list[tuple[str, str]]:
    return [(entry.tool, entry.state) for entry in await staff.trail()]


async def test_an_approval_and_its_output_are_two_lines_of_the_trail() -> None:
    async with workers([call("where")], "There.", tools=(WHERE,)) as staff:
        at = staff.page()
        await allowed_and_done(at)
        assert (await at.answer()).text == "There."
        assert await trail(staff) == [("where", "pending"), ("where", "approved"), ("where", "done")]
        assert {entry.by for entry in await staff.trail()} == {None, "ann"}


async def test_a_user_with_too_many_runs_has_nothing_recorded() -> None:
    slow = Slow()
    replies = [call("where")], [call("pay", amount=5)], "Paid.", "There."
    async with workers(*replies, tools=(WHERE, slow.pay), limits=Limits(max_runs_per_user=1)) as staff:
        at = staff.page()
        await allowed_and_done(at)
        other = Conversation(at.chat.app, at.chat.bridge)
        paying = asyncio.create_task(other.post({**words_body("Pay."), "id": "c2"}))
        await slow.started.wait()
        refused = await at.chat.post(answer_body(at))
        assert (refused.status, await trail(staff)) == (429, [("where", "pending")])
        slow.go_on.set()
        await paying
        assert (await at.answer()).text == "There."


async def test_an_answer_beside_one_that_does_not_fit_is_not_recorded() -> None:
    policy = ApprovalPolicy(edits={"pay": {"type": "object", "required": ["to"]}})
    calls = [call("where"), call("pay", amount=5)]
    async with workers(calls, "Done.", tools=(WHERE, Till().gated), approvals=policy) as staff:
        at = staff.page()
        await allowed_and_done(at)
        at.decide("pay", payload={"from": "Bob"})
        body = answer_body(at)
        (asked,) = [part for part in body["messages"][-1]["parts"] if part["type"] == "tool-pay"]
        said = {"confirmed": True, "payload": {"from": "Bob"}}
        asked |= {"type": "tool-adk_request_confirmation", "toolCallId": asked["approval"]["id"], "input": {}}
        asked |= {"state": "output-available", "output": said}
        refused = await at.chat.post(body)
        assert (refused.status, await trail(staff)) == (422, [("where", "pending"), ("pay", "pending")])


@pytest.mark.parametrize("when", ["before a step", "after a step", "before the lease", "after the lease"])
@pytest.mark.parametrize("with_output", [True, False], ids=["an approval and an output", "an approval"])
async def test_an_answer_that_comes_as_the_server_goes_is_either_refused_or_recorded(
    when: str, with_output: bool
) -> None:
    async with workers([call("where")], "There.", tools=(WHERE,), store=Goes) as staff:
        at, store = staff.page(), staff.store
        assert isinstance(store, Goes)
        await at.say("Where?")
        at.decide("where")
        if with_output:
            at.output("where", PLACE)
        store.at, store.bridge = when, at.chat.bridge
        answer = await at.chat.post(answer_body(at))
        store.at = ""
        if answer.status == 503:
            assert await staff.states() == [State.PENDING]
            return
        assert await staff.states() == [State.DONE if with_output else State.APPROVED]
        if with_output:
            assert [chunk["errorText"] for chunk in answer.of_type("error")] == [KEPT]
            await at.chat.bridge.drain()
            next_one = staff.page()
            await staff.recover(next_one)
            reload = await next_one.chat.messages()
            assert reload[-1]["parts"][-1]["text"] == "There."
