"""One run of ADK against a scripted Gemini, and what it leaves."""

import asyncio
from dataclasses import dataclass
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.models.google_llm import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from support.fake_gemini import streamed_call

EMPTY_TEXT = {"text": ""}
STREAMED_FORECAST = streamed_call(
    "forecast",
    [
        ("$.city", "To", True),
        ("$.city", "kyo", True),
        ("$.city", "", False),
        ("$.days", 3, False),
        ("$.hourly", True, False),
        ("$.place.latitude", 35.5, False),
        ("$.place.names[0]", "東京", True),
        ("$.place.names[0]", "", False),
        ("$.place.height", None, False),
    ],
)


def forecast(city: str, days: int = 1, hourly: bool = False, place: dict[str, Any] | None = None) -> str:
    """Stands for any tool; the answer shows which arguments arrived, and as what type."""
    return repr((city, days, hourly, place))


@dataclass
class Run:
    events: list[Event]
    stored: list[Event]  # what the agent left in the session after the question
    error: Exception | None

    @property
    def partials(self) -> list[Event]:
        return [event for event in self.events if event.partial]

    @property
    def wholes(self) -> list[Event]:
        return [event for event in self.events if not event.partial]


def parts(event: Event) -> list[dict[str, Any]]:
    assert event.content is not None
    return [part.model_dump(exclude_none=True) for part in event.content.parts or []]


def part(event: Event) -> dict[str, Any]:
    (only,) = parts(event)
    return only


def run(
    model: Gemini, config: types.GenerateContentConfig | None = None, mode: StreamingMode = StreamingMode.SSE
) -> Run:
    return asyncio.run(_run(model, config, RunConfig(streaming_mode=mode)))


async def _run(model: Gemini, config: types.GenerateContentConfig | None, run_config: RunConfig) -> Run:
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="app", user_id="user", session_id="session")
    agent = LlmAgent(name="agent", model=model, tools=[forecast], generate_content_config=config)
    runner = Runner(app_name="app", agent=agent, session_service=sessions)
    question = types.UserContent("Hello")
    result = Run(events=[], stored=[], error=None)
    try:
        async for event in runner.run_async(
            user_id="user", session_id="session", new_message=question, run_config=run_config
        ):
            result.events.append(event)
    except Exception as error:
        result.error = error
    session = await sessions.get_session(app_name="app", user_id="user", session_id="session")
    assert session is not None
    result.stored = session.events[1:]
    return result
