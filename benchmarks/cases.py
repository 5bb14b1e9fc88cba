"""The ways to serve one turn of the same agent: bare ADK, ADK's own serialisation, and the nearest peer.

Each case is an async context manager around a `ServedTurn`. What a server does once at start-up happens on
entering it, what it does for every request happens in the turn.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

import orjson
import pydantic_core
from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
from asgi_call import post
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.cli.api_server import _redact_credential_secrets, public_event
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from scripted_model import AGENT_NAME, FIRST_DELTA
from sse_text import TextOfFrame, adk_event_text, ag_ui_text, ai_sdk_text, text_of_stream

USER_ID = "bench"
PROMPT = "go"
_FIRST_DELTA_BYTES = FIRST_DELTA.encode()


@dataclass
class Output:
    """What one turn put out, and the CPU clock at the moment its first text came out."""

    frames: list[bytes] = field(default_factory=list)
    final_event: Event | None = None
    partial_events: int = 0
    first_text_at: float | None = None

    def write(self, frame: bytes) -> None:
        if self.first_text_at is None and _FIRST_DELTA_BYTES in frame:
            self.first_text_at = time.process_time()
        self.frames.append(frame)


@dataclass(frozen=True)
class ServedTurn:
    """`run(chat_id, output)` serves one turn; `text_of(output)` reads back the text it delivered."""

    run: Callable[[str, Output], Awaitable[None]]
    text_of: Callable[[Output], str]


Case = Callable[[LlmAgent], AbstractAsyncContextManager[ServedTurn]]


def text_read_by(text_of_frame: TextOfFrame) -> Callable[[Output], str]:
    return lambda output: text_of_stream(output.frames, text_of_frame)


class BareRuns:
    """ADK's runner as its documentation calls it, creating the session on the first turn of a chat."""

    def __init__(self, agent: LlmAgent) -> None:
        self._runner = Runner(
            app_name=AGENT_NAME,
            agent=agent,
            session_service=InMemorySessionService(),
            auto_create_session=True,
        )

    def events_of_turn(self, chat_id: str) -> AsyncIterator[Event]:
        return self._runner.run_async(
            user_id=USER_ID,
            session_id=chat_id,
            new_message=types.Content(role="user", parts=[types.Part(text=PROMPT)]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )

    async def aclose(self) -> None:
        await self._runner.close()


@asynccontextmanager
async def raw(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """The yardstick: the events are taken off the runner and dropped."""

    async def run(chat_id: str, output: Output) -> None:
        async with aclosing(runs.events_of_turn(chat_id)) as events:
            async for event in events:
                if output.first_text_at is None:
                    output.first_text_at = time.process_time()
                if event.partial:
                    output.partial_events += 1
                else:
                    output.final_event = event

    async with aclosing(BareRuns(agent)) as runs:
        yield ServedTurn(run, _text_of_final_event)


def _text_of_final_event(output: Output) -> str:
    assert output.final_event is not None
    text = "".join(part.text for part in output.final_event.content.parts)
    assert output.partial_events == len(text) // len(FIRST_DELTA), "not every delta became an event"
    return text


def run_sse_frame(event: Event) -> bytes:
    """The serialisation that ADK's `/run_sse` endpoint does for each event, by the functions it calls."""
    json_text = pydantic_core.to_json(
        _redact_credential_secrets(public_event(event).model_dump(exclude_none=True, by_alias=True, mode="json"))
    ).decode("utf-8")
    return f"data: {json_text}\n\n".encode()


@asynccontextmanager
async def run_sse(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """Bare ADK plus that serialisation, without ADK's web server around it.

    Building ADK's server would install a global OpenTelemetry provider and so slow every other case down.
    What it would add per event (a second task and a queue in lockstep) is left out: this is its lower bound.
    """

    async def run(chat_id: str, output: Output) -> None:
        async with aclosing(runs.events_of_turn(chat_id)) as events:
            async for event in events:
                output.write(run_sse_frame(event))

    async with aclosing(BareRuns(agent)) as runs:
        yield ServedTurn(run, text_read_by(adk_event_text))


@asynccontextmanager
async def least_server(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """The floor of any server on FastAPI: bare ADK behind one route that reads JSON and streams each word as it comes.

    It knows no user, limits nothing, and loses the answer with its reader. What a server of chats costs at least is
    this, and not bare ADK, which knows no HTTP.
    """
    app = FastAPI()

    async def turn(request: Request) -> StreamingResponse:
        chat_id = orjson.loads(await request.body())["id"]
        return StreamingResponse(frames(chat_id), media_type="text/event-stream")

    async def frames(chat_id: str) -> AsyncIterator[bytes]:
        async with aclosing(runs.events_of_turn(chat_id)) as events:
            async for event in events:
                if event.partial:
                    delta = {"type": "text-delta", "id": "0", "delta": event.content.parts[0].text}
                    yield b"data: " + orjson.dumps(delta) + b"\n\n"

    app.add_api_route("/api/chat", turn, methods=["POST"], response_class=StreamingResponse)

    async def run(chat_id: str, output: Output) -> None:
        await post(app, "/api/chat", orjson.dumps({"id": chat_id}), output.write)

    async with aclosing(BareRuns(agent)) as runs:
        yield ServedTurn(run, text_read_by(ai_sdk_text))


@asynccontextmanager
async def _ag_ui_agent(agent: LlmAgent) -> AsyncIterator[ADKAgent]:
    """The peer's adapter, set up in its favour: both choices spare it a scan of the user's sessions."""
    adapter = ADKAgent(
        adk_agent=agent,
        app_name=AGENT_NAME,
        user_id_extractor=lambda run_input: run_input.thread_id,
        session_service=InMemorySessionService(),
        use_thread_id_as_session_id=True,
    )
    try:
        yield adapter
    finally:
        await adapter.close()


_turn_numbers = count()


def _ag_ui_request(chat_id: str) -> dict:
    number = next(_turn_numbers)
    return {
        "threadId": chat_id,
        "runId": f"run-{number}",
        "state": {},
        "messages": [{"id": f"u{number}", "role": "user", "content": PROMPT}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }


@asynccontextmanager
async def ag_ui_adapter(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """ag-ui-adk's adapter and its encoder, with no web framework around them."""
    encoder = EventEncoder()

    async def run(chat_id: str, output: Output) -> None:
        async with aclosing(adapter.run(RunAgentInput.model_validate(_ag_ui_request(chat_id)))) as events:
            async for event in events:
                output.write(encoder.encode(event).encode())

    async with _ag_ui_agent(agent) as adapter:
        yield ServedTurn(run, text_read_by(ag_ui_text))


@asynccontextmanager
async def ag_ui_endpoint(agent: LlmAgent) -> AsyncIterator[ServedTurn]:
    """ag-ui-adk's FastAPI endpoint, called in the same way as ours."""
    async with _ag_ui_agent(agent) as adapter:
        app = FastAPI()
        add_adk_fastapi_endpoint(app, adapter, path="/")

        async def run(chat_id: str, output: Output) -> None:
            await post(app, "/", json.dumps(_ag_ui_request(chat_id)).encode(), output.write)

        yield ServedTurn(run, text_read_by(ag_ui_text))
