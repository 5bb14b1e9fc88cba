"""The demo on Gemini: one model to chat with, and another to speak with, over the real google-genai client."""

import pytest
from google.adk.agents import LlmAgent

from adk_stream_protocol.demo.agent import GEMINI_LIVE_MODEL, GEMINI_MODEL, DemoGemini
from support.fake_gemini_live import FakeGeminiLive, WireSession
from support.live_runs import live_run


@pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")
async def test_a_live_session_is_opened_with_a_model_that_has_them() -> None:
    def service(session: WireSession) -> None:
        assert session.expect_text() == "Hello"
        session.text("Hello yourself.")
        session.turn_complete()

    with FakeGeminiLive(service) as gemini:
        wired = gemini.live_model(GEMINI_MODEL)
        model = DemoGemini(**{name: getattr(wired, name) for name in type(wired).model_fields})

        async with live_run(LlmAgent(name="helper", model=model)) as run:
            run.write("Hello")
            await run.until("TEXT Hello yourself.")
    assert gemini.sessions[0].setup["model"] == f"models/{GEMINI_LIVE_MODEL}"
    assert model.model == GEMINI_MODEL
