"""A run of ADK's at the gate, without a model: what the gate is asked, and what it tells a live run."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools import BaseTool, ToolContext

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.gated_call import GatedCall
from adk_stream_protocol.adk.calls.leased_chat import LeasedChat
from adk_stream_protocol.adk.calls.policy import Decide
from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_record import CallKey

from .gated_calls import PAY, Recorder
from .records import CHAT


@dataclass
class Observed:
    """A live run that notes what the gate tells it. `has_given_up`: the model that called the tools is gone."""

    has_given_up: bool = False
    is_ending: bool = False
    happens: Callable[[], Awaitable[object]] | None = None
    """While a call waits for its answer."""
    beside: object = None
    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def message_id_of(self, outer: CallKey | None) -> str | None:
        return "m1"

    def began(self, call: CallKey, beside: object) -> None:
        self.beside = beside
        self.told.append(("began", call.call_id))

    def waits(self, call: CallKey, tool: BaseTool, nested_in: object, *, blocks: bool) -> None:
        self.told.append(("waits", call.call_id))

    def goes_on(self, call: CallKey) -> None:
        self.told.append(("goes on", call.call_id))

    def abandoned(self, call: CallKey) -> None:
        self.told.append(("abandoned", call.call_id))

    async def news(self, timeout_s: float) -> None:
        assert self.happens is not None
        await self.happens()

    def left(self, call: CallKey) -> None:
        self.told.append(("left", call.call_id))

    def settled(self, call: CallKey, response: object) -> bool:
        self.told.append(("settled", call.call_id))
        return self.has_given_up


class AtTheGate:
    """A run of ADK's in a chat that this process holds."""

    def __init__(
        self, store: Recorder, leased: LeasedChat, context: InvocationContext, decide: Decide | None = None
    ) -> None:
        self.store, self.leased, self.context = store, leased, context
        self.gate = ApprovalGate(store, ApprovalPolicy(hints={"pay": "Pay it?"}, decide=decide), 30)
        self.gate.begin_run(leased)
        self.tool_context = ToolContext(context, function_call_id="1")

    @classmethod
    async def opened(cls, chat_id: str = CHAT.chat_id, decide: Decide | None = None) -> "AtTheGate":
        store, sessions = Recorder(), InMemorySessionService()
        lease, snapshot = await store.acquire(CHAT, 30)
        assert lease is not None
        session = await sessions.create_session(app_name=CHAT.app_name, user_id=CHAT.user_id, session_id=chat_id)
        agent = LlmAgent(name="a")
        context = InvocationContext(session_service=sessions, invocation_id="i1", agent=agent, session=session)
        return cls(store, LeasedChat.taken(lease, snapshot), context, decide)

    async def before(self, tool: BaseTool) -> Any:
        return await self.gate.before_tool_callback(tool=tool, tool_args=PAY, tool_context=self.tool_context)

    async def after(self, tool: BaseTool, result: Any = None) -> Any:
        return await self.gate.after_tool_callback(
            tool=tool, tool_args=PAY, tool_context=self.tool_context, result=result
        )

    def call(self, tool: BaseTool) -> GatedCall:
        call = self.gate._call_of(tool, self.tool_context)  # pyright: ignore[reportPrivateUsage]
        assert call is not None
        call.arguments = PAY
        return call

    async def decide(self, *, approved: bool) -> None:
        (found,) = (await self.store.read(CHAT)).records
        decided = call_record.decide(found, by="ann", approved=approved, now=self.store.clock.now)
        assert await self.store.compare_and_set(found, decided)

    async def output(self) -> None:
        """The client answers a call that is left to it."""
        (found,) = (await self.store.read(CHAT)).records
        answered = call_record.take_output(found, by="ann", result={"output": {"seat": 7}}, now=self.store.clock.now)
        assert await self.store.compare_and_set(found, answered)

    def observe(self, *, has_given_up: bool = False, is_live: bool = True) -> Observed:
        observed: Any = Observed(has_given_up)
        self.leased.observer = observed
        self.leased.live_observer = observed if is_live else None
        return observed
