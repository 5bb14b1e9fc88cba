"""Turns with many tool calls, and turns that wait for an approval: CPU of the whole turn."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from asgi_call import post
from cases import PROMPT, USER_ID, BareRuns, Output, ServedTurn, ag_ui_endpoint, raw, run_sse
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.flows.llm_flows.functions import REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types
from measure import new_chat_id, paired_rounds
from ours import ours
from report import Table
from scripted_model import AGENT_NAME

from adk_stream_protocol import ChatBridge

CALLS = 10
_END = "Done. "
_USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1, total_token_count=2)


def look_up(number: int) -> dict[str, str]:
    """Looks something up."""
    return {"found": f"entry {number}"}


class CallingModel(BaseLlm):
    """Calls the tool so many times, one call after the other, then says that it is done."""

    model: str = "calling"
    calls: int

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        made = 0
        for content in reversed(llm_request.contents):
            if any(part.text == PROMPT for part in content.parts or ()):
                break
            made += sum(part.function_call is not None for part in content.parts or ())
        if made < self.calls:
            yield _whole(types.Part(function_call=types.FunctionCall(name="look_up", args={"number": made})))
        else:
            yield LlmResponse(content=_content(types.Part(text=_END)), partial=True)
            yield _whole(types.Part(text=_END))


def _content(part: types.Part) -> types.Content:
    return types.Content(role="model", parts=[part])


def _whole(part: types.Part) -> LlmResponse:
    return LlmResponse(
        content=_content(part), partial=False, finish_reason=types.FinishReason.STOP, usage_metadata=_USAGE
    )


def _agent(calls: int, *, asks: bool = False) -> LlmAgent:
    return LlmAgent(
        name=AGENT_NAME, model=CallingModel(calls=calls), tools=[FunctionTool(look_up, require_confirmation=asks)]
    )


def _is_done(output: Output) -> bool:
    if output.final_event is not None:
        return output.final_event.content.parts[0].text == _END
    return _END.encode() in b"".join(output.frames)


def _cost(run: Callable[[str, Output], Awaitable[None]]) -> Callable[[], Awaitable[float]]:
    async def cost() -> float:
        output = Output()
        began_at = time.process_time()
        await run(new_chat_id(), output)
        ended_at = time.process_time()
        if not _is_done(output):
            raise AssertionError("a timed turn did not come to its end")
        return (ended_at - began_at) * 1e3

    return cost


async def cost_of_tools(rounds: int, progress: Callable[[str], None]) -> list[Table]:
    cases = {"raw": raw, "run_sse": run_sse, "ag-ui-adk endpoint": ag_ui_endpoint, "ours": ours}
    async with AsyncExitStack() as stack:
        progress(f"a turn with {CALLS} tool calls")
        turns: dict[str, ServedTurn] = {
            name: await stack.enter_async_context(case(_agent(CALLS))) for name, case in cases.items()
        }
        tools = await paired_rounds(rounds, {name: _cost(turn.run) for name, turn in turns.items()})
        progress("a turn that waits for an approval")
        asked = {
            "raw": await stack.enter_async_context(_approved_by_adk()),
            "ours": await stack.enter_async_context(_approved_by_us()),
        }
        approvals = await paired_rounds(rounds, {name: _cost(run) for name, run in asked.items()})
    return [
        Table(f"CPU of a turn with {CALLS} tool calls", "ms", "raw", {"a turn": tools}),
        Table("CPU of a turn whose call is asked for and approved", "ms", "raw", {"a turn": approvals}),
    ]


@asynccontextmanager
async def _approved_by_adk() -> AsyncIterator[Callable[[str, Output], Awaitable[None]]]:
    """As ADK's documentation does it: a second run with the confirmation."""

    async def run(chat_id: str, output: Output) -> None:
        asked = None
        async with aclosing(runs.events_of_turn(chat_id)) as events:
            async for event in events:
                for call in event.get_function_calls():
                    if call.name == REQUEST_CONFIRMATION_FUNCTION_CALL_NAME:
                        asked = call
        assert asked is not None
        yes = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        answered = runs._runner.run_async(
            user_id=USER_ID,
            session_id=chat_id,
            new_message=types.Content(role="user", parts=[types.Part(function_response=yes)]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
        async with aclosing(answered) as events:
            async for event in events:
                output.final_event = event

    async with aclosing(BareRuns(_agent(1, asks=True))) as runs:
        yield run


@asynccontextmanager
async def _approved_by_us() -> AsyncIterator[Callable[[str, Output], Awaitable[None]]]:
    """As a client of the AI SDK does it: the message again, with the answer in it."""
    bridge = ChatBridge(_agent(1, asks=True), user_id=lambda _: USER_ID)
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))

    async def run(chat_id: str, output: Output) -> None:
        said = {"id": f"u-{chat_id}", "role": "user", "parts": [{"type": "text", "text": PROMPT}]}
        asked = Output()
        await post(app, "/api/chat", _body(chat_id, said), asked.write)
        answer = _answer(b"".join(asked.frames))
        await post(app, "/api/chat", _body(chat_id, said, answer), output.write)

    async with app.router.lifespan_context(app):
        yield run


def _body(chat_id: str, *messages: dict[str, Any]) -> bytes:
    return json.dumps({"id": chat_id, "trigger": "submit-message", "messages": list(messages)}).encode()


def _answer(stream: bytes) -> dict[str, Any]:
    lines = [line.removeprefix(b"data: ") for line in stream.splitlines() if line.startswith(b"data: {")]
    chunks = {chunk["type"]: chunk for chunk in map(json.loads, lines)}
    shown, asked = chunks["tool-input-available"], chunks["tool-approval-request"]
    part = {
        "type": f"tool-{shown['toolName']}",
        "toolCallId": shown["toolCallId"],
        "state": "approval-responded",
        "input": shown["input"],
        "approval": {"id": asked["approvalId"], "approved": True},
    }
    return {"id": chunks["start"]["messageId"], "role": "assistant", "parts": [{"type": "step-start"}, part]}
