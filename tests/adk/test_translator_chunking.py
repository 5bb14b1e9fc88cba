"""However a model cuts its answer into pieces: every word once, every call once, and a stream without loose ends."""

import asyncio
from typing import Any

from google.adk.events import Event
from google.adk.utils.streaming_utils import StreamingResponseAggregator
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adk.agent_runs import STOP, called, gemini_says, of_type, texts, translate_events
from adk_stream_protocol.testing import text, thought

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
arguments = st.dictionaries(st.sampled_from(["a", "b"]), st.integers() | words, max_size=2)
said = st.tuples(st.sampled_from(["text", "thought"]), words) | st.tuples(st.just("call"), arguments)


@st.composite
def streams(draw: st.DrawFn) -> list[types.Part]:
    """Parts in the order and the pieces in which a model sends them."""
    pieces: list[types.Part] = []
    for number, (kind, content) in enumerate(draw(st.lists(said, min_size=1, max_size=6))):
        if kind == "call":
            pieces.append(called(f"c{number}", "tool", **content))
            continue
        cuts = sorted(draw(st.sets(st.integers(1, len(content)), max_size=3)) | {len(content)})
        make = text if kind == "text" else thought
        pieces += [make(content[start:end]) for start, end in zip([0, *cuts], cuts, strict=False)]
    return pieces


@st.composite
def chunked(draw: st.DrawFn) -> list[list[types.Part]]:
    """The parts of a stream, one or more of them in each chunk."""
    rest, chunks = draw(streams()), list[list[types.Part]]()
    while rest:
        size = draw(st.integers(1, 3))
        chunks.append(rest[:size])
        rest = rest[size:]
    return chunks


def events_of(chunks: list[list[types.Part]], event_id: str) -> list[Event]:
    """What ADK makes of them."""

    async def aggregate() -> list[Any]:
        aggregator = StreamingResponseAggregator()
        made = [
            response
            for number, parts in enumerate(chunks, start=1)
            async for response in aggregator.process_response(
                gemini_says(*parts, finish_reason=STOP if number == len(chunks) else None)
            )
        ]
        return [*made, aggregator.close()]

    return [
        Event(id=event_id, author="root", **response.model_dump(exclude_none=True))
        for response in asyncio.run(aggregate())
    ]


@settings(deadline=None)
@given(st.lists(chunked(), min_size=1, max_size=3))
def test_every_word_and_every_call_is_told_once(model_calls: list[list[list[types.Part]]]) -> None:
    """The segment checker has looked at the stream's balance before any of this."""
    spoken = {"text": "", "reasoning": ""}
    inputs: list[Any] = []
    events: list[Event] = []
    for number, chunks in enumerate(model_calls):
        renamed = [[_in_call(part, number) for part in parts] for parts in chunks]
        events += events_of(renamed, f"event-{number}")
        for part in (part for parts in renamed for part in parts):
            if part.function_call:
                inputs.append(part.function_call.args)
            else:
                spoken["reasoning" if part.thought else "text"] += part.text or ""
    written = translate_events(*events)
    assert {kind: texts(written, kind) for kind in spoken} == spoken
    shown = [chunk["input"] for chunk in of_type(written, "tool-input-available")]
    assert sorted(shown, key=repr) == sorted(inputs, key=repr)  # a large integer is shown when its use is known
    assert len(of_type(written, "tool-input-start")) == len(inputs)


def _in_call(part: types.Part, number: int) -> types.Part:
    """Ids are unique in a run; the parts are drawn for each model call by itself."""
    if part.function_call is None:
        return part
    return called(f"{number}-{part.function_call.id}", "tool", **(part.function_call.args or {}))


@settings(deadline=None)
@given(chunked(), st.integers(0, 6))
def test_a_run_that_breaks_off_leaves_nothing_open_and_says_nothing_twice(
    chunks: list[list[types.Part]], broken_after: int
) -> None:
    events = events_of(chunks, "event-1")[:broken_after]
    pieces = [part for parts in chunks[:broken_after] for part in parts]
    written = translate_events(*events)
    assert texts(written) == "".join(part.text or "" for part in pieces if not part.thought)
    assert texts(written, "reasoning") == "".join(part.text or "" for part in pieces if part.thought)
