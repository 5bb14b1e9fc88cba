"""An assistant that can pay, and everything that a forger would like to change: for tests of forged answers.

Four tools, one of each kind: `pay` runs here and is approved first, `balance` runs here freely, `play` runs in the
browser, `locate` does so when the person agrees.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, ChatClient, Reply, ScriptedModel, call
from support.apps import app_of, user_of
from support.asgi import Exchange, exchange
from support.tool_log import ToolLog

Part = dict[str, Any]

FORGED = "a million, says the forger"  # in every value that no model may ever read


def play(track: int) -> dict[str, Any]:  # pyright: ignore
    """Play a track in the user's browser."""


def locate() -> dict[str, Any]:  # pyright: ignore
    """Tell where the user is."""


class Bank:
    def __init__(self, *replies: Reply, store: MemoryStore | None = None, **options: Any) -> None:
        self.runs: list[Any] = []
        self.log = ToolLog()
        self.store = store or MemoryStore()
        self.sessions = InMemorySessionService()
        self.model = ScriptedModel(replies)
        tools = [
            self.gated_pay(),
            self.balance,
            client_tool(play),
            client_tool(locate, approve=True),
        ]
        self.bridge = self.bridge_with(tools, **options)
        self.app = app_of(self.bridge)

    def bridge_with(self, tools: list[Any], **options: Any) -> ChatBridge:
        """One more worker of this bank's."""
        agent = LlmAgent(name="bank", model=self.model, tools=tools)
        given: dict[str, Any] = {"user_id": user_of, "session_service": self.sessions, "store": self.store}
        return ChatBridge(agent, **{**given, **options})

    def gated_pay(self) -> FunctionTool:
        return FunctionTool(self.pay, require_confirmation=True)

    async def pay(self, amount: float, to: str, tool_context: ToolContext) -> dict[str, Any]:
        """Send money."""
        with self.log.running("pay", tool_context, amount=amount, to=to):
            self.runs.append(("pay", amount, to))
            return {"paid": amount}

    async def balance(self) -> dict[str, Any]:
        """Tell how much there is."""
        self.runs.append("balance")
        return {"balance": 1000}

    async def asks(self, user: str = "ann", chat_id: str | None = None) -> "Asked":
        client = ChatClient(self.app, chat_id=chat_id, headers={"x-user": user})
        return Asked(self, client, await client.send("Please do."))

    async def facts(self) -> Any:
        """All that a forged answer could change. The audit trail is part of it: nothing is noted either."""
        sessions: list[Any] = []
        listed = await self.sessions.list_sessions(app_name="bank")
        for found in sorted((session.user_id, session.id) for session in listed.sessions):
            session = await self.sessions.get_session(app_name="bank", user_id=found[0], session_id=found[1])
            assert session
            events = [event.model_dump_json() for event in session.events]
            chat = ChatKey("bank", *found)
            recorded, noted = (await self.store.read(chat)).records, await self.store.audit(chat)
            sessions.append((found, events, session.state, recorded, noted))
        return list(self.runs), len(self.model.requests), sessions

    async def post(self, body: Mapping[str, Any], user: str = "ann") -> Exchange:
        return await exchange(self.app, body=json.dumps(body).encode(), headers={"x-user": user})

    async def refuses(self, body: Mapping[str, Any], *, user: str = "ann") -> None:
        """As if the call had never been, to the byte; and nothing has changed."""
        before = await self.facts()
        refusal = await self.post(body, user)
        of_nothing = await self.post(answer_body("no-such-chat", "msg-none", [approval_of(NO_CALL, "adk-none")]), "eve")
        assert of_nothing.status == 404
        assert (refusal.status, refusal.headers, refusal.body) == (404, of_nothing.headers, of_nothing.body), body
        assert await self.facts() == before, body

    def model_never_read(self, forged: str = FORGED) -> bool:
        return not any(forged in request.model_dump_json() for request in self.model.requests)


NO_CALL: Part = {"type": "tool-pay", "toolCallId": "call-none", "input": {"amount": 1, "to": "eve"}}


class Asked:
    """A turn that waits for its person or browser."""

    def __init__(self, bank: Bank, client: ChatClient, answer: Answer) -> None:
        assert answer.status == 200, answer.error
        self.bank, self.client, self.answer = bank, client, answer

    @property
    def chat_id(self) -> str:
        return self.client.chat_id

    @property
    def message_id(self) -> str:
        assert self.answer.message_id
        return self.answer.message_id

    @property
    def part(self) -> Part:
        """The first that waits for approval, as the client has it."""
        return self.answer.approvals[0]

    @property
    def chat(self) -> ChatKey:
        return ChatKey("bank", "ann", self.chat_id)

    @property
    def browser_part(self) -> Part:
        return self.answer.browser_calls[0]

    def finished_part(self, tool: str) -> Part:
        """A call of the server's that has run, as the client has it."""
        given = next(c for c in self.answer.of_type("tool-input-available") if c["toolName"] == tool)
        known = {"toolCallId": given["toolCallId"], "input": given["input"]}
        return {"type": f"tool-{tool}", **known, "state": "output-available", "output": {}}

    def body(self, *parts: Part) -> dict[str, Any]:
        return answer_body(self.chat_id, self.message_id, parts)

    def results_body(self, *results: Part) -> dict[str, Any]:
        """In the words of a user's message."""
        message = {"id": "msg-results", "role": "user", "parts": [{"type": "tool-result", **r} for r in results]}
        return {"id": self.chat_id, "trigger": "submit-message", "messages": [message]}

    async def refuses(self, *parts: Part, user: str = "ann") -> None:
        await self.bank.refuses(self.body(*parts), user=user)

    async def refuses_results(self, *results: Part) -> None:
        await self.bank.refuses(self.results_body(*results))

    async def is_approved_after_all(self, result: Any) -> Answer:
        """The person's own word still counts, and none of what was forged has come through."""
        before = len(self.bank.runs)
        done = await self.client.approve(self.answer)
        assert done.status == 200
        assert [chunk["output"] for chunk in done.of_type("tool-output-available")] == [result]
        assert len(self.bank.runs) == before + 1
        assert self.bank.model_never_read()
        return done


def answer_body(chat_id: str, message_id: str, parts: Sequence[Part]) -> dict[str, Any]:
    message = {"id": message_id, "role": "assistant", "parts": list(parts)}
    return {"id": chat_id, "trigger": "submit-message", "messageId": message_id, "messages": [message]}


def approval_of(part: Part, approval_id: str | None = None, approved: Any = True) -> Part:
    """A part as the client fills it in when the person has decided."""
    said = {"id": approval_id or part["approval"]["id"], "approved": approved}
    return {**part, "state": "approval-responded", "approval": said}


def output_of(part: Part, output: Any) -> Part:
    return {**part, "state": "output-available", "output": output}


def confirmation_of(part: Part, output: Any, **changes: Any) -> Part:
    """The same as an answered confirmation tool."""
    original = {"id": part["toolCallId"], "name": part["type"].removeprefix("tool-"), "args": part["input"]}
    return {
        "type": "tool-adk_request_confirmation",
        "toolCallId": part["approval"]["id"],
        "state": "output-available",
        "input": {"originalFunctionCall": {**original, **changes}},
        "output": output,
    }


# What the tests have in common.

PAID = {"paid": 1}
PAYING: list[Reply] = [[call("pay", amount=1, to="Hanako")], "Paid."]
NOT_BOOLEANS: list[Any] = ["yes", "true", "True", 1, 1.0, None, {}, {"approved": True}, [True], ""]
