"""An update of a long-running call at any time, in both modes: right, once, and refused where it does not belong."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from google.genai import types

from adk.test_long_running import encoded
from adk_stream_protocol import NotFound
from adk_stream_protocol.adk.calls.long_running import decode_call_ref
from adk_stream_protocol.testing import call
from chat.test_completions import ROWS, Exports, is_told, parts
from live.live_pages import both_families, live_page
from support.conversations import asked_parts
from support.pages import Page, page

both_modes = pytest.mark.parametrize("open_page", [page, live_page], ids=["request", "live"])


class Wait:
    """Keeps a turn open."""

    def __init__(self) -> None:
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

    async def wait(self) -> dict[str, str]:
        """Waits."""
        self.begun.set()
        await self.goes_on.wait()
        return {"waited": "yes"}


def times_told(at: Page) -> int:
    """How often the model was told the end, by what it read last."""
    model: Any = at.chat.model
    return asked_parts(model.requests[-1]).count({"result": ROWS})


@both_modes
@pytest.mark.parametrize("final", [True, False], ids=["end", "progress"])
async def test_what_comes_twice_during_its_own_turn_is_shown_and_told_once(open_page: Any, final: bool) -> None:
    exports, other = Exports(), Wait()
    script = [call("export")], [call("wait")], "Started.", "All exported."
    async with open_page(*script, tools=(exports.tool, FunctionTool(other.wait))) as at:
        turn = asyncio.create_task(at.say("Export."))
        await other.begun.wait()
        bridge, ref = at.chat.bridge, exports.refs[0]
        updates = [bridge.complete_call(ref, ROWS, final=final) for _ in range(2)]
        assert await asyncio.gather(*updates) == [{"output": ROWS}] * 2
        other.goes_on.set()
        assert (await turn).text.startswith("Started.")
        # A live model gets the end at once, before it speaks.
        [part] = parts(await is_told(at, "All exported." if final and open_page is page else "Started."))
        assert (part["output"], part.get("preliminary")) == (ROWS, None if final else True)
        assert times_told(at) == final


@both_families
@pytest.mark.virtual_time
async def test_an_unknown_call_is_refused_while_a_session_is_open(family: str) -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        chat, key = decode_call_ref(exports.refs[0]) or pytest.fail("no ref")
        for place in range(5):
            named = [*chat, *key]
            named[place] = "other"
            with pytest.raises(NotFound):
                await at.world.bridge.complete_call(encoded(["1", *named]), ROWS)
        await at.is_what_a_reload_shows()


@both_modes
async def test_an_end_is_for_its_own_chat_though_another_has_a_call_of_that_id(open_page: Any) -> None:
    exports = Exports()
    same = types.Part(function_call=types.FunctionCall(id="same", name="export", args={}))
    async with open_page([same], "Started.", [same], "Started, too.", "All exported.", tools=(exports.tool,)) as at:
        await at.say("Export.")
        foreign = Page(at.chat.of(chat_id="c2", user="bob"))
        await foreign.say("Export.")
        assert [decode_call_ref(ref)[1].call_id for ref in exports.refs] == ["same"] * 2  # pyright: ignore
        await at.chat.bridge.complete_call(exports.refs[0], ROWS)
        [part] = parts(await is_told(at, "All exported."))
        assert part["output"] == ROWS
        [untouched] = parts(await foreign.chat.messages())
        assert (untouched["output"], untouched["preliminary"]) == ({"status": "in-progress"}, True)


@both_families
@pytest.mark.virtual_time
async def test_progress_after_the_session_is_shown_to_whoever_comes(family: str) -> None:
    exports = Exports()
    async with live_page([call("export")], "Started.", family=family, tools=(exports.tool,)) as at:
        await at.say("Export.")
        await at.world.bridge.stop("ann", "c1")
        for percent in (10, 20):
            progress = {"percent": percent}
            assert await at.world.bridge.complete_call(exports.refs[0], progress, final=False) == {"output": progress}
        [part] = parts(await at.chat.messages())
        assert (part["output"], part["preliminary"]) == ({"percent": 20}, True)
        assert len(at.model.requests) == 2
