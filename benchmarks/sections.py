"""The three questions: what a delta costs, what the bridge alone costs, what stands before the first text."""

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing

import orjson
import ours
from ag_ui.encoder import EventEncoder
from ag_ui_adk.event_translator import EventTranslator
from cases import BareRuns, Case, ServedTurn, ag_ui_adapter, ag_ui_endpoint, least_server, raw, run_sse, run_sse_frame
from google.adk.events import Event
from measure import Samples, new_chat_id, paired_rounds, turn_cost
from report import Table
from scripted_model import PACES, Script, script_of, scripted_agent
from sse_text import TextOfFrame, adk_event_text, ag_ui_text, ai_sdk_text, bytes_per_delta, text_of_stream

# Counted in turns, because the cases differ in what they store: bare ADK keeps two events per turn (200 in
# all), a resumable app a third one that marks the end of the agent.
EARLIER_TURNS = 100

# In a server an event is encoded while it is still in the processor's cache. A short recording played many
# times stays there too; a long one does not, and then the figures show the memory instead of the encoders.
_RECORDED_DELTAS = 100
_PASSES_PER_ROUND = 20

Progress = Callable[[str], None]


def turn_cases() -> dict[str, Case]:
    return {
        "raw": raw,
        "run_sse": run_sse,
        "least server": least_server,
        "ag-ui-adk adapter": ag_ui_adapter,
        "ag-ui-adk endpoint": ag_ui_endpoint,
        "ours, all through ADK": ours.ours_through_adk,
        "ours, all through ADK, merged": ours.ours_merged,
        "ours": ours.ours,
    }


async def _opened(stack: AsyncExitStack, script: Script) -> dict[str, ServedTurn]:
    return {name: await stack.enter_async_context(case(scripted_agent(script))) for name, case in turn_cases().items()}


async def cost_per_delta(delta_count: int, rounds: int, progress: Progress) -> Table:
    """A whole turn in a new session, divided by its deltas."""

    def one_turn(turn: ServedTurn, script: Script) -> Callable[[], Awaitable[float]]:
        async def cost() -> float:
            return (await turn_cost(turn, new_chat_id(), script.text)).whole / delta_count * 1e6

        return cost

    columns: dict[str, Samples] = {}
    for pace_name in PACES:
        progress(f"a turn of {delta_count} deltas, pace {pace_name}")
        script = script_of(delta_count, pace_name)
        async with AsyncExitStack() as stack:
            turns = await _opened(stack, script)
            columns[pace_name] = await paired_rounds(
                rounds, {name: one_turn(turn, script) for name, turn in turns.items()}
            )
    return Table(f"CPU per delta of a whole turn, {delta_count} deltas", "us", "raw", columns)


async def cost_to_first_text(rounds: int, progress: Progress) -> Table:
    """From the request to the first text, in a new session and in one with a past."""
    script = script_of(3, "idle")

    def first_text(turn: ServedTurn, chat_id: Callable[[], str]) -> Callable[[], Awaitable[float]]:
        async def cost() -> float:
            return (await turn_cost(turn, chat_id(), script.text)).to_first_text * 1e3

        return cost

    async with AsyncExitStack() as stack:
        turns = await _opened(stack, script)
        progress("to the first text, new session")
        new_session = await paired_rounds(rounds, {name: first_text(turn, new_chat_id) for name, turn in turns.items()})
        progress(f"to the first text, after {EARLIER_TURNS} turns")
        old_chat = new_chat_id()
        for turn in turns.values():
            for _ in range(EARLIER_TURNS):
                await turn_cost(turn, old_chat, script.text)
        old_session = await paired_rounds(
            rounds, {name: first_text(turn, lambda: old_chat) for name, turn in turns.items()}
        )
    # Each timed turn is one more for the next, the uncounted first round included.
    columns = {
        "new session": new_session,
        f"{EARLIER_TURNS} to {EARLIER_TURNS + rounds} earlier turns": old_session,
    }
    return Table("CPU from the request to the first text", "ms", "raw", columns)


Encode = Callable[[list[Event]], Awaitable[list[bytes]]]


async def _orjson_floor(events: list[Event]) -> list[bytes]:
    """The least that can be done per event: one attribute path, one dictionary, one call into C."""
    return [
        b"data: " + orjson.dumps({"type": "text-delta", "id": "0", "delta": event.content.parts[0].text}) + b"\n\n"
        for event in events
        if event.partial
    ]


async def _run_sse_frames(events: list[Event]) -> list[bytes]:
    return [run_sse_frame(event) for event in events]


async def _ag_ui_frames(events: list[Event]) -> list[bytes]:
    translator, encoder = EventTranslator(), EventEncoder()
    return [
        encoder.encode(translated).encode()
        for event in events
        async for translated in translator.translate(event, "thread", "run")
    ]


async def _our_frames(events: list[Event]) -> list[bytes]:
    return ours.encode_events(events)


async def _our_direct_frames(events: list[Event]) -> list[bytes]:
    return ours.encode_words(events[0], [event.content.parts[0].text for event in events[1:] if event.partial])


def _encoders() -> dict[str, tuple[Encode, TextOfFrame]]:
    return {
        "orjson floor": (_orjson_floor, ai_sdk_text),
        "run_sse": (_run_sse_frames, adk_event_text),
        "ag-ui-adk translator": (_ag_ui_frames, ag_ui_text),
        "ours, all through ADK": (_our_frames, ai_sdk_text),
        "ours": (_our_direct_frames, ai_sdk_text),
    }


async def cost_of_encoding(rounds: int, progress: Progress) -> list[Table]:
    """Recorded events of a real run to bytes: the bridge without ADK and without the web framework."""
    progress("encoding recorded events")
    script = script_of(_RECORDED_DELTAS, "nap")
    async with aclosing(BareRuns(scripted_agent(script))) as runs:
        events = [event async for event in runs.events_of_turn(new_chat_id())]

    def one_pass(encode: Encode, text_of_frame: TextOfFrame) -> Callable[[], Awaitable[float]]:
        async def cost() -> float:
            began_at = time.process_time()
            for _ in range(_PASSES_PER_ROUND):
                frames = await encode(events)
            ended_at = time.process_time()
            if text_of_stream(frames, text_of_frame) != script.text:
                raise AssertionError("an encoder lost text")
            return (ended_at - began_at) / _PASSES_PER_ROUND / _RECORDED_DELTAS * 1e6

        return cost

    encoders = _encoders()
    costs = await paired_rounds(rounds, {name: one_pass(*encoder) for name, encoder in encoders.items()})
    sizes = {
        name: [bytes_per_delta(await encode(events), text_of_frame)]
        for name, (encode, text_of_frame) in encoders.items()
    }
    column = f"a turn of {_RECORDED_DELTAS} deltas"
    return [
        Table("CPU per delta, recorded ADK events to bytes", "us", "orjson floor", {column: costs}),
        Table("Bytes on the wire per short delta", "B", "orjson floor", {column: sizes}),
    ]
