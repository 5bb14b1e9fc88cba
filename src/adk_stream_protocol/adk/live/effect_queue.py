"""Carries out the effects of the live table in their order, also where one of them has to wait for a store."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...protocol.live_effects import Effect
from ..live_listener import LiveListener
from ..run import AnsweredCalls


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Who brought the effects about."""

    by: LiveListener | None = None
    """The socket that the user's words or answers came by."""
    answered: AnsweredCalls | None = None
    raises: bool = False
    """Whether a failure goes to the caller. Otherwise the effect is tried again, or the failure is logged."""


@dataclass(eq=False, slots=True)
class _Batch:
    effects: deque[Effect]
    cause: Cause
    is_over: bool = False
    done: "asyncio.Future[None] | None" = None
    """If somebody has to wait for it."""


Act = Callable[[Effect, Cause], Awaitable[Any] | None]


class EffectQueue:
    def __init__(self, act: Act) -> None:
        """`act` carries out an effect, at once or in what it returns."""
        self._act = act
        self._batches: deque[_Batch] = deque()
        self._waiting: asyncio.Task[None] | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._done.set_result(None)

    @property
    def is_idle(self) -> bool:
        return not self._batches

    def put(self, effects: Iterable[Effect], cause: Cause) -> "asyncio.Future[None]":
        """The future is done when all of them are carried out."""
        batch = _Batch(deque(effects), cause)
        self._batches.append(batch)
        if self._waiting is None and self._batches[0] is batch:
            self._go_on()
        if batch.is_over:
            return self._done
        batch.done = asyncio.get_running_loop().create_future()
        return batch.done

    def _go_on(self) -> None:
        while self._batches:
            batch = self._batches[0]
            while batch.effects:
                work = self._act(batch.effects.popleft(), batch.cause)
                if work is not None:
                    self._waiting = asyncio.create_task(self._wait(batch, work), name="adk-stream live effect")
                    return
            self._batches.popleft()
            batch.is_over = True
            if batch.done is not None and not batch.done.done():
                batch.done.set_result(None)

    async def _wait(self, batch: _Batch, work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception as error:
            batch.effects.clear()
            if batch.done is not None and not batch.done.done():
                batch.done.set_exception(error)
                batch.done.exception()  # nobody may ask
        self._waiting = None
        self._go_on()

    async def drained(self) -> None:
        while self._waiting is not None:
            await self._waiting
