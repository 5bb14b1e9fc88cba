"""ADK's `Runner.run_live` with a person on the other side, who waits for what he sees before he goes on.

async with live_run(agent) as run:
    run.write("Pay 1 dollar")
    assert await run.until("turn_complete") == ['call pay {"amount": 1}', 'response pay {"paid": 1}', "turn_complete"]
    assert await run.rest() == []
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.genai import types


class LiveRun:
    def __init__(self, running: AsyncGenerator[Event, None], queue: LiveRequestQueue) -> None:
        self.events: list[Event] = []
        self.queue = queue
        self._running = running

    def write(self, text: str) -> None:
        self.queue.send_content(types.UserContent(text))

    def speak(self, samples: bytes, rate: int = 16_000) -> None:
        self.queue.send_realtime(types.Blob(data=samples, mime_type=f"audio/pcm;rate={rate}"))

    async def until(self, *beginnings: str) -> list[str]:
        """What comes, up to the first line with one of these beginnings."""
        lines: list[str] = []
        async for event in self._running:
            self.events.append(event)
            lines.append(line(event))
            if lines[-1].startswith(beginnings):
                return lines
        raise AssertionError(f"The run ends before {beginnings}: {lines}")

    async def rest(self) -> list[str]:
        """What comes when the person leaves."""
        self.queue.close()
        return await self.left()

    async def left(self) -> list[str]:
        """What comes until the run ends by itself."""
        events = [event async for event in self._running]
        self.events += events
        return [line(event) for event in events]


@asynccontextmanager
async def live_run(
    agent: LlmAgent,
    *,
    sessions: BaseSessionService | None = None,
    modality: types.Modality = types.Modality.TEXT,
    **config: Any,
) -> AsyncGenerator[LiveRun, None]:
    queue = LiveRequestQueue()
    runner = Runner(
        app_name="app",
        agent=agent,
        session_service=sessions or InMemorySessionService(),
        auto_create_session=True,
    )
    run_config = RunConfig(response_modalities=[modality], **config)
    running = runner.run_live(user_id="ann", session_id="chat", live_request_queue=queue, run_config=run_config)
    async with aclosing(running):
        yield LiveRun(running, queue)


async def stored_lines(sessions: BaseSessionService) -> list[str]:
    session = await sessions.get_session(app_name="app", user_id="ann", session_id="chat")
    assert session is not None
    return [line(event) for event in session.events]


def line(event: Event) -> str:
    """Pieces and the whole that follows them are told apart: text and TEXT, saying and said, hearing and heard."""
    told = [_part(part, event) for part in (event.content and event.content.parts) or []]
    if event.input_transcription:
        told.append(f"{'heard' if event.input_transcription.finished else 'hearing'} {event.input_transcription.text}")
    if event.output_transcription:
        told.append(f"{'said' if event.output_transcription.finished else 'saying'} {event.output_transcription.text}")
    if event.usage_metadata:
        told.append(f"usage {event.usage_metadata.prompt_token_count}, {event.usage_metadata.candidates_token_count}")
    if event.live_session_resumption_update:
        told.append(f"handle {event.live_session_resumption_update.new_handle}")
    told += ["interrupted"] if event.interrupted else []
    told += ["turn_complete"] if event.turn_complete else []
    return " + ".join(told)


def _part(part: types.Part, event: Event) -> str:
    if part.function_call:
        return f"call {part.function_call.name} {json.dumps(part.function_call.args)}"
    if part.function_response:
        return f"response {part.function_response.name} {json.dumps(part.function_response.response)}"
    if part.inline_data:
        return f"audio {len(part.inline_data.data or b'')} {part.inline_data.mime_type}"
    kind = "thought" if part.thought else "text"
    return f"{kind if event.partial else kind.upper()} {part.text}"
