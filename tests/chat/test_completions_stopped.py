"""Long-running work whose turn was stopped or failed before the session had its first word: the work goes on, and its
end is shown as it is recorded and told."""

import asyncio
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool, ToolContext

from adk_stream_protocol import call_ref
from adk_stream_protocol.testing import call
from chat.test_completions import ROWS, STATUS, parts
from support.pages import page, results_told

pytestmark = pytest.mark.virtual_time


class Exports:
    """A long-running tool, and one beside it that takes its time. ADK stores the results of both together."""

    def __init__(self, *, hangs: bool) -> None:
        self.ref = ""
        self.begun = asyncio.Event()
        self._hangs = hangs

    async def export(self, tool_context: ToolContext) -> dict[str, str]:
        """Exports, which takes days."""
        self.ref = call_ref(tool_context)
        self.begun.set()
        if self._hangs:
            await asyncio.Event().wait()
        return STATUS

    async def look(self) -> None:
        """Looks, for ever."""
        await asyncio.Event().wait()


class Full(InMemorySessionService):
    """Stores no results of tools."""

    is_full = True

    async def append_event(self, session: Any, event: Event) -> Event:
        if self.is_full and event.get_function_responses():
            raise ConnectionError
        return await super().append_event(session, event)


async def shown_and_told(at: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    await at.say("And?")
    return parts(await at.chat.messages()), results_told(at.chat.model)


@pytest.mark.parametrize("when", ["its tool has not returned", "its tool has returned", "it has ended"])
async def test_the_end_of_work_is_shown_though_its_turn_was_stopped_before(when: str) -> None:
    exports = Exports(hangs=when == "its tool has not returned")
    tools = (LongRunningFunctionTool(exports.export), exports.look)
    async with page([call("export"), call("look")], *["Well."] * 5, tools=tools) as at:
        saying = asyncio.create_task(at.say("Export."))
        await exports.begun.wait()
        await asyncio.sleep(1)
        if when == "it has ended":
            await at.chat.bridge.complete_call(exports.ref, ROWS)
        await at.chat.stop()
        await saying
        if when == "its tool has returned":
            assert [(part["output"], part["preliminary"]) for part in at.parts("export")] == [
                ({"status": "pending"}, True)
            ]
            await at.is_what_a_reload_shows()
        assert await at.chat.bridge.complete_call(exports.ref, ROWS) == {"output": ROWS}
        [shown], told = await shown_and_told(at)
        assert (shown["output"], shown.get("preliminary")) == (ROWS, None)
        assert ROWS in told


async def test_the_end_of_work_is_shown_though_its_turn_failed_before() -> None:
    exports, sessions = Exports(hangs=False), Full()
    tools = (LongRunningFunctionTool(exports.export),)
    async with page([call("export")], *["Well."] * 5, tools=tools, session_service=sessions) as at:
        await at.say("Export.")
        assert [(part["output"], part["preliminary"]) for part in at.parts("export")] == [({"status": "pending"}, True)]
        await at.is_what_a_reload_shows()
        sessions.is_full = False
        await at.chat.bridge.complete_call(exports.ref, ROWS)
        [shown], told = await shown_and_told(at)
        assert (shown["output"], shown.get("preliminary")) == (ROWS, None)
        assert ROWS in told
