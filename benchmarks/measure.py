"""Paired rounds: in every round each case runs once, in an order that changes from round to round.

All figures are CPU time of this process, which a busy machine disturbs less than the wall clock. A ratio is
taken inside a round, so what disturbs a whole round cancels out.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import count

from cases import Output, ServedTurn

Samples = dict[str, list[float]]
"""Case name to one figure per round."""

# What a server does after its last byte belongs to the turn too, and must not fall into the next case.
_SETTLING_LOOP_TURNS = 10

_chat_numbers = count()


@dataclass(frozen=True)
class TurnCost:
    """CPU seconds of one turn."""

    whole: float
    to_first_text: float


@dataclass(frozen=True)
class Ratio:
    """A case against the baseline of the same round, over all rounds."""

    median: float
    lower_quartile: float
    upper_quartile: float


def new_chat_id() -> str:
    return f"chat-{next(_chat_numbers)}"


async def turn_cost(turn: ServedTurn, chat_id: str, expected_text: str) -> TurnCost:
    """Time one turn, then prove that it delivered its whole text."""
    output = Output()
    began_at = time.process_time()
    await turn.run(chat_id, output)
    for _ in range(_SETTLING_LOOP_TURNS):
        await asyncio.sleep(0)
    ended_at = time.process_time()
    if turn.text_of(output) != expected_text:
        raise AssertionError("a timed turn did not deliver its text")
    if output.first_text_at is None:
        raise AssertionError("a timed turn never showed its first text")
    return TurnCost(whole=ended_at - began_at, to_first_text=output.first_text_at - began_at)


async def paired_rounds(rounds: int, cases: dict[str, Callable[[], Awaitable[float]]]) -> Samples:
    """Run every case once per round; one more round goes first and is not counted."""
    samples: Samples = {name: [] for name in cases}
    _start_from_a_clean_heap()
    for round_number in range(-1, rounds):
        for name in _order(list(cases), round_number):
            # Every case starts with empty young generations, so none pays for the garbage of the one before.
            gc.collect()
            figure = await cases[name]()
            if round_number >= 0:
                samples[name].append(figure)
    return samples


def _start_from_a_clean_heap() -> None:
    gc.unfreeze()
    gc.collect()
    # The imported modules are most of the heap and never garbage: without them a collection per case is cheap.
    gc.freeze()


def _order(names: list[str], round_number: int) -> Iterable[str]:
    start = round_number % len(names)
    rotated = names[start:] + names[:start]
    # Turned around every other round, so that no case always follows the same neighbour.
    return rotated if round_number % 2 else reversed(rotated)


def ratio_to(baseline: list[float], figures: list[float]) -> Ratio:
    ratios = [figure / base for figure, base in zip(figures, baseline, strict=True)]
    if len(ratios) == 1:
        return Ratio(ratios[0], ratios[0], ratios[0])
    lower, median, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(median, lower, upper)
