"""A model's live connection as ADK uses it, with a few differences.

It is read all the time. ADK reads nothing while a tool waits for a person, so that it would learn too late that the
model took the call back, and after 16 unread messages the connection would not even see the answers to its own pings.

It lets an answer come to its end before ADK leaves at a GoAway. It ends what was said when the connection is lost, and
when the model calls a tool: the whole text follows its pieces, as at the end of a turn.

It reports what passes, also calls that the model took back, which ADK drops. The model gets no results of those.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Protocol

from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from .unfinished_texts import UnfinishedTexts

if TYPE_CHECKING:
    from google.adk.models.base_llm_connection import RealtimeInput  # from 2.12 on

_END_OF_TURN = object()
_LEAVES_EARLY_S = 1  # before the service does


class ConnectionObserver(Protocol):
    @property
    def is_answer_due(self) -> bool:
        """Whether the model has something to answer, or has not come to the end of what it says."""
        ...

    def read(self, response: LlmResponse) -> None:
        """The model has sent this. ADK may take it later, as it is left here."""
        ...

    def for_adk(self, responses: AsyncGenerator[LlmResponse, None]) -> AsyncGenerator[LlmResponse, None]:
        """What ADK is to get of these."""
        ...

    def taken(self, response: LlmResponse) -> None:
        """ADK takes this next."""
        ...

    def for_model(self, content: types.Content) -> types.Content | None:
        """What the model gets of this, if anything."""
        ...

    def sent(self, content: types.Content) -> None:
        """This goes to the model, or is lost with the connection."""
        ...

    def not_sent(self, content: types.Content) -> None:
        """It was lost."""
        ...

    def withdrawn(self, call_ids: Sequence[str]) -> None: ...


class WatchedConnection(BaseLlmConnection):
    def __init__(self, connection: BaseLlmConnection, observer: ConnectionObserver) -> None:
        self.is_going_away = False
        """Whether ADK knows that the service is about to end the connection."""
        self._connection = connection
        self._observer = observer
        self._unread: asyncio.Queue[Any] = asyncio.Queue()
        self._go_away: LlmResponse | None = None
        self._leave_at = 0.0
        self._unfinished = UnfinishedTexts()
        self._after_history: Sequence[types.Content] = ()
        _report_withdrawn(connection, observer.withdrawn)
        self._reader = asyncio.create_task(self._read(), name="adk-stream model")

    async def say_again(self, contents: Sequence[types.Content], *, after_history: bool) -> None:
        """Send words that were lost with the last connection."""
        if after_history:
            self._after_history = contents
            return
        for content in contents:
            await self._send_content(content)

    async def stop_reading(self) -> None:
        self._reader.cancel()
        await asyncio.wait([self._reader])

    # -- what the model sends -----------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            is_ended = False
            while not is_ended:
                is_ended = True
                async with aclosing(self._connection.receive()) as responses:
                    async for response in responses:
                        is_ended = False
                        self._observer.read(response)
                        self._unread.put_nowait(response)
                self._unread.put_nowait(_END_OF_TURN)
                await asyncio.sleep(0)
        except Exception as error:  # for ADK, which decides what comes next
            self._unread.put_nowait(error)

    def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """The responses of one turn. If there are none, the connection has ended."""
        return self._observer.for_adk(self._receive())

    async def _receive(self) -> AsyncGenerator[LlmResponse, None]:
        while (found := await self._next()) is not _END_OF_TURN:
            if isinstance(found, Exception):
                for whole in self._unfinished.take_wholes():
                    yield whole
                raise found
            if found.go_away is not None and not self.is_going_away and self._observer.is_answer_due:
                self._go_away = self._go_away or found
                self._leave_at = asyncio.get_running_loop().time() + _stays_s(found.go_away)
                continue
            if found.go_away is not None:
                self.is_going_away = True
                for whole in self._unfinished.take_wholes():
                    yield whole
            self._observer.taken(found)
            for response in self._unfinished.feed(found):
                yield response

    async def _next(self) -> Any:
        """ADK leaves at a GoAway, also in the middle of an answer. So it gets that at the end of the turn, or when the
        service is about to leave."""
        if self._go_away is None:
            return await self._unread.get()
        found: Any = _END_OF_TURN
        if asyncio.get_running_loop().time() < self._leave_at:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._leave_at):
                    found = await self._unread.get()
        if found is _END_OF_TURN:
            found, self._go_away, self.is_going_away = self._go_away, None, True
        return found

    # -- what ADK sends -----------------------------------------------------------------------------------------------

    async def send_history(self, history: list[types.Content]) -> None:
        await self._connection.send_history(history)
        contents, self._after_history = self._after_history, ()
        await self.say_again(contents, after_history=False)

    async def send_content(self, content: types.Content) -> None:
        await self._send_content(content)

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        wanted = self._observer.for_model(content)
        if wanted is None:
            return
        self._observer.sent(content)
        try:
            await self._connection._send_content(wanted, partial=partial)  # pyright: ignore[reportPrivateUsage] -- as ADK
        except Exception:
            self._observer.not_sent(content)
            raise

    async def send_realtime(self, blob: "RealtimeInput") -> None:
        await self._connection.send_realtime(blob)  # pyright: ignore[reportArgumentType] -- ADK declares less than it sends

    async def close(self) -> None:
        await self._connection.close()


def _stays_s(go_away: types.LiveServerGoAway) -> float:
    try:
        return float((go_away.time_left or "").removesuffix("s")) - _LEAVES_EARLY_S
    except ValueError:
        return 0


# -- calls that the model took back -----------------------------------------------------------------------------------


def _report_withdrawn(connection: Any, report: Callable[[Sequence[str]], None]) -> None:
    """ADK's own connection reads google-genai's session, and drops these messages. Connections of other models may have
    an attribute that takes the function to call."""
    if hasattr(connection, "on_tool_call_cancellation"):
        connection.on_tool_call_cancellation = report
    elif hasattr(connection, "_gemini_session"):
        connection._gemini_session = _ReportingSession(connection._gemini_session, report)


class _ReportingSession:
    """google-genai's session, with a report of cancelled calls."""

    def __init__(self, session: Any, report: Callable[[Sequence[str]], None]) -> None:
        self._session = session
        self._report = report

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def receive(self) -> AsyncGenerator[types.LiveServerMessage, None]:
        async with aclosing(self._session.receive()) as messages:
            async for message in messages:
                if message.tool_call_cancellation is not None and message.tool_call_cancellation.ids:
                    self._report(message.tool_call_cancellation.ids)
                yield message
