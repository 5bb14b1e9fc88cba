"""Effects are carried out in their order, also behind one that has to wait."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from adk_stream_protocol.adk.live.effect_queue import Cause, EffectQueue
from adk_stream_protocol.protocol.live_effects import ClearVoice, Effect, Hear, Notify, Send

pytestmark = pytest.mark.virtual_time

NOBODY = Cause()


class Worker:
    """`Notify` is at once, `ClearVoice` takes a while, `Send` fails after a while, `Hear` at once."""

    def __init__(self) -> None:
        self.done: list[Effect] = []
        self.queue = EffectQueue(self.act)

    def act(self, effect: Effect, cause: Cause) -> Awaitable[Any] | None:
        if isinstance(effect, Notify):
            self.done.append(effect)
            return None
        if isinstance(effect, Hear):
            raise KeyError
        return self._later(effect)

    async def _later(self, effect: Effect) -> None:
        await asyncio.sleep(1)
        if isinstance(effect, Send):
            raise ConnectionError(effect.message)
        self.done.append(effect)


async def test_what_needs_no_time_is_done_at_once() -> None:
    worker = Worker()
    assert worker.queue.put([Notify("A"), Notify("B")], NOBODY).done()
    assert worker.done == [Notify("A"), Notify("B")]


async def test_nothing_overtakes_what_has_to_wait() -> None:
    worker = Worker()
    first = worker.queue.put([Notify("A"), ClearVoice(), Notify("B")], NOBODY)
    second = worker.queue.put([Notify("C")], NOBODY)
    assert worker.done == [Notify("A")]
    await second
    assert first.done()
    assert worker.done == [Notify("A"), ClearVoice(), Notify("B"), Notify("C")]


@pytest.mark.parametrize("raises", [True, False])
async def test_a_failure_ends_its_own_effects_if_their_caller_takes_them_back_and_never_others(raises: bool) -> None:
    """Otherwise the table counts on all of them: a segment would stay open for ever whose end comes behind."""
    worker = Worker()
    first = worker.queue.put([Send("down"), Notify("A"), Send("again")], Cause(raises=raises))
    second = worker.queue.put([Notify("B")], NOBODY)
    with pytest.raises(ConnectionError, match="down"):
        await first
    await second
    assert worker.done == [*([] if raises else [Notify("A")]), Notify("B")]


async def test_a_failure_at_once_goes_to_the_caller_and_the_queue_goes_on() -> None:
    worker = Worker()
    with pytest.raises(KeyError):
        worker.queue.put([Hear("A", "e1"), Notify("A")], NOBODY)
    with pytest.raises(KeyError):
        await worker.queue.put([ClearVoice(), Hear("A", "e1")], NOBODY)
    worker.queue.put([Notify("B")], NOBODY)
    assert worker.done == [Notify("A"), ClearVoice(), Notify("B")]


async def test_the_queue_is_drained_when_nothing_waits() -> None:
    worker = Worker()
    worker.queue.put([ClearVoice(), ClearVoice()], NOBODY)
    await worker.queue.drained()
    assert worker.done == [ClearVoice(), ClearVoice()]
