"""How long a word takes from the model to the client's frame: past ADK, through ADK, and merged."""

import re
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack

import ours
from cases import Case, Output, ServedTurn
from google.adk.agents import LlmAgent
from google.adk.models import LlmRequest, LlmResponse
from measure import Samples, new_chat_id, paired_rounds
from pydantic import PrivateAttr
from report import Table
from scripted_model import AGENT_NAME, PACES, ScriptedModel, script_of

_WORD = re.compile(rb"w\d{4} ")
_CASES: dict[str, Case] = {
    "ours, all through ADK": ours.ours_through_adk,
    "ours, all through ADK, merged": ours.ours_merged,
    "ours": ours.ours,
}


class TimedModel(ScriptedModel):
    """Notes when it says each word."""

    _said_at: list[float] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._said_at.clear()
        async for response in super().generate_content_async(llm_request, stream=stream):
            self._said_at.append(time.perf_counter())
            yield response


class TimedOutput(Output):
    """Notes when each word comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.came_at: list[float] = []

    def write(self, frame: bytes) -> None:
        super().write(frame)
        self.came_at += [time.perf_counter()] * len(_WORD.findall(frame))


def _one_turn(model: TimedModel, turn: ServedTurn, late: list[float]) -> Callable[[], Awaitable[float]]:
    async def latency() -> float:
        output = TimedOutput()
        await turn.run(new_chat_id(), output)
        took = [
            (came - said) * 1e6
            for said, came in zip(model._said_at[:-1], output.came_at, strict=True)  # without the whole at the end
        ]
        late.append(statistics.quantiles(took, n=100)[98])
        return statistics.median(took)

    return latency


async def latency_of_words(delta_count: int, rounds: int, progress: Callable[[str], None]) -> Table:
    """Wall time, unlike all other figures: a busy machine makes them larger, so only compare within a column."""
    columns: dict[str, Samples] = {}
    for pace_name in PACES:
        progress(f"latency of {delta_count} words, pace {pace_name}")
        late: Samples = {name: [] for name in _CASES}
        turns: dict[str, Callable[[], Awaitable[float]]] = {}
        async with AsyncExitStack() as stack:
            for name, case in _CASES.items():
                model = TimedModel(script=script_of(delta_count, pace_name))
                turn = await stack.enter_async_context(case(LlmAgent(name=AGENT_NAME, model=model)))
                turns[name] = _one_turn(model, turn, late[name])
            columns[f"{pace_name}, p50"] = await paired_rounds(rounds, turns)
        columns[f"{pace_name}, p99"] = {name: figures[1:] for name, figures in late.items()}  # one is not counted
    return Table("Wall time from the model's word to its frame", "us", "ours, all through ADK", columns)
