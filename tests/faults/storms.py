"""A storm: two tabs and two workers on one chat, and a model that numbers its calls anew in every answer. The tabs do
whatever people, pages and networks do, all at once; then it is quiet again, and somebody looks."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions import BaseSessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.base import Store
from adk_stream_protocol.testing import ScriptedModel, call
from faults.tabs import FORMS, Seen, Tab, results_body
from faults.unsteady import some_turns
from security.bank import locate, play
from support.apps import app_of, user_of
from support.evidence import World
from support.tool_log import ToolLog
from support.truth import disagreements

PATIENCE_S = 300  # the databases of a busy machine take their time
LAST_WORDS = "And?"
BROWSER_TOOLS = frozenset({"play", "locate"})
ACTIONS = {
    "approve": 8,
    "deny": 2,
    "output": 4,
    "replay": 3,
    "reload": 3,
    "resume": 2,
    "stop": 2,
    "say": 2,
    "edit": 1,
    "regenerate": 1,
    "delete": 1,
}
"""With how often each is chosen."""


class Storm:
    def __init__(self, name: str, seed: int, store: Store, sessions: BaseSessionService) -> None:
        self._random = Random(seed)
        self._numbers_calls = self._random.random() < 0.7
        self._calls_left = 8
        self._next_amount = 1
        self._model = ScriptedModel([self._reply] * 200)
        # An application of its own: on a slow machine the workers of another storm would continue what these lose.
        self.seen = Seen(ChatKey(f"bank_{name}", "ann", name), store, sessions, ToolLog())
        style = self._random.choice(["approval-request", "approval-request", "confirmation-tool"])
        self._workers = [self._worker(store, sessions, style) for _ in range(2)]
        self._apps = [app_of(worker) for worker in self._workers]

    def _worker(self, store: Store, sessions: BaseSessionService, style: Any) -> ChatBridge:
        tools = [FunctionTool(self._pay, require_confirmation=True), client_tool(play)]
        tools.append(client_tool(locate, approve=True))
        agent = LlmAgent(name="bank", model=self._model, tools=tools)
        given: dict[str, Any] = {"store": store, "session_service": sessions, "approval_style": style}
        return ChatBridge(agent, user_id=user_of, app_name=self.seen.chat.app_name, **given)

    async def _pay(self, amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Send money."""
        with self.seen.log.running("_pay", tool_context, amount=amount):
            await some_turns(self._random, 20)
            return {"paid": amount}

    # -- the model ----------------------------------------------------------------------------------------------------

    def _reply(self, request: LlmRequest) -> Any:
        said = request.contents[-1].parts or []
        has_results = any(part.function_response for part in said)
        goes_on = not has_results or self._random.random() < 0.3
        if self._calls_left <= 0 or not goes_on or any(part.text == LAST_WORDS for part in said):
            return "Well."
        return [self._call(number) for number in range(self._random.choice([1, 1, 2, 3]))]

    def _call(self, number: int) -> types.Part:
        self._calls_left -= 1
        self._next_amount += 1
        tool = self._random.choice(["_pay", "_pay", "_pay", "play", "locate"])
        given = {"_pay": {"amount": self._next_amount}, "play": {"track": self._next_amount}, "locate": {}}
        made = call(tool, **given[tool])
        if self._numbers_calls and made.function_call:
            made.function_call.id = str(number)
        return made

    # -- the tabs -----------------------------------------------------------------------------------------------------

    async def rage(self) -> list[str]:
        """The whole storm: where anybody disagrees afterwards."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                first = self._tab("tab-A")
                await first.say("Pay.")
                await asyncio.gather(self._visit(first), self._visit(self._tab("tab-B")))
                return [*disagreements(await self._calm()), *self._refusals()]
        except TimeoutError:
            return ["the storm never ends"]
        finally:
            for worker in self._workers:
                await worker.aclose()

    def _refusals(self) -> list[str]:
        """That no tab has deserved: it has only said what its page lets it say."""
        # 503: a stop at the worker that does not run the answer.
        given = [
            stream
            for stream in self.seen.streams
            if stream.status not in ((204, 503) if stream.request.endswith(": stop") else (200, 204, 404, 409))
        ]
        return [f"{stream.request} was refused with {stream.status}" for stream in given]

    def _tab(self, name: str) -> Tab:
        return Tab(self._apps[0], self.seen, name)

    async def _visit(self, tab: Tab) -> None:
        for _ in range(self._random.randint(2, 5)):
            await some_turns(self._random, 40)
            await self._act(tab, *self._random.choices(list(ACTIONS), list(ACTIONS.values())))

    async def _act(self, tab: Tab, action: str) -> None:
        random = self._random
        tab.app = random.choice(self._apps)
        if not tab.messages or tab.is_stale:
            await tab.reload()
        users = [message["id"] for message in tab.messages if message["role"] == "user"]
        answers = [message["id"] for message in tab.messages[1:] if message["role"] == "assistant"]
        match action:
            case "approve" | "deny" if tab.questions:
                part, form = random.choice(tab.questions), random.choice(list(FORMS))
                await tab.decide(part, approved=action == "approve", form=form)
            case "output" if tab.browser_calls:
                self._next_amount += 1
                part, output = random.choice(tab.browser_calls), {"plays": self._next_amount}
                await tab.output(part, output, in_part=random.random() < 0.5)
            case "replay" if tab.sent:
                await tab.replay(random.randrange(len(tab.sent)))
            case "edit" if users:
                await tab.edit(random.choice(users), "Pay something else.")
            case "regenerate" if answers:
                await tab.regenerate(random.choice(answers))
            case "say":
                await tab.say("Go on.")
            case "stop" | "delete" | "resume":
                await getattr(tab, action)()
            case _:
                await tab.reload()

    # -- afterwards ---------------------------------------------------------------------------------------------------

    async def _calm(self) -> World:
        """Nothing runs any more, whoever was approved has been asked for again, and the chat has had one more turn."""
        tab = self._tab("tab-C")
        for record in await self._left_approved():
            await self._wait_for_the_end(tab)
            what = {"toolCallId": record.call.call_id, "result": {"approved": True}}
            await tab.post(f"approve {record.arguments}, again", results_body(self.seen.chat.chat_id, what))
        await self._wait_for_the_end(tab)
        while (await tab.say(LAST_WORDS)).status == 409:
            await asyncio.sleep(0.01)
        return await self.seen.world(self._apps[0], requests=self._model.requests, browser_tools=BROWSER_TOOLS)

    async def _wait_for_the_end(self, tab: Tab) -> None:
        for tab.app in self._apps:
            while (await tab.resume()).status != 204:
                pass

    async def _left_approved(self) -> Sequence[Any]:
        records = (await self.seen.store.read(self.seen.chat)).records
        return [record for record in records if record.state == "approved" and record.tool not in BROWSER_TOOLS]
