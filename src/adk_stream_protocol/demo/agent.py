"""The demo agent: on Gemini if credentials are set, else on the offline model."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from ..adk.runner import resumable
from .offline_model import OfflineModel
from .tools import demo_tools

GEMINI_MODEL = "gemini-3.5-flash"
GEMINI_LIVE_MODEL = "gemini-2.5-flash-native-audio-latest"

_INSTRUCTION = """\
You are the friendly assistant of a small demo. Answer briefly, in the language of the user.

You have four tools:
- get_weather tells the current weather of a place.
- process_payment sends money from the user's wallet. The user is asked to approve each payment by the
  application itself, so call the tool at once and do not ask for permission in text.
- change_bgm changes the background music of the page to track 1 or track 2.
- get_location asks the user's browser for latitude and longitude.

When the user asks for two independent things, call both tools in one message. When one is to come after the
other, wait for the first result. After the tools have answered, always say in a sentence what happened: the
new balance after a payment, that a payment was denied or has expired, or the reason of an error. Never call
a tool again because it was denied or failed, unless the user asks for it.
"""


class DemoGemini(Gemini):
    """Uses one model for chats and another for live sessions: models of Gemini that chat have no live sessions."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection]:
        llm_request.model = GEMINI_LIVE_MODEL
        async with super().connect(llm_request) as connection:
            yield connection


def build_agent(model: str | BaseLlm | None = None) -> LlmAgent:
    """The demo agent on the model given, else on Gemini if it can be reached, else on the offline model."""
    thinking: types.GenerateContentConfig | None = None
    if model is None and gemini_is_configured():
        model = DemoGemini(model=GEMINI_MODEL)
        # Only for this model, which is known to think: others refuse the setting.
        thinking = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    return LlmAgent(
        name="demo_agent",
        description="Tells the weather, sends payments, changes the music and finds the user's location.",
        model=model or OfflineModel(),
        instruction=_INSTRUCTION,
        tools=[*demo_tools()],
        generate_content_config=thinking,
    )


def build_app(model: str | BaseLlm | None = None) -> App:
    """The demo agent as an app that can pause for a person or a browser and resume later."""
    return App(name="adk_stream_demo", root_agent=build_agent(model), resumability_config=resumable())


def demo_run_config(app: App) -> RunConfig | None:
    """Text in live mode for the offline model. Live models of Gemini only speak."""
    is_offline = isinstance(app.root_agent, LlmAgent) and isinstance(app.root_agent.model, OfflineModel)
    return RunConfig(response_modalities=[types.Modality.TEXT]) if is_offline else None


def gemini_is_configured() -> bool:
    if os.environ.get("GOOGLE_API_KEY") or os.environ.get("GEMINI_API_KEY"):
        return True
    # Two names of one setting, read exactly as google-genai reads it.
    switches = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
    return any(os.environ.get(switch, "").lower() in ("true", "1") for switch in switches)
