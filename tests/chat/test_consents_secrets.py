"""Codes, tokens, keys and client secrets are nowhere but in ADK's session: not in recordings, error texts, live
sessions or what models read. Streams, histories and logs are watched by every test (support/canary.py)."""

import logging
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol import NotFound
from adk_stream_protocol.recording.recorder import Recorder, Recording
from adk_stream_protocol.testing import call
from chat.test_completions import at_rest, is_told
from chat.test_consents import CODE, KEY, TOKEN, Calendar, Provider, callback_of, nothing_leaks, provider
from live.live_pages import both_families, live_world
from support.canary import CANARY
from support.conversations import Conversation
from support.pages import Page, page

__all__ = ["provider"]

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning")  # ADK's own


async def test_a_recording_has_no_secret(provider: Provider, tmp_path: Path) -> None:
    calendar, file = Calendar(provider.config()), tmp_path / "chat.jsonl"
    async with page([call("read_calendar")], "Free.", tools=(FunctionTool(calendar.read_calendar),)) as at:
        with Recording(file) as recording:
            recorded: Any = Recorder(at.chat.app, recording, at.chat.prefix)
            on_record = Page(Conversation(recorded, at.chat.bridge))
            asked = await on_record.say("Am I free?")
            await at.chat.bridge.complete_auth("ann", callback_of(asked))
            await is_told(on_record, "Free.")
            await on_record.chat.request("GET", "/audit")
        assert calendar.tokens == [TOKEN]
        assert "read_calendar" in file.read_text()
        assert CANARY not in file.read_text()


async def test_a_refused_answer_is_not_quoted(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page([call("read_calendar")], tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        answers: list[dict[str, Any]] = [
            {"callback_url": callback_of(asked)},
            {"request_id": request["id"], "api_key": KEY},
        ]
        for answer in answers:
            with pytest.raises(NotFound) as refused:
                await at.chat.bridge.complete_auth("eve", **answer)
            assert CANARY not in f"{refused.value!r} {refused.value} {refused.value.public_text}"


async def test_a_tool_that_fails_with_its_token_tells_nobody(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    calendar = Calendar(provider.config())

    async def read_calendar(tool_context: ToolContext) -> dict[str, str]:
        """Needs consent."""
        result = await calendar.read_calendar(tool_context)
        if calendar.tokens:
            raise ConnectionError(f"refused: {calendar.tokens[0]}")
        return result

    async with page([call("read_calendar")], "Sorry.", tools=(FunctionTool(read_calendar),)) as at:
        asked = await at.say("Am I free?")
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await at_rest(at)
        assert calendar.tokens == [TOKEN]
        await nothing_leaks(at, caplog, asked)


async def test_no_model_reads_a_secret(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    script = [call("read_calendar")], "Free.", "Bye."
    async with page(*script, tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await is_told(at, "Free.")
        await at_rest(at)
        await at.say("Thank you.")
        assert provider.codes == [CODE]
        assert CANARY not in repr([request.contents for request in at.chat.model.requests])


@both_families
async def test_a_live_session_after_consent_has_no_secret(
    provider: Provider, family: str, caplog: pytest.LogCaptureFixture
) -> None:
    calendar = Calendar(provider.config())
    tool, script = FunctionTool(calendar.read_calendar), ([call("read_calendar")], "Free.", "Bye.")
    async with live_world(*script, family=family, tools=(tool,)) as world:
        at = world.page()
        asked = await at.say("Am I free?")
        await world.bridge.complete_auth("ann", callback_of(asked))
        await is_told(at, "Free.")
        await at_rest(at)
        async with world.socket() as live:
            assert (await live.say("Thank you.")).text == "Bye."
            assert CANARY not in repr([request.contents for request in world.model.requests])
            await nothing_leaks(live, caplog, asked)
        assert calendar.tokens == [TOKEN]
        await world.bridge.stop("ann", "c1")
