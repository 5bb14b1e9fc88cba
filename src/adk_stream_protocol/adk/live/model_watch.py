"""What one live run knows of its model's connections: when to dial again, what to say again, what was taken back.

ADK opens a connection, and resumes it with a handle when it is lost, without a report. It dials again at once, and for
ever if each connection is accepted and dropped.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import cache
from types import new_class
from typing import Any, Protocol, cast

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import errors as genai_errors
from google.genai import types
from websockets.exceptions import ConnectionClosed

from ...limits import Limits
from ..failures import ModelLost
from ..node_tree import all_nodes
from .model_call_ids import ModelCallIds
from .model_connection import WatchedConnection
from .talking_on import TalkingOn, is_pending_answer
from .unanswered_words import UnansweredWords

Skim = Callable[[AsyncGenerator[LlmResponse, None]], AsyncGenerator[LlmResponse, None]]


class ModelObserver(Protocol):
    """What a live run is notified of."""

    def withdrawn(self, call_ids: Sequence[str]) -> None:
        """The model took calls back."""
        ...

    def is_withdrawn(self, call_id: str) -> bool:
        """Whether this call came to nothing, because the model took it back."""
        ...

    def connection_lost(self) -> None:
        """The connection was lost, and the model had something to answer or to go on with."""
        ...

    def said_again(self) -> None:
        """After that, what the user had said was sent again."""
        ...


class ModelWatch:
    def __init__(
        self,
        limits: Limits,
        observer: ModelObserver,
        talking_on: TalkingOn,
        call_ids: ModelCallIds,
        skim: Skim,
    ) -> None:
        """`skim`: what ADK is to get of a model's responses."""
        self.has_spoken = False
        """Whether the model has said anything in this run."""
        self._limits = limits
        self._observer = observer
        self._talking_on = talking_on
        self._call_ids = call_ids
        self._skim = skim
        self._words = UnansweredWords()
        self._is_resuming = False
        self._has_spoken_here = False
        self._drops = 0

    # -- connections --------------------------------------------------------------------------------------------------

    def prepare(self, model: BaseLlm, request: LlmRequest) -> None:
        """Before a connection is dialled."""
        self._talking_on.prepare(model, request)

    @asynccontextmanager
    async def connect(
        self, dialled: AbstractAsyncContextManager[BaseLlmConnection], request: LlmRequest
    ) -> AsyncGenerator[BaseLlmConnection, None]:
        await self._back_off()
        loop = asyncio.get_running_loop()
        opened_at, self._has_spoken_here, is_lost = loop.time(), False, False
        try:
            async with dialled as connection:
                opened_at = loop.time()
                watched = WatchedConnection(connection, self)
                try:
                    await self._say_again(watched, request)
                    yield watched
                    is_lost = watched.is_going_away
                finally:
                    await watched.stop_reading()
        except (ConnectionClosed, genai_errors.APIError):
            is_lost = True
            raise
        finally:
            self._is_resuming = is_lost
            self._closed(lived_s=loop.time() - opened_at)

    async def _back_off(self) -> None:
        limits = self._limits
        if self._drops > limits.max_live_redials:
            raise ModelLost
        if self._drops:
            await asyncio.sleep(min(limits.live_backoff_s * 2 ** (self._drops - 1), limits.max_live_backoff_s))

    async def _say_again(self, connection: WatchedConnection, request: LlmRequest) -> None:
        if self._is_resuming:
            handle = _handle_of(request)
            has_history = handle is None and bool(request.contents)
            lost = self._words.take_lost(handle)
            await connection.say_again(lost, after_history=has_history)
            if lost:
                self._observer.said_again()
        else:
            self._words.forget()

    def _closed(self, *, lived_s: float) -> None:
        if not self._is_resuming:
            self._drops = 0
            return
        is_short = lived_s < self._limits.live_short_connection_s and not self._has_spoken_here
        self._drops = self._drops + 1 if is_short else 0
        if self._words.is_answer_due:
            self._observer.connection_lost()

    @property
    def is_answer_due(self) -> bool:
        return self._words.is_answer_due

    # -- what passes --------------------------------------------------------------------------------------------------

    def read(self, response: LlmResponse) -> None:
        update = response.live_session_resumption_update
        if update is not None and update.new_handle:
            self._words.handle_issued(update.new_handle)
        self._call_ids.rename_repeated(response)

    def for_adk(self, responses: AsyncGenerator[LlmResponse, None]) -> AsyncGenerator[LlmResponse, None]:
        return self._skim(responses)

    def taken(self, response: LlmResponse) -> None:
        """ADK takes nothing after a GoAway: what was read behind it is lost with the connection."""
        update = response.live_session_resumption_update
        if update is not None and update.new_handle:
            self._words.handle_in_use(update.new_handle)
        parts = (response.content.parts if response.content is not None else None) or ()
        spoken = response.output_transcription
        if parts or (spoken is not None and spoken.text):
            self.has_spoken = self._has_spoken_here = True
            self._words.said()
        if any(part.function_call is not None for part in parts):
            self._words.called()
        if response.turn_complete:
            self._words.turn_completed()

    def for_model(self, content: types.Content) -> types.Content | None:
        """A model that took a call back expects no result of it. If the tool ran all the same, it is to know that."""
        parts = content.parts or []
        wanted = [part for part in parts if not self._is_withdrawn(part)]
        if parts and not wanted:
            return None
        kept = content if len(wanted) == len(parts) else types.Content(role=content.role, parts=wanted)
        return self._call_ids.with_own_ids(kept)

    def _is_withdrawn(self, part: types.Part) -> bool:
        result = part.function_response
        return result is not None and self._observer.is_withdrawn(result.id or "")

    def sent(self, content: types.Content) -> None:
        if is_pending_answer(content):
            return
        if any(part.function_response is not None for part in content.parts or ()):
            self._words.result_sent()
        else:
            self._words.sent(content)

    def not_sent(self, content: types.Content) -> None:
        self._words.not_sent(content)

    def withdrawn(self, call_ids: Sequence[str]) -> None:
        self._observer.withdrawn(self._call_ids.given(call_ids))


def _handle_of(request: LlmRequest) -> str | None:
    resumption = request.live_connect_config.session_resumption
    return resumption.handle if resumption is not None else None


# -- how it gets between ADK and its models ---------------------------------------------------------------------------

current_watch: ContextVar[ModelWatch | None] = ContextVar("current_watch", default=None)
"""That of the live run that this task belongs to."""


class _WatchedModel:
    """Overrides one method of a model's class. Without a live run of ours it does nothing."""

    __slots__ = ()

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        watch = current_watch.get()
        if watch is not None:
            watch.prepare(cast(BaseLlm, self), llm_request)
        dialled = cast(BaseLlm, super()).connect(llm_request)
        async with dialled if watch is None else watch.connect(dialled, llm_request) as connection:
            yield connection


@cache
def _watched_class(model_class: type[BaseLlm]) -> type[Any]:
    names = {"__module__": model_class.__module__, "__qualname__": model_class.__qualname__}
    return new_class(model_class.__name__, (_WatchedModel, model_class), exec_body=lambda body: body.update(names))


def watch_models(root: Any) -> None:
    """From now on, connections of the models of all agents below `root` are reported to the live run that opens them.
    Each model object gets a subclass of its class: its settings, copies and `isinstance` stay as they are."""
    for agent in all_nodes(root):
        model = live_model_of(agent)
        if model is not None and not isinstance(model, _WatchedModel) and has_live_mode(model):
            object.__setattr__(model, "__class__", _watched_class(type(model)))


def live_model_of(agent: Any) -> BaseLlm | None:
    """None for other nodes, and for a name that ADK does not know: ADK raises when the model is used."""
    if not isinstance(agent, LlmAgent):
        return None
    try:
        return agent.canonical_live_model
    except Exception:
        return None


def has_live_mode(model: BaseLlm) -> bool:
    return type(model).connect is not BaseLlm.connect
