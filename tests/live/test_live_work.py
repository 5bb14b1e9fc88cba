"""Long-running calls in live mode: the model is told their ends through its queue, and request mode goes on with what a
session has left."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ScriptedModel, call
from chat.test_completions import ROWS, STATUS, Exports, parts
from live.live_pages import CHAT, both_families, live_page, told_results, until
from support.apps import runner_of, user_of

pytestmark = pytest.mark.virtual_time


@both_families
async def test_the_end_is_told_to_the_model_of_an_open_session_and_stored(family: str) -> None:
    exports = Exports()
    script = [call("export")], "Started.", "All exported."
    async with live_page(*script, family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        assert told_results(at.model) == [STATUS]
        assert await at.world.bridge.complete_call(exports.refs[0], ROWS) == {"output": ROWS}
        assert (await at.unasked_turn()).of_type("tool-output-available")[-1]["output"] == ROWS
        assert (await at.unasked_turn()).text == "All exported."
        assert told_results(at.model)[-1] == ROWS
        [part] = parts(await at.chat.messages())
        assert (part["output"], part.get("preliminary")) == (ROWS, None)
        assert await at.world.bridge.complete_call(exports.refs[0], {"rows": 1}) == {"output": ROWS}
        assert len(at.model.requests) == 3


@both_families
async def test_progress_is_shown_at_once(family: str) -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.world.bridge.complete_call(exports.refs[0], {"percent": 10}, final=False)
        shown = (await at.unasked_turn()).of_type("tool-output-available")[-1]
        assert (shown["output"], shown["preliminary"]) == ({"percent": 10}, True)
        await at.is_what_a_reload_shows()


@both_families
async def test_the_conversation_goes_on_meanwhile(family: str) -> None:
    exports = Exports()
    script = [call("export")], "Started.", "It is noon.", "All exported."
    async with live_page(*script, family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        assert (await at.say("What time is it?")).text == "It is noon."
        await at.world.bridge.complete_call(exports.refs[0], ROWS)
        await until(lambda: ROWS in told_results(at.model))
        assert parts(await at.chat.messages())[0]["output"] == ROWS


@both_families
@pytest.mark.parametrize("first_word", [STATUS, None], ids=["first word", "nothing"])
async def test_an_end_that_comes_before_the_tool_has_returned_is_told_once(family: str, first_word: Any) -> None:
    exports = Exports(first_word)

    async def end(ref: str) -> None:
        await at.world.bridge.complete_call(ref, ROWS)

    exports.before = end
    script = [call("export")], "Started.", "All exported."
    async with live_page(*script, family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        await until(lambda: ROWS in told_results(at.model))
        assert [result for result in told_results(at.model) if result == ROWS] == [ROWS]
        assert told_results(at.model)[-1] == ROWS
        assert parts(await at.chat.messages())[0]["output"] == ROWS


async def test_what_another_worker_was_told_reaches_the_session() -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        sessions = runner_of(at.world.bridge).session_service
        agent = LlmAgent(name="helper", model=ScriptedModel(["Not here."]), tools=[exports.tool])
        other = ChatBridge(agent, user_id=user_of, store=at.world.store, session_service=sessions)
        await other.complete_call(exports.refs[0], ROWS)
        await until(lambda: ROWS in told_results(at.model))
        await other.aclose()


async def test_an_end_after_the_session_is_told_in_request_mode() -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.world.bridge.stop("ann", "c1")
        await at.world.bridge.complete_call(exports.refs[0], ROWS)
        async with asyncio.timeout(60):
            while "All exported." not in str(await at.chat.messages()):
                await asyncio.sleep(0.01)
        assert parts(await at.chat.messages())[0]["output"] == ROWS
        found = {record.call: record for record in (await at.world.store.read(CHAT)).records}
        assert all(record.is_final for record in found.values())


@both_families
async def test_a_call_that_returned_nothing_is_ended_by_the_application(family: str) -> None:
    exports = Exports(None)
    async with live_page([call("export")], "All exported.", family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        assert at.states() == ["input-available"]
        await at.world.bridge.complete_call(exports.refs[0], ROWS)
        await until(lambda: ROWS in told_results(at.model))
        assert parts(await at.chat.messages())[0]["output"] == ROWS


async def test_a_socket_is_told_of_an_end_that_request_mode_goes_on_with() -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", "All exported.", tools=(exports.tool,)) as at:
        page = at.over_http()
        await page.say("Export.")
        at.take_over(page)
        at.client.tell("attach", id="c1")
        await at.client.own("attached")
        await at.world.bridge.complete_call(exports.refs[0], ROWS)
        assert (await at.unasked_turn()).text.endswith("All exported.")
        assert at.part("export")["output"] == ROWS
        assert len(await at.chat.messages()) == 2
