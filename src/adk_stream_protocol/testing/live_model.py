"""A live model that follows a script, or that a coroutine of the test plays."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from pydantic import PrivateAttr

from .live_session import Family, LiveSession
from .models import Reply, ScriptedModel

Server = Callable[[LiveSession], Awaitable[None]]


class ScriptedLiveModel(ScriptedModel):
    """Follows its script in live mode as well as in request mode, with one reply for each turn of the model.

    The model's turn begins when the user has written or has stopped speaking, and when every call of the last reply has
    its response. `requests` has the conversation before each reply.

    Instead of a script it also takes a coroutine function. It is called with a `LiveSession` for each connection:

        async def server(session: LiveSession) -> None:
            assert await session.expect_text() == "Pay 1 dollar"
            await session.call("pay", amount=1)
            assert (await session.expect_response()).response == {"paid": 1}
            await session.answer("Paid.")

    If the coroutine raises, the connection breaks with that exception. When it returns, the connection stays open until
    ADK closes it.
    """

    model: str = "scripted-live"
    family: Family = "2.5"
    live_session_id: str | None = None
    """The service's id of the session. ADK sends the history in another way if there is one."""
    _server: Server = PrivateAttr()
    _sessions: list[LiveSession] = PrivateAttr(default_factory=list[LiveSession])

    def __init__(self, script: Iterable[Reply] | Server = (), **fields: Any) -> None:
        super().__init__(() if callable(script) else script, **fields)
        self._server = script if callable(script) else self._follow_script

    @property
    def sessions(self) -> list[LiveSession]:
        """A session for each connection that ADK has opened."""
        return self._sessions

    async def finished(self) -> None:
        """Wait until every coroutine has ended, and raise the exception of one that failed."""
        for session in self._sessions:
            await session.finished()

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        session = LiveSession(
            llm_request,
            number=len(self._sessions) + 1,
            family=self.family,
            model_version=self.model,
            live_session_id=self.live_session_id,
        )
        self._sessions.append(session)
        with session.played_by(self._server):
            yield session.connection

    async def _follow_script(self, session: LiveSession) -> None:
        waiting: set[str | None] = set()
        while (received := await session.expect()).kind != "close":
            waiting -= {response.id for response in received.final_responses}
            if received.asks_for_reply and not (waiting and received.kind == "response"):
                known = session.request.model_copy(update={"contents": list(session.contents)})
                waiting |= {call.id for call in await session.answer(self.next_reply(known))}
