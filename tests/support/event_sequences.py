"""Random runs, as ADK could tell them: agents in parallel, streamed text, thoughts and arguments, tools of all kinds,
errors. And as it should not: events lost or told twice, for the stream has to be whole whatever comes."""

from collections.abc import Iterator
from random import Random
from typing import Any

from google.adk.events import Event, EventActions
from google.genai import types

WORDS = ("Hello ", "world", ". ", "東京", "\n\n", "`code` ", "😀", "a\u2028b ", '"quoted" ', "")
TOOLS = ("get_weather", "pay", "browse", "transfer_to_agent", "set_model_response")


class _Agent:
    """One agent's part of a run, event by event."""

    def __init__(self, random: Random, name: str, branch: str | None) -> None:
        self._random = random
        self._about: dict[str, Any] = {"author": name, "branch": branch, "invocation_id": "i1"}
        self._count = 0

    def events(self) -> Iterator[Event]:
        for _ in range(self._random.randint(1, 3)):
            calls = yield from self._model_call()
            if calls:
                yield from self._results(calls)

    def _event(self, **fields: Any) -> Event:
        return Event(**self._about, **fields)

    def _content(self, parts: list[types.Part]) -> types.Content:
        return types.Content(role="model", parts=parts)

    def _model_call(self) -> Iterator[Event]:
        random, event_id = self._random, Event.new_id()
        streams = random.random() < 0.8
        whole: list[types.Part] = []
        for _ in range(random.randint(1, 4)):
            kind = random.choice(["text", "text", "thought", "call", "file", "code", "signature"])
            if kind in ("text", "thought"):
                pieces = [random.choice(WORDS) for _ in range(random.randint(1, 5))]
                thought = True if kind == "thought" else None
                if streams:
                    for piece in pieces:
                        part = types.Part(text=piece, thought=thought)
                        yield self._event(id=event_id, partial=True, content=self._content([part]))
                whole.append(types.Part(text="".join(pieces), thought=thought))
            elif kind == "call":
                part = self._call()
                if streams and random.random() < 0.6:
                    yield from self._streamed_arguments(event_id, part)
                whole.append(part)
            else:
                parts = self._other(kind)
                if streams:
                    yield self._event(id=event_id, partial=True, content=self._content(parts))
                whole += parts
        if random.random() < 0.1:
            whole = [types.Part(text="something else altogether")]
        calls = [part.function_call for part in whole if part.function_call]
        yield self._event(
            id=event_id if random.random() < 0.9 else Event.new_id(),
            partial=False if streams else None,
            content=self._content(whole),
            finish_reason=random.choice([None, *types.FinishReason]),
            error_code=random.choice([None] * 8 + ["MAX_TOKENS", "SOMETHING"]),
            long_running_tool_ids={call.id for call in calls if call.name == "browse"} or None,
            grounding_metadata=self._grounding() if random.random() < 0.2 else None,
            usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=5, prompt_token_count=2),
        )
        return calls

    def _call(self) -> types.Part:
        self._count += 1
        unique = f"{self._about['author']}-{self._count}"
        call_id = self._random.choice([unique, unique, unique, "0"])
        arguments = {"city": "Oslo", "days": 3, "where": {"lat": 1.5, "tags": ["a", "b"]}}
        name = self._random.choice(TOOLS)
        return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=arguments))

    def _streamed_arguments(self, event_id: str, part: types.Part) -> Iterator[Event]:
        call = part.function_call
        assert call
        leaves: list[tuple[str | None, dict[str, Any]]] = [
            ("$.city", {"string_value": "Os"}),
            ("$.city", {"string_value": "lo"}),
            ("$.days", {"number_value": 3.0}),
            ("$.where.lat", {"number_value": 1.5}),
            ("$.where.tags[0]", {"string_value": "a"}),
        ]
        if self._random.random() < 0.2:
            self._random.shuffle(leaves)
        raw = self._random.random() < 0.2
        chunks: list[dict[str, Any]] = [{"name": call.name, "partial_args": []}]
        for path, value in leaves:
            if raw:
                argument = types.PartialArg(string_value='{"x"')
                chunks.append({"id": f"adk-{self._random.random()}", "name": call.name, "partial_args": [argument]})
            else:
                chunks.append({"will_continue": True, "partial_args": [types.PartialArg(json_path=path, **value)]})
        for chunk in chunks:
            streamed = types.FunctionCall(**{"id": call.id, **chunk})
            parts = [types.Part(function_call=streamed)]
            yield self._event(id=event_id, partial=True, content=self._content(parts))

    def _other(self, kind: str) -> list[types.Part]:
        if kind == "file":
            return [types.Part(inline_data=types.Blob(data=b"abc", mime_type="image/png"))]
        if kind == "signature":
            return [types.Part(thought_signature=b"opaque")]
        code = types.ExecutableCode(code="1+1", language=types.Language.PYTHON)
        result = types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")
        return [types.Part(executable_code=code), types.Part(code_execution_result=result)][
            : self._random.randint(1, 2)
        ]

    def _grounding(self) -> types.GroundingMetadata:
        web = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://example.org", title="E"))
        document = types.GroundingChunk(retrieved_context=types.GroundingChunkRetrievedContext(title="D"))
        segment = types.Segment(start_index=0, end_index=3, text="abc")
        support = types.GroundingSupport(grounding_chunk_indices=[0, 1], segment=segment)
        return types.GroundingMetadata(grounding_chunks=[web, document], grounding_supports=[support])

    def _results(self, calls: list[types.FunctionCall]) -> Iterator[Event]:
        random = self._random
        gated = {call.id: call for call in calls if call.name == "pay" and call.id}
        parts: list[types.Part] = []
        for call in calls:
            if call.name == "browse" and random.random() < 0.7:
                continue
            response = random.choice([{"ok": True}, {"error": "no"}, {"value": float("nan"), "text": "\ud800"}])
            parts.append(
                types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=response))
            )
        actions = EventActions(
            requested_tool_confirmations={call_id: {"hint": "?"} for call_id in gated},
            artifact_delta={"a.txt": 0} if random.random() < 0.1 else {},
        )
        asked = [
            types.Part(
                function_call=types.FunctionCall(
                    id=f"adk-{call_id}-{random.random()}",
                    name="adk_request_confirmation",
                    args={"originalFunctionCall": {"id": call_id, "name": "pay"}, "toolConfirmation": {"hint": "?"}},
                )
            )
            for call_id in gated
        ]
        ids = {part.function_call.id for part in asked if part.function_call and part.function_call.id}
        told = [
            *([self._event(content=self._content(asked), long_running_tool_ids=ids)] if asked else []),
            *([self._event(content=types.Content(role="user", parts=parts), actions=actions)] if parts else []),
        ]
        random.shuffle(told)
        yield from told


def random_run(seed: int) -> list[Event]:
    random = Random(seed)
    many = random.choice([1, 1, 1, 2, 3])
    told = [list(_Agent(random, f"agent{n}", f"par.agent{n}" if many > 1 else None).events()) for n in range(many)]
    events: list[Event] = []
    while any(told):
        source = random.choice([one for one in told if one])
        event = source.pop(0)
        fate = random.random()
        events += [] if fate < 0.01 else [event, event] if fate < 0.02 else [event]
    return events
