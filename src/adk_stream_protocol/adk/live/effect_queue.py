"""Carries out the effects of the live table in their order, also where one of them has to wait for a store."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...protocol.live_effects import Effect
from ..live_listener import LiveListener
from ..run import AnsweredCalls

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Who brought the effects about."""

    by: LiveListener | None = None
    """The socket that the user's words or answers came by."""
    answered: AnsweredCalls | None = None
    raises: bool = False
    """Whether the caller takes the fact back if an effect fails: the effects behind it are not carried out then. The
    table counts on those of all other facts."""


@dataclass(eq=False, slots=True)
class _Batch:
    effects: deque[Effect]
    cause: Cause
    is_over: bool = False
    failure: Exception | None = None
    """The first one."""
    done: "asyncio.Future[None] | None" = None
    """If somebody has to wait for it."""

    def fail(self, failure: Exception) -> None:
        self.failure = self.failure or failure
        if self.cause.raises:
            self.effects.clear()
        else:
            logger.error("an effect in a live session failed: %s", type(failure).__qualname__)


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
        if batch.failure is not None and batch.is_over:
            raise batch.failure
        if batch.is_over:
            return self._done
        batch.done = asyncio.get_running_loop().create_future()
        return batch.done

    def _go_on(self) -> None:
        while self._batches:
            batch = self._batches[0]
            while batch.effects:
                try:
                    work = self._act(batch.effects.popleft(), batch.cause)
                except Exception as error:
                    batch.fail(error)
                    continue
                if work is not None:
                    self._waiting = asyncio.create_task(self._wait(batch, work), name="adk-stream live effect")
                    return
            self._batches.popleft()
            batch.is_over = True
            if batch.done is None or batch.done.done():
                continue
            if batch.failure is None:
                batch.done.set_result(None)
            else:
                batch.done.set_exception(batch.failure)
                batch.done.exception()  # nobody may ask

    async def _wait(self, batch: _Batch, work: Awaitable[Any]) -> None:
        try:
            await work
        except Exception as error:
            batch.fail(error)
        self._waiting = None
        self._go_on()

    async def drained(self) -> None:
        while self._waiting is not None:
            await self._waiting
