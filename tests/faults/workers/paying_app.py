"""An application whose tool leaves its trace outside of every process, and which can die at any step on the way."""

import json
import os
import re
import signal
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types
from pydantic import PrivateAttr

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, ChatBridge, Limits, Link, Owner
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.store import open_store
from adk_stream_protocol.store.base import Store
from adk_stream_protocol.testing import call
from support.approvers import groups_of
from support.apps import app_of, user_of
from support.tool_log import ToolLog

# Where a process can die, in the order of events.
STEPS = (
    "before_decision",
    "after_decision",
    "after_lease",
    "before_claim",
    "after_start",
    "after_effect",
    "after_record",
    "after_append",
    "after_answer",
)


class Death(NamedTuple):
    """Comes at one step, at once and unannounced."""

    step: str = ""
    signal: int = signal.SIGKILL
    """SIGSTOP for a worker that only seems dead."""

    def at(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), self.signal)


_STEP_AFTER = {
    State.APPROVED: "after_decision",
    State.STARTED: "after_start",
    State.DONE: "after_record",
}


class MortalStore:
    """A store whose process may die beside it."""

    def __init__(self, store: Store, death: Death) -> None:
        self._store = store
        self._death = death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def compare_and_set(self, old: CallRecord, *new: Any, **options: Any) -> bool:
        """`new`: the steps of a call, which a store takes one by one or several at once."""
        states = [step.state for step in new if isinstance(step, CallRecord)]
        if old.state is State.PENDING:
            self._death.at("before_decision")
        if State.CLAIMED in states:
            self._death.at("before_claim")
        is_set = await self._store.compare_and_set(old, *new, **options)
        for state in states if is_set else ():
            if state in _STEP_AFTER:
                self._death.at(_STEP_AFTER[state])
        return is_set

    async def acquire(self, chat: Any, lasts_s: float, changes: Any = ()) -> Any:
        if changes:
            self._death.at("before_decision")
        acquired = await self._store.acquire(chat, lasts_s, changes)
        if changes:
            self._death.at("after_decision")
        if acquired.lease is not None:
            self._death.at("after_lease")
        return acquired

    async def release(self, *about: Any, **options: Any) -> None:
        self._death.at("after_answer")
        await self._store.release(*about, **options)


class PayingModel(BaseLlm):
    """Makes as many payments as it is told to, and then repeats what it was told of them."""

    model: str = "paying"
    _death: Death = PrivateAttr()

    def __init__(self, death: Death) -> None:
        super().__init__()
        self._death = death

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        said = llm_request.contents[-1].parts or []
        told = [part.function_response.response for part in said if part.function_response]
        if told:
            self._death.at("after_append")
            parts = [types.Part(text=f"I was told {json.dumps(told)}")]
        else:
            count = re.search(r"\d+", said[-1].text or "")
            parts = [call("pay", amount=number + 1) for number in range(int(count[0]) if count else 1)]
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage, partial=False)


CHAINED_S = {"olga": 60.0, "otto": 0.4}
"""Users whose payments others decide about, and how long each of them has."""


def who_decides(request: ApprovalRequest) -> Chain | type[Owner]:
    if request.user not in CHAINED_S:
        return Owner
    lasts_s = CHAINED_S[request.user]
    links = (["group:managers"], ["eva", "group:heads"], ["zoe", "ada"])
    return Chain([Link(approvers, lasts_s) for approvers in links])


class PayingApp:
    """Approvals and sessions in one database, or both in memory."""

    def __init__(self, database: str, log: ToolLog, *, death: Death | None = None, lease_s: float = 10) -> None:
        death = death or Death()
        self.log = log

        async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
            """Send money."""
            with log.running("pay", tool_context, amount=amount):
                death.at("after_effect")
                return {"paid": amount}

        tools = [FunctionTool(pay, require_confirmation=True)]
        agent = LlmAgent(name="payer", model=PayingModel(death), tools=tools)
        self.sessions: BaseSessionService = InMemorySessionService()
        if database != "memory":
            self.sessions = DatabaseSessionService(database)
        self.store = open_store(database)
        mortal: Any = MortalStore(self.store, death)
        limits = Limits(lease_s=lease_s, max_runs_per_user=1000)  # one user has all the chats
        self.bridge = ChatBridge(
            agent,
            user_id=user_of,
            groups=groups_of,
            approvals=ApprovalPolicy(decide=who_decides, edits={"pay": {"type": "object"}}),
            session_service=self.sessions,
            store=mortal,
            limits=limits,
        )
        # It looks for what others have left behind only when it is told to: a test says who takes up what.
        recovery = self.bridge._service._recovery
        self.look_for_lost_runs = recovery.start
        recovery.start = lambda: None
        self.app: FastAPI = app_of(self.bridge)

    async def aclose(self) -> None:
        await self.bridge.aclose()
        await self.store.aclose()
        if isinstance(self.sessions, DatabaseSessionService):
            await self.sessions.close()
