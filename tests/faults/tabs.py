"""Browser tabs on one chat. They keep its messages as `useChat` does, and note all that they say and are told."""

import asyncio
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from google.adk.sessions import BaseSessionService
from starlette.types import ASGIApp

from adk_stream_protocol.protocol.call_record import CallKey, ChatKey
from adk_stream_protocol.store.base import Store
from adk_stream_protocol.testing import Answer
from security.bank import Part, answer_body, approval_of, confirmation_of, output_of
from support.asgi import exchange
from support.conversations import fold_into
from support.evidence import ClientStream, Said, World, look
from support.tool_log import ToolLog
from support.truth import CONFIRMATION

Form = Callable[[str, str, Part, bool], dict[str, Any]]
"""From the chat, the message, the part and the decision to a request's body."""


def _in_part(chat_id: str, message_id: str, part: Part, approved: bool) -> dict[str, Any]:
    return answer_body(chat_id, message_id, [approval_of(part, approved=approved)])


def _by_confirmation_tool(chat_id: str, message_id: str, part: Part, approved: bool) -> dict[str, Any]:
    return answer_body(chat_id, message_id, [confirmation_of(part, {"confirmed": approved})])


def _for_the_approval(chat_id: str, _: str, part: Part, approved: bool) -> dict[str, Any]:
    return results_body(chat_id, {"toolCallId": part["approval"]["id"], "output": {"confirmed": approved}})


def _for_the_call(chat_id: str, _: str, part: Part, approved: bool) -> dict[str, Any]:
    named = {"toolCallId": part["toolCallId"], "toolName": part["type"].removeprefix("tool-")}
    return results_body(chat_id, {**named, "result": {"approved": approved}})


FORMS: dict[str, Form] = {
    "the tool's part": _in_part,
    "the confirmation tool": _by_confirmation_tool,
    "a result for the approval": _for_the_approval,
    "a result for the call": _for_the_call,
}


def results_body(chat_id: str, result: Part) -> dict[str, Any]:
    """In the words of a user's message."""
    message = {"id": "msg-results", "role": "user", "parts": [{"type": "tool-result", **result}]}
    return {"id": chat_id, "trigger": "submit-message", "messages": [message]}


def chunks_of(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


_LOOKS = 200
_AT_WORK = ("claimed", "started")


@dataclass
class Seen:
    """The evidence of all tabs of one chat, and where to find the rest of it."""

    chat: ChatKey
    store: Store
    sessions: BaseSessionService
    log: ToolLog
    streams: list[ClientStream] = field(default_factory=list[ClientStream])
    said: list[Said] = field(default_factory=list[Said])
    was_stopped: bool = False

    async def world(self, app: ASGIApp, **more: Any) -> World:
        known: dict[str, Any] = {
            "streams": list(self.streams),
            "said": list(self.said),
            "was_stopped": self.was_stopped,
        }
        looks_left = _LOOKS
        while True:
            before = await self._moves()
            world = await look(app, self.store, self.sessions, self.chat, **{**known, **more})
            runs = self.log.runs(self.chat.chat_id)
            looks_left -= 1
            is_quiet = not any(record.state in _AT_WORK for record in world.records)
            if looks_left == 0 or (is_quiet and before == await self._moves()):
                return replace(world, runs=runs)
            await asyncio.sleep(0.01)

    async def _moves(self) -> list[tuple[CallKey, int]]:
        """On a slow machine a worker may look for lost runs while somebody looks at all this."""
        return [(record.call, record.version) for record in (await self.store.read(self.chat)).records]


class Tab:
    def __init__(self, app: ASGIApp, seen: Seen, name: str = "tab") -> None:
        self.app = app
        """The worker that the next request goes to."""
        self.seen = seen
        self.messages: list[dict[str, Any]] = []
        self.sent: list[tuple[str, dict[str, Any], frozenset[str]]] = []
        """The answers of this tab's, to send them again."""
        self.is_stale = False
        """It must reload before it can go on."""
        self._name = name
        self._said = 0

    # -- what a person does -------------------------------------------------------------------------------------------

    async def say(self, words: str, **body: Any) -> ClientStream:
        self._said += 1
        return await self._turn(f"{self._name}-{self._said}", words, f"say {words!r}", **body)

    async def edit(self, message_id: str, words: str) -> ClientStream:
        """Say something else in the place of this message."""
        self._drop_from(message_id)
        return await self._turn(message_id, words, "edit", messageId=message_id)

    async def regenerate(self, message_id: str) -> ClientStream:
        """A new answer in the place of this one."""
        self._drop_from(message_id)
        body = {"trigger": "regenerate-message", "messageId": message_id, "messages": self.messages[-1:]}
        return await self.post("regenerate", {"id": self._chat_id, **body})

    async def decide(self, part: Part, *, approved: bool, form: str = "the tool's part") -> ClientStream:
        """Press a button that this tab shows."""
        tool, message_id = part["type"].removeprefix("tool-"), self._message_of(part)["id"]
        self.seen.said.append(Said(tool=tool, arguments=part["input"], approved=approved))
        body = FORMS[form](self._chat_id, message_id, part, approved)
        word = "approve" if approved else "deny"
        return await self.answer(f"{word} {part['input']} by {form}", body, frozenset({part["toolCallId"]}))

    async def output(self, part: Part, output: Any, *, in_part: bool = True) -> ClientStream:
        """Of a tool that the browser runs."""
        given = output_of(part, output)
        body = answer_body(self._chat_id, self._message_of(part)["id"], [given])
        if not in_part:
            body = results_body(self._chat_id, {"toolCallId": part["toolCallId"], "output": output})
        return await self.answer(f"output of {part['toolCallId']}", body, frozenset({part["toolCallId"]}))

    async def answer(self, what: str, body: dict[str, Any], calls: frozenset[str]) -> ClientStream:
        self.sent.append((what, body, calls))
        return await self.post(what, body, calls)

    async def replay(self, number: int = -1) -> ClientStream:
        """The same bytes again: a retry of the network's, which no person means."""
        what, body, calls = self.sent[number]
        return await self.post(f"{what}, again", body, calls)

    async def stop(self) -> ClientStream:
        self.seen.was_stopped = True
        return await self._request("stop", "POST", "/stop")

    async def delete(self) -> ClientStream:
        return await self._request("delete", "DELETE")

    async def resume(self) -> ClientStream:
        return await self._request("resume", "GET", "/stream")

    async def reload(self) -> ClientStream:
        read = await exchange(self.app, method="GET", path=self._path("/messages"), headers=self._headers)
        self.messages = json.loads(read.body) if read.status == 200 else []
        self.is_stale = False
        return self._note(ClientStream(request=f"{self._name}: reload", status=read.status))

    # -- what it shows ------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> list[Part]:
        return [part for message in self.messages for part in message["parts"] if "toolCallId" in part]

    def part(self, tool: str, number: int = -1) -> Part:
        return [part for part in self.parts if part["type"] == f"tool-{tool}"][number]

    @property
    def questions(self) -> list[Part]:
        """The calls that a person is asked about, each with its approval's id, whatever the style."""
        asked = [part for part in self.parts if part["state"] == "approval-requested"]
        for question in self.parts:
            if question["type"] == f"tool-{CONFIRMATION}" and question["state"] == "input-available":
                named = question["input"]["originalFunctionCall"]["id"]
                calls = [part for part in self._message_of(question)["parts"] if part.get("toolCallId") == named]
                asked += [{**part, "approval": {"id": question["toolCallId"]}} for part in calls]
        return asked

    @property
    def browser_calls(self) -> list[Part]:
        asked = {part["toolCallId"] for part in self.questions}
        ours = [part for part in self.parts if part["type"] in ("tool-play", "tool-locate")]
        return [part for part in ours if part["state"] == "input-available" and part["toolCallId"] not in asked]

    # -- requests -----------------------------------------------------------------------------------------------------

    async def post(self, what: str, body: Mapping[str, Any], calls: frozenset[str] = frozenset()) -> ClientStream:
        return await self._request(what, "POST", None, body, calls)

    async def _turn(self, message_id: str, words: str, what: str, **body: Any) -> ClientStream:
        message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": words}]}
        self.messages.append(message)
        return await self.post(what, {"id": self._chat_id, "trigger": "submit-message", "messages": [message], **body})

    async def _request(
        self,
        what: str,
        method: str,
        path: str | None = "",
        body: Mapping[str, Any] | None = None,
        calls: frozenset[str] = frozenset(),
    ) -> ClientStream:
        """`path`: below the chat's address; None for the address of all chats."""
        content = json.dumps(body).encode() if body is not None else b""
        where = "/api/chat" if path is None else self._path(path)
        got = await exchange(self.app, method=method, path=where, body=content, headers=self._headers)
        is_stream = got.headers.get("content-type", "").startswith("text/event-stream")
        chunks = chunks_of(got.body) if is_stream else []
        records = (await self.seen.store.read(self.seen.chat)).records if calls else ()
        self._fold(got.status, chunks)
        return self._note(
            ClientStream(
                request=f"{self._name}: {what}",
                status=got.status,
                chunks=chunks,
                is_done=not is_stream or got.body.endswith(b"data: [DONE]\n\n"),
                answered=calls,
                recorded_then={record.call: str(record.state) for record in records},
            )
        )

    def _note(self, stream: ClientStream) -> ClientStream:
        self.seen.streams.append(stream)
        return stream

    def _fold(self, status: int, chunks: Sequence[dict[str, Any]]) -> None:
        if not chunks:
            return
        message_id = chunks[0].get("messageId")
        message = next((message for message in self.messages if message["id"] == message_id), None)
        if message is None:
            message = {"id": message_id, "role": "assistant", "parts": []}
            self.messages.append(message)
        try:
            fold_into(message, Answer(status, copy.deepcopy(list(chunks))))
        except (AssertionError, KeyError):  # about calls that another tab has seen, and this one has not
            self.is_stale = True

    def _drop_from(self, message_id: str) -> None:
        place = next(place for place, message in enumerate(self.messages) if message["id"] == message_id)
        del self.messages[place:]

    def _message_of(self, part: Part) -> dict[str, Any]:
        call_id = part["toolCallId"]
        return next(m for m in self.messages if any(p.get("toolCallId") == call_id for p in m["parts"]))

    @property
    def _chat_id(self) -> str:
        return self.seen.chat.chat_id

    @property
    def _headers(self) -> dict[str, str]:
        return {"x-user": self.seen.chat.user_id}

    def _path(self, path: str) -> str:
        return f"/api/chat/{self._chat_id}{path}"
