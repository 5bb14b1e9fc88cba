"""What a page with `useChat` does with a chat: it folds streams into messages, the person and the browser fill them in,
and it posts them back. Every segment is judged by the rules of the AI SDK's clients."""

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import Answer
from protocol.segment_checker import ClientMessage
from support.conversations import Conversation, asked_parts, conversation, fold_into

Part = dict[str, Any]


class Page:
    def __init__(self, chat: Conversation, *, sdk_version: Any = 6, **body: Any) -> None:
        self.chat = chat
        self.messages: list[dict[str, Any]] = []
        self._sdk_version = sdk_version
        self._body = {"sdkVersion": sdk_version, **body}
        self._judges: dict[str, ClientMessage] = {}

    async def say(self, words: str, **body: Any) -> Answer:
        message = {"id": f"u{len(self.messages)}", "role": "user", "parts": [{"type": "text", "text": words}]}
        self.messages.append(message)
        return await self._post(messages=self.messages, **body)

    async def answer(self, number: int = -1, **body: Any) -> Answer:
        """Post an assistant message, the newest one unless told otherwise, as its client has filled it in."""
        told = [message for message in self.messages if message["role"] == "assistant"]
        return await self._post(messages=self.messages, messageId=told[number]["id"], **body)

    async def _post(self, **body: Any) -> Answer:
        request = {"id": self.chat.chat_id, "trigger": "submit-message", **self._body, **copy.deepcopy(body)}
        answer = await self.chat.post(request)
        if answer.status == 200:
            self.read(answer)
        return answer

    def read(self, answer: Answer) -> None:
        """One more segment, of a new message or of one that is there."""
        assert answer.message_id is not None
        message = next((message for message in self.messages if message["id"] == answer.message_id), None)
        if message is None:
            message = {"id": answer.message_id, "role": "assistant", "parts": []}
            self.messages.append(message)
        judge = self._judges.setdefault(answer.message_id, ClientMessage(self._sdk_version))
        judge.read(copy.deepcopy(answer.chunks))
        assert not (judge.posts_again and answer.chunks[-1].get("finishReason") != "tool-calls")
        fold_into(message, copy.deepcopy(answer))

    # -- the person and the browser -----------------------------------------------------------------------------------

    def parts(self, tool: str | None = None) -> list[Part]:
        """The tool's parts of all messages, or those of all tools."""
        parts = [part for message in self.messages for part in message["parts"] if "toolCallId" in part]
        return [part for part in parts if tool is None or part["type"] == f"tool-{tool}"]

    def part(self, tool: str, number: int = 0) -> Part:
        return self.parts(tool)[number]

    def states(self, tool: str | None = None) -> list[str]:
        return [part["state"] for part in self.parts(tool)]

    def decide(self, tool: str, number: int = 0, *, approved: bool = True, **said: Any) -> None:
        part = self.part(tool, number)
        assert part["state"] == "approval-requested"
        part["state"] = "approval-responded"
        part["approval"] = {**part["approval"], "approved": approved, **said}
        self._judge_of(part).decide(part["toolCallId"], approved)

    def output(self, tool: str, output: Any, number: int = 0) -> None:
        part = self.part(tool, number)
        part |= {"state": "output-available", "output": output}
        self._judge_of(part).add_output(part["toolCallId"])

    def fail(self, tool: str, text: str, number: int = 0) -> None:
        part = self.part(tool, number)
        part |= {"state": "output-error", "errorText": text}
        self._judge_of(part).add_output(part["toolCallId"])

    def _judge_of(self, part: Part) -> ClientMessage:
        return next(self._judges[message["id"]] for message in self.messages if part in message["parts"])

    # -- reloads ------------------------------------------------------------------------------------------------------

    async def is_what_a_reload_shows(self) -> None:
        """Part by part. Steps without anything in them are there for stock helpers, and not always kept."""
        shown = await self.chat.messages(x_ai_sdk_version=str(self._sdk_version))
        assert _without_empty_steps(shown) == _without_empty_steps(self.messages)

    async def second_tab(self) -> "Page":
        """The same chat, opened anew."""
        tab = Page(self.chat, sdk_version=self._sdk_version)
        tab._body = self._body
        tab.messages = await self.chat.messages(x_ai_sdk_version=str(self._sdk_version))
        tab._judges = copy.deepcopy(self._judges)
        return tab


def _without_empty_steps(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for message in messages:
        followed = zip(message["parts"], [*message["parts"][1:], STEP], strict=True)
        kept.append({**message, "parts": [part for part, next_one in followed if not part == next_one == STEP]})
    return kept


STEP = {"type": "step-start"}


def results_told(model: Any) -> list[Any]:
    """The results of calls, as the model was told them last."""
    parts = asked_parts(model.requests[-1])
    return [part["result"] for part in parts if isinstance(part, dict) and "result" in part]


class Till:
    """A tool that should wait for a person, and how often it really ran."""

    def __init__(self, works: Callable[[int], Any] = lambda amount: {"paid": amount}) -> None:
        self.paid: list[int] = []
        self._works = works

    async def pay(self, amount: int) -> dict[str, Any]:
        """Pays."""
        self.paid.append(amount)
        return self._works(amount)

    @property
    def gated(self) -> FunctionTool:
        return FunctionTool(self.pay, require_confirmation=True)


class Slow(Till):
    """Pays when it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    async def pay(self, amount: int) -> dict[str, Any]:
        """Pays."""
        self.paid.append(amount)
        self.started.set()
        await self.go_on.wait()
        return {"paid": amount}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def page(*replies: Any, sdk_version: Any = 6, **options: Any) -> AsyncGenerator[Page]:
    """A page on a chat of its own."""
    async with conversation(*replies, **options) as chat:
        yield Page(chat, sdk_version=sdk_version)
