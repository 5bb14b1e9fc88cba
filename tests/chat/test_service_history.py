"""The history is what the client saw, and an answer that is just ending is found by whoever reloads."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol.testing import Answer, call
from live.live_pages import live_world
from support.conversations import folded, hanging
from support.pages import Page, Slow, Till, page

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
RUNNING = "x-adk-running"
STYLES = ("approval-request", "confirmation-tool")
ORIGIN = "https://app.example.com"


def seen(_: Any, __: Any) -> Any:
    """A `prepare` hook that shows one key of the state."""
    return {"send_state": ["seen"]}


async def remember(tool_context: ToolContext) -> dict[str, Any]:
    """Remembers."""
    tool_context.state["seen"] = tool_context.state.get("seen", 0) + 1
    tool_context.state["secret"] = "not for the page"
    return {}


# -- what was shown ---------------------------------------------------------------------------------------------------


async def test_state_that_was_shown_is_shown_after_a_reload() -> None:
    async with page([call("remember")], "Done.", tools=(remember,), prepare=seen) as at:
        answer = await at.say("Hello.")
        assert [chunk["data"] for chunk in answer.of_type("data-adk-state")] == [{"seen": 1}]
        await at.is_what_a_reload_shows()


async def test_a_continuation_that_fails_leaves_no_step_behind_that_the_client_does_not_have() -> None:
    def fails(_: int) -> None:
        raise ConnectionError

    async with page(PAY, "Never said.", tools=(Till(fails).gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        assert (await at.answer()).types == ["start", "tool-output-error", "error"]
        assert (await at.chat.messages())[-1]["parts"] == at.messages[-1]["parts"]


async def test_state_that_was_not_shown_is_not_shown_after_a_reload_either() -> None:
    async with page([call("remember")], "Done.", tools=(remember,)) as at:
        await at.say("Hello.")
        assert not [part for part in (await at.chat.messages())[-1]["parts"] if part["type"] == "data-adk-state"]


async def test_state_that_was_shown_after_an_approval_is_shown_after_a_reload() -> None:
    tool = FunctionTool(remember, require_confirmation=True)
    async with page([call("remember")], "Done.", tools=(tool,), prepare=seen) as at:
        await at.say("Hello.")
        at.decide("remember")
        answer = await at.answer()
        assert [chunk["data"] for chunk in answer.of_type("data-adk-state")] == [{"seen": 1}]
        await at.is_what_a_reload_shows()


async def test_a_continued_answer_shows_the_state_that_its_first_request_asked_for() -> None:
    asked = iter([{"send_state": ["seen"]}, {}])
    tool = FunctionTool(remember, require_confirmation=True)
    async with page([call("remember")], "Done.", tools=(tool,), prepare=lambda *_: next(asked)) as at:
        await at.say("Hello.")
        at.decide("remember")
        answer = await at.answer()
        assert [chunk["data"] for chunk in answer.of_type("data-adk-state")] == [{"seen": 1}]


# -- how it was asked -------------------------------------------------------------------------------------------------


def agree(at: Page, style: str) -> None:
    if style == "confirmation-tool":
        at.output("adk_request_confirmation", {"confirmed": True})
    else:
        at.decide("pay")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("default", [None, *STYLES])
async def test_the_style_that_a_request_named_is_that_of_the_history(style: str, default: Any) -> None:
    async with page(PAY, "Paid.", tools=(Till().gated,), approval_style=default) as at:
        await at.say("Pay.", approvalStyle=style)
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("style", STYLES)
async def test_the_style_that_a_request_named_is_that_of_the_history_after_the_answer(style: str) -> None:
    async with page(PAY, "Paid.", tools=(Till().gated,)) as at:
        await at.say("Pay.", approvalStyle=style)
        agree(at, style)
        await at.answer()
        await at.is_what_a_reload_shows()


async def test_a_continued_answer_keeps_its_style_without_naming_it_again() -> None:
    replies = [PAY, [call("pay", amount=6)], "Paid."]
    async with page(*replies, tools=(Till().gated,)) as at:
        await at.say("Pay.", approvalStyle="confirmation-tool")
        at.output("adk_request_confirmation", {"confirmed": True})
        second = await at.answer()
        assert not second.of_type("tool-approval-request")
        assert [chunk["toolName"] for chunk in second.of_type("tool-input-start")] == [
            "pay",
            "adk_request_confirmation",
        ]
        await at.is_what_a_reload_shows()


async def test_two_answers_of_one_chat_keep_their_own_styles() -> None:
    replies = [PAY, [call("pay", amount=6)]]
    async with page(*replies, tools=(Till().gated,)) as at:
        await at.say("Pay.", approvalStyle="confirmation-tool")
        await at.say("Pay again.", approvalStyle="approval-request")
        await at.is_what_a_reload_shows()


# -- an answer that runs ----------------------------------------------------------------------------------------------


async def history(at: Page, **headers: str) -> httpx.Response:
    return await at.chat.request("GET", "/messages", headers=headers)


async def stream(at: Page, message_id: str | None, user: str = "ann") -> httpx.Response:
    query = f"?message={message_id}" if message_id is not None else ""
    return await at.chat.of(user=user).request("GET", f"/stream{query}")


def read(response: httpx.Response) -> Answer:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n") if line.startswith("data: ")]
    return Answer(200, [json.loads(line) for line in lines if line != "[DONE]"], raw=response.text)


async def test_the_history_names_the_answer_that_it_leaves_out() -> None:
    model, agent = hanging("Hel", "lo.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.say("Hello."))
        await model.hangs.wait()
        told = await history(at)
        assert [message["role"] for message in told.json()] == ["user"]
        model.go_on.set()
        assert told.headers[RUNNING] == (await saying).message_id


async def test_the_history_of_a_chat_in_which_nothing_runs_names_no_answer() -> None:
    async with page("Hello.") as at:
        await at.say("Hello.")
        assert RUNNING not in (await history(at)).headers


async def test_the_history_names_an_answer_that_goes_on_after_an_approval() -> None:
    slow = Slow()
    async with page(PAY, "Paid.", tools=(slow.gated,)) as at:
        asked = await at.say("Pay.")
        assert RUNNING not in (await history(at)).headers
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        assert (await history(at)).headers[RUNNING] == asked.message_id
        slow.go_on.set()
        await answering
        assert RUNNING not in (await history(at)).headers


async def test_the_history_of_a_live_session_names_the_answer_that_it_leaves_out() -> None:
    slow = Slow()
    async with live_world(PAY, "Paid.", tools=(slow.pay,)) as world, world.socket() as at:
        saying = asyncio.create_task(at.say("Pay."))
        await slow.started.wait()
        running = (await history(at)).headers[RUNNING]
        slow.go_on.set()
        assert running == (await saying).message_id
        assert RUNNING not in (await history(at)).headers


async def test_pages_of_other_origins_may_read_which_answer_runs() -> None:
    async with page("Hello.", allowed_origins=[ORIGIN]) as at:
        await at.say("Hello.")
        headers = (await history(at, origin=ORIGIN)).headers
        assert RUNNING in headers["access-control-expose-headers"]


# -- an answer by its id ----------------------------------------------------------------------------------------------


async def test_an_answer_is_read_by_its_id_while_it_runs() -> None:
    model, agent = hanging("Hel", "lo.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.say("Hello."))
        await model.hangs.wait()
        reading = asyncio.create_task(stream(at, (await history(at)).headers[RUNNING]))
        await asyncio.sleep(0.1)
        model.go_on.set()
        told = await reading
        assert told.status_code == 200
        assert folded(read(told)) == folded(await saying)


async def test_a_reload_in_the_moment_in_which_an_answer_ends_finds_it() -> None:
    model, agent = hanging("Hel", "lo.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.say("Hello."))
        await model.hangs.wait()
        told = await history(at)
        model.go_on.set()
        answer = await saying
        assert len(told.json()) == 1
        missed = await stream(at, told.headers[RUNNING])
        assert missed.status_code == 200
        assert folded(read(missed)) == folded(answer)


async def test_a_continued_answer_is_read_whole_by_its_id_after_its_end() -> None:
    slow = Slow()
    async with page(PAY, "Paid.", tools=(slow.gated,)) as at:
        await at.say("Pay.")
        at.decide("pay")
        answering = asyncio.create_task(at.answer())
        await slow.started.wait()
        running = (await history(at)).headers[RUNNING]
        slow.go_on.set()
        await answering
        message = folded(read(await stream(at, running)))
        assert [part["output"] for part in message["parts"] if "toolCallId" in part] == [{"paid": 5}]
        assert message["parts"][-1]["text"] == "Paid."


async def test_an_answer_of_a_live_session_is_read_by_its_id_after_its_end() -> None:
    async with live_world("Hello you.") as world, world.socket() as at:
        answer = await at.say("Hello.")
        told = await stream(at, answer.message_id)
        assert told.status_code == 200
        assert read(told).text == "Hello you."


async def test_after_its_end_an_answer_is_not_read_without_its_id() -> None:
    async with page("Hello.") as at:
        await at.say("Hello.")
        assert (await stream(at, None)).status_code == 204


async def test_an_answer_is_read_by_its_id_for_a_minute_after_its_end() -> None:
    async with page("Hello.") as at:
        answer = await at.say("Hello.")
        await asyncio.sleep(59)
        assert (await stream(at, answer.message_id)).status_code == 200
        await asyncio.sleep(2)
        assert (await stream(at, answer.message_id)).status_code == 204


@pytest.mark.parametrize("when", ["while it runs", "after its end"])
async def test_nobody_else_reads_an_answer_by_its_id(when: str) -> None:
    model, agent = hanging("Hel", "lo.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.say("Hello."))
        await model.hangs.wait()
        running = (await history(at)).headers[RUNNING]
        if when == "after its end":
            model.go_on.set()
            await saying
        assert (await stream(at, running, user="eve")).status_code == 204
        model.go_on.set()
        await saying


@pytest.mark.parametrize("message_id", ["no-such", ""])
async def test_an_id_that_no_answer_has_reads_nothing(message_id: str) -> None:
    model, agent = hanging("Hel", "lo.")
    async with page(agent=agent) as at:
        saying = asyncio.create_task(at.say("Hello."))
        await model.hangs.wait()
        assert (await stream(at, message_id)).status_code == 204
        model.go_on.set()
        await saying
