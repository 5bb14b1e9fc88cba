"""The application tells how far long-running calls are, and their ends: at any time, once, and to everybody."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.tools import LongRunningFunctionTool, ToolContext

from adk.test_long_running import encoded
from adk_stream_protocol import ChatBridge, NotFound, call_ref
from adk_stream_protocol.adk.calls.long_running import decode_call_ref
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.apps import app_of, user_of
from support.conversations import Conversation, every_store
from support.pages import Page, page, results_told

STATUS = {"status": "in-progress"}
ROWS = {"rows": 1200}


class Exports:
    """A long-running tool, and the names of its calls."""

    def __init__(self, first_word: Any = STATUS) -> None:
        self.refs: list[str] = []
        self.bridge: ChatBridge | None = None
        self.before: Callable[[str], Any] | None = None
        self._first_word = first_word

    async def export(self, tool_context: ToolContext) -> Any:
        """Exports, which takes days."""
        self.refs.append(call_ref(tool_context))
        if self.before is not None:
            await self.before(self.refs[-1])
        return self._first_word

    @property
    def tool(self) -> LongRunningFunctionTool:
        return LongRunningFunctionTool(self.export)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def is_told(at: Page, *texts: str) -> list[dict[str, Any]]:
    """What a reload shows, once the model has said this."""
    async with asyncio.timeout(30):
        while True:
            messages = await at.chat.messages()
            spoken = [part["text"] for message in messages for part in message["parts"] if part["type"] == "text"]
            if set(texts) <= set(spoken):
                return messages
            await asyncio.sleep(0.01)


async def at_rest(at: Page) -> None:
    """Until nothing runs in the chat, and nothing is to be told."""
    service: Any = at.chat.bridge._service  # pyright: ignore[reportPrivateUsage]
    await until(lambda: not service._completions._deliveries and not list(service._leases))


def parts(messages: list[dict[str, Any]], tool: str = "export") -> list[dict[str, Any]]:
    return [part for message in messages for part in message["parts"] if part["type"] == f"tool-{tool}"]


@every_store
async def test_the_end_is_stored_and_told_to_the_model_with_nobody_there(store: Any) -> None:
    exports = Exports()
    async with page([call("export")], "Started.", "All exported.", tools=(exports.tool,), store=store) as at:
        await at.say("Export.")
        assert at.part("export")["preliminary"] is True
        assert await at.chat.bridge.complete_call(exports.refs[0], ROWS) == {"output": ROWS}
        messages = await is_told(at, "All exported.")
        assert len(messages) == 2  # it goes on in the message that began it
        [part] = parts(messages)
        assert (part["output"], part.get("preliminary")) == (ROWS, None)
        assert results_told(at.chat.model)[-1] == ROWS
        assert len(at.chat.model.requests) == 3


async def test_an_end_that_failed_is_an_error() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", "Sorry.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        outcome = {"error": "The disk is full."}
        assert await at.chat.bridge.complete_call(exports.refs[0], error="The disk is full.") == outcome
        [part] = parts(await is_told(at, "Sorry."))
        assert (part["state"], part["errorText"]) == ("output-error", "The disk is full.")
        assert results_told(at.chat.model)[-1] == outcome


async def test_the_first_end_counts_and_a_repeat_gets_it() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        bridge, ref = at.chat.bridge, exports.refs[0]
        outcomes = await asyncio.gather(*(bridge.complete_call(ref, {"rows": number}) for number in range(5)))
        assert all(outcome == outcomes[0] for outcome in outcomes)
        await is_told(at, "All exported.")
        assert await bridge.complete_call(ref, ROWS) == outcomes[0]
        assert await bridge.complete_call(ref, ROWS, final=False) == outcomes[0]
        assert await bridge.complete_call(ref, error="No.") == outcomes[0]
        await at_rest(at)
        assert len(at.chat.model.requests) == 3  # told once


async def test_progress_is_shown_and_nobody_is_told() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", "Done.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        for percent in (10, 20):
            progress = {"percent": percent}
            told = await at.chat.bridge.complete_call(exports.refs[0], progress, final=False)
            assert told == {"output": progress}
        [part] = parts(await at.chat.messages())
        assert (part["output"], part["preliminary"]) == ({"percent": 20}, True)
        assert len(at.chat.model.requests) == 2
        assert [chat["waiting"] for chat in await at.chat.bridge.chats("ann")] == [False]


async def test_progress_during_the_turn_is_in_its_stream() -> None:
    exports = Exports()

    async def progress(ref: str) -> None:
        await at.chat.bridge.complete_call(ref, {"percent": 10}, final=False)

    exports.before = progress
    async with page([call("export")], "Started.", tools=(exports.tool,)) as at:
        told = await at.say("Export.")
        outputs = [chunk["output"] for chunk in told.of_type("tool-output-available")]
        assert outputs[:2] == [{"percent": 10}, STATUS]
        assert all(chunk["preliminary"] for chunk in told.of_type("tool-output-available"))


@pytest.mark.parametrize("first_word", [STATUS, None], ids=["first word", "nothing"])
async def test_an_end_that_comes_before_the_tool_has_returned_is_told_after_its_turn(first_word: Any) -> None:
    exports = Exports(first_word)

    async def end(ref: str) -> None:
        await at.chat.bridge.complete_call(ref, ROWS)

    exports.before = end
    async with page([call("export")], "Started.", "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        [part] = parts(await is_told(at, "All exported."))
        assert part["output"] == ROWS
        assert results_told(at.chat.model)[-1] == ROWS


async def test_an_end_that_comes_during_another_turn_waits_for_it() -> None:
    exports = Exports()
    goes_on = asyncio.Event()

    async def wait() -> dict[str, str]:
        """Waits."""
        await goes_on.wait()
        return {"waited": "yes"}

    script = [call("export")], "Started.", [call("wait")], "Waited.", "All exported."
    async with page(*script, tools=(exports.tool, wait)) as at:
        await at.say("Export.")
        second = asyncio.create_task(at.say("Wait."))
        await until(lambda: len(at.chat.model.requests) == 3)
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        goes_on.set()
        assert (await second).text == "Waited."
        messages = await is_told(at, "All exported.")
        assert [part["text"] for part in messages[1]["parts"] if part["type"] == "text"] == [
            "Started.",
            "All exported.",
        ]


async def test_the_user_s_next_words_bring_an_end_that_was_not_told_yet() -> None:
    exports, record, sessions = Exports(), MemoryStore(), InMemorySessionService()
    async with page([call("export")], "Started.", tools=(exports.tool,), record=record, session_service=sessions) as at:
        await at.say("Export.")
        lost = at.chat.bridge._service._completions  # pyright: ignore[reportPrivateUsage]
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        await lost.drain()  # its worker ends before the chat is free
    model = ScriptedModel(["Exported, I see."])
    agent = LlmAgent(name="helper", model=model, tools=[exports.tool])
    bridge = ChatBridge(agent, user_id=user_of, store=record, session_service=sessions)
    chat = Conversation(app_of(bridge), bridge)
    assert (await chat.post(_said("And?"))).text == "Exported, I see."
    assert results_told(model)[-1] == ROWS
    await bridge.aclose()


def _said(words: str) -> dict[str, Any]:
    message = {"id": "later", "role": "user", "parts": [{"type": "text", "text": words}]}
    return {"id": "c1", "trigger": "submit-message", "messages": [message]}


async def test_another_worker_may_tell_the_end() -> None:
    exports, record, sessions = Exports(), MemoryStore(), InMemorySessionService()
    async with page([call("export")], "Started.", tools=(exports.tool,), record=record, session_service=sessions) as at:
        await at.say("Export.")
        agent = LlmAgent(name="helper", model=ScriptedModel(["All exported."]), tools=[exports.tool])
        other = ChatBridge(agent, user_id=user_of, store=record, session_service=sessions)
        await other.complete_call(exports.refs[0], ROWS)
        [part] = parts(await is_told(at, "All exported."))
        assert part["output"] == ROWS
        await other.aclose()


@pytest.mark.parametrize("place", range(5))
async def test_a_ref_of_something_else_is_unknown(place: int) -> None:
    exports = Exports()
    async with page([call("export")], "Started.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        chat, key = decode_call_ref(exports.refs[0]) or pytest.fail("no ref")
        named = [*chat, *key]
        named[place] = "other"
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_call(encoded(["1", *named]), ROWS)
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_call("nonsense", ROWS)


async def test_an_output_that_adk_cannot_store_is_told_as_it_is_recorded(tmp_path: Path) -> None:
    exports, nested = Exports(), dict[str, Any]()
    for _ in range(300):
        nested = {"in": nested}
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'sessions.db'}") as sessions:
        options: dict[str, Any] = {"tools": (exports.tool,), "session_service": sessions}
        async with page([call("export")], "Started.", "Exported.", "Yes.", **options) as at:
            await at.say("Export.")
            recorded = await at.chat.bridge.complete_call(exports.refs[0], nested)
            [part] = parts(await is_told(at, "Exported."))
            assert part["output"] == recorded["output"]
            at.messages = await at.chat.messages()
            assert (await at.say("Have you?")).text == "Yes."
            assert results_told(at.chat.model)[-1] == recorded["output"]


async def test_a_chat_that_was_deleted_knows_its_calls_no_more() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.chat.bridge.delete("ann", "c1")
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_call(exports.refs[0], ROWS)


async def test_a_call_that_was_taken_back_takes_no_end() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", "Again.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.chat.regenerate("u0", at.messages[-1]["id"])
        outcome = await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        assert outcome == {"error": "Not run: the user edited or regenerated the turn."}
        await at_rest(at)
        assert len(at.chat.model.requests) == 3


async def test_a_rewind_of_later_words_keeps_the_end() -> None:
    exports = Exports()
    script = [call("export")], "Started.", "Hello.", "All exported.", "Hello again."
    async with page(*script, tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.say("Hello.")
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        await is_told(at, "All exported.")
        later = next(message for message in reversed(at.messages) if message["role"] == "user")
        await at.chat.edit(later["id"], "Hello there.")
        assert parts(await at.chat.messages())[0]["output"] == ROWS
        assert ROWS in results_told(at.chat.model)


async def test_the_client_may_not_tell_the_end_of_a_call_that_returned_something() -> None:
    exports = Exports()
    async with page([call("export")], "Started.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        at.part("export").update(state="output-available", output=ROWS)
        at.part("export").pop("preliminary")
        refused = await at.answer()
        assert refused.status == 404
        assert parts(await at.chat.messages())[0]["output"] == STATUS


async def test_a_call_that_returned_nothing_is_ended_by_the_client_or_the_application() -> None:
    exports = Exports(None)
    async with page([call("export")], "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        assert at.states() == ["input-available"]
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        [part] = parts(await is_told(at, "All exported."))
        assert part["output"] == ROWS
        at.output("export", {"rows": 1})
        late = await at.answer()
        assert late.status == 404 or at.part("export")["output"] == ROWS
        assert results_told(at.chat.model)[-1] == ROWS


async def test_a_gated_call_goes_on_after_its_approval() -> None:
    exports = Exports()
    tool = exports.tool
    tool._require_confirmation = True  # pyright: ignore[reportPrivateUsage]
    async with page([call("export")], "Started.", "All exported.", tools=(tool,)) as at:
        await at.say("Export.")
        at.decide("export")
        await at.answer()
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        [part] = parts(await is_told(at, "All exported."))
        assert (part["output"], part["approval"]["approved"]) == (ROWS, True)


async def test_an_error_is_an_end_without_an_output() -> None:
    async with page() as at:
        for options in ({"output": 1, "error": "No."}, {"error": "No.", "final": False}):
            with pytest.raises(ValueError, match="An error is the end"):
                await at.chat.bridge.complete_call("ref", **options)
