"""Real runs of agents, and what a client reads of them, one short line for each chunk."""

import asyncio
import json
import re
import warnings
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App, ResumabilityConfig
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from google.adk.workflow import BaseNode
from google.genai import types
from pydantic import PrivateAttr

from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.policy import ApprovalPolicy
from adk_stream_protocol.adk.failures import public_failure_text
from adk_stream_protocol.adk.runner import RunnerOptions, build_runner
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, ChatKey
from adk_stream_protocol.protocol.chunks import AnyChunk, SdkVersion
from adk_stream_protocol.store.base import Lease, Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel
from protocol.segment_checker import Wire, check_segment, stock_client_posts_again, wire

# -- scripts ----------------------------------------------------------------------------------------------------------


def called(call_id: str, name: str, /, **arguments: Any) -> types.Part:
    """A call whose id the test knows."""
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=arguments))


def model_says(*parts: types.Part | str, partial: bool | None = None, **fields: Any) -> LlmResponse:
    spoken = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    content = types.Content(role="model", parts=spoken) if spoken else None
    return LlmResponse(content=content, partial=partial, **fields)


def streamed_call(call_id: str | None, name: str | None, *pieces: Any, goes_on: bool | None = True) -> types.Part:
    """A chunk of a call's arguments. Pieces: (path, value), or a fragment of raw JSON."""
    arguments = [types.PartialArg(string_value=piece) if isinstance(piece, str) else _leaf(*piece) for piece in pieces]
    return types.Part(
        function_call=types.FunctionCall(id=call_id, name=name, partial_args=arguments or None, will_continue=goes_on)
    )


def _leaf(path: str, value: str | float | bool | None) -> types.PartialArg:
    if isinstance(value, str):
        return types.PartialArg(json_path=path, string_value=value)
    if isinstance(value, bool):
        return types.PartialArg(json_path=path, bool_value=value)
    if value is None:
        return types.PartialArg(json_path=path, null_value="NULL_VALUE")
    return types.PartialArg(json_path=path, number_value=value)


def gemini_says(
    *parts: types.Part | str,
    finish_reason: types.FinishReason | None = None,
    grounding: types.GroundingMetadata | None = None,
    citations: types.CitationMetadata | None = None,
    **fields: Any,
) -> types.GenerateContentResponse:
    """One chunk of Gemini's stream."""
    spoken = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    candidate = types.Candidate(
        content=types.Content(role="model", parts=spoken) if spoken else None,
        finish_reason=finish_reason,
        grounding_metadata=grounding,
        citation_metadata=citations,
    )
    return types.GenerateContentResponse(candidates=[candidate], **fields)


STOP = types.FinishReason.STOP


class GeminiStream(BaseLlm):
    """Scripted chunks of Gemini's API, brought into ADK's form by ADK's own aggregator."""

    model: str = "gemini-scripted"
    _script: list[list[types.GenerateContentResponse]] = PrivateAttr(default_factory=list)

    def __init__(self, *replies: Sequence[types.GenerateContentResponse]) -> None:
        super().__init__()
        self._script = [list(reply) for reply in replies]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        aggregator = StreamingResponseAggregator()
        for response in self._script.pop(0):
            await asyncio.sleep(0)
            async for made in aggregator.process_response(response):
                yield made
        whole = aggregator.close()
        if whole is not None:
            yield whole


# -- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentRun:
    root_author: str
    events: list[Event]
    approvals: dict[CallKey, CallRecord] = field(default_factory=dict)
    """What is recorded of the calls that wait."""
    failure: Exception | None = None


def run(
    agent: BaseNode,
    *,
    plugins: Sequence[BasePlugin] = (),
    streaming_mode: StreamingMode = StreamingMode.SSE,
    **config: Any,
) -> AgentRun:
    """One turn of the user's, "hi", at the beginning of time."""
    with warnings.catch_warnings():  # ADK calls it experimental
        warnings.simplefilter("ignore")
        resumable = ResumabilityConfig(is_resumable=True)
    app = App(name="app", root_agent=agent, plugins=list(plugins), resumability_config=resumable)
    store = MemoryStore(clock=lambda: 0)
    gate = ApprovalGate(store, ApprovalPolicy(), lease_s=10)
    runner = build_runner(app, RunnerOptions(), gate)
    chat = ChatKey("app", "ann", "chat")
    gate.begin_run(LeasedChat.taken(Lease(chat, "run"), Snapshot([], 0)))
    events: list[Event] = []
    approvals: dict[CallKey, CallRecord] = {}

    async def consume() -> None:
        content = types.Content(role="user", parts=[types.Part(text="hi")])
        run_config = RunConfig(streaming_mode=streaming_mode, **config)
        running = runner.run_async(user_id="ann", session_id="chat", new_message=content, run_config=run_config)
        async with aclosing(running):
            async for event in running:
                events.append(event)  # noqa: PERF401 -- those before a failure are wanted
        approvals.update({approval.call: approval for approval in (await store.read(chat)).records})

    try:
        asyncio.run(consume())
    except Exception as failure:
        return AgentRun(agent.name, events, approvals, failure)
    return AgentRun(agent.name, events, approvals)


# -- what the client reads --------------------------------------------------------------------------------------------


def translate(agent_run: AgentRun, *, sdk_version: SdkVersion = 6, **options: Any) -> list[Wire]:
    """The whole segment, which no client may take exception to."""
    translator = Translator(root_author=agent_run.root_author, sdk_version=sdk_version, **options)
    records = agent_run.approvals
    chunks: list[AnyChunk] = translator.start("m1")
    for event in agent_run.events:
        chunks += translator.feed(event, records=records)
    if agent_run.failure:
        chunks += translator.fail(public_failure_text(agent_run.failure), records=records)
    else:
        chunks += translator.finish(records=records)
    written = wire(chunks)
    check_segment(_with_one_data_kind(written), sdk_version)
    assert not (written[-1].get("finishReason") != "tool-calls" and stock_client_posts_again(written)), (
        "a client with the stock tool helper would post again"
    )
    return written


def translate_events(*events: Event, root_author: str = "root", **options: Any) -> list[Wire]:
    """For events of a form that ADK makes only with services that are not here."""
    return translate(AgentRun(root_author, list(events)), **options)


def read(agent: BaseNode, *, plugins: Sequence[BasePlugin] = (), **options: Any) -> list[str]:
    """What the client reads of one run that goes well, in short lines."""
    agent_run = run(agent, plugins=plugins)
    if agent_run.failure is not None:
        raise agent_run.failure
    return lines(translate(agent_run, **options))


def _with_one_data_kind(written: list[Wire]) -> list[Wire]:
    return [{**chunk, "type": "data-adk-note"} if chunk["type"].startswith("data-") else chunk for chunk in written]


_MADE_UP_ID = re.compile(r"(?:adk-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def lines(written: Iterable[Wire]) -> list[str]:
    """One line for each chunk after `start`: its type, then its values. Deltas of one part are one line; ids that ADK
    makes up are numbered; metadata that is empty, and only there to make a client write, is left out."""
    folded: list[Wire] = []
    for chunk in written:
        last = folded[-1] if folded else {}
        if chunk["type"].endswith("-delta") and _part(last) == _part(chunk):
            content = "inputTextDelta" if "inputTextDelta" in chunk else "delta"
            folded[-1] = {**last, content: last[content] + chunk[content]}
        else:
            folded.append(chunk)
    numbers: dict[str, str] = {}
    return [
        _MADE_UP_ID.sub(lambda found: numbers.setdefault(found[0], f"id{len(numbers) + 1}"), _line(chunk))
        for chunk in folded
        if chunk["type"] != "start"
    ]


def _part(chunk: Wire) -> tuple[Any, ...]:
    return chunk.get("type"), chunk.get("id"), chunk.get("toolCallId")


def _line(chunk: Wire) -> str:
    told = {name: value for name, value in chunk.items() if name != "type" and (name, value) != ("messageMetadata", {})}
    return " ".join([chunk["type"], *(_value(name, value) for name, value in told.items())])


def _value(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    return name if value is True else json.dumps(value, ensure_ascii=False)


def step(*inside: str) -> list[str]:
    return ["start-step", *inside, "finish-step"]


def texts(written: Iterable[Wire], kind: str = "text") -> str:
    return "".join(chunk["delta"] for chunk in written if chunk["type"] == f"{kind}-delta")


def of_type(written: Iterable[Wire], kind: str) -> list[Wire]:
    return [chunk for chunk in written if chunk["type"] == kind]


def weather(city: str) -> dict[str, str]:
    """The weather of a city."""
    return {"sky": f"clear in {city}"}


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


def caller(*script: Any, tools: list[Any]) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script), tools=tools)
