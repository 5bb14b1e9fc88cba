"""One chat seen by the pages of its user, whatever happens between them: what was posted, what came, what is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

from conformance.node import NodeDriver

WITH_APPROVALS = ("6.0.0", "6", "7.0.0", "7")

OPEN_STATES = ("streaming", "input-streaming", "input-available", "approval-requested", "approval-responded")

Step = dict[str, Any]
Resend = Literal["both", "approvals", "tool-calls", "template", "ours"]
Transport = Literal["http", "official", "ours"]
IDLE: Step = {"waitIdle": True}
RESUME: Step = {"resume": True}
SUBMIT: Step = {"submit": True}
"""The stock helpers post when the last step has all its answers; this posts those that are there."""


def say(words: str) -> Step:
    return {"send": words}


def approve(place: int = 0, **more: Any) -> Step:
    return {"approve": {"place": place, "approved": True, **more}}


def deny(place: int = 0, **more: Any) -> Step:
    return {"approve": {"place": place, "approved": False, **more}}


def ran(tool: str, output: Any) -> Step:
    """The browser has run a tool; a page that is there at the time does so in `onToolCall`."""
    return {"output": {"tool": tool, "output": output}}


def failed(tool: str, error: str) -> Step:
    return {"output": {"tool": tool, "errorText": error}}


def elsewhere(*steps: Step, transport: Transport = "http") -> Step:
    """In another tab, while this one is open."""
    return {"otherTab": {"transport": transport, "steps": steps}}


def is_told_unasked(kind: str, **more: Any) -> Step:
    """The page shows such a part after a while, without doing anything for it."""
    return {"waitPart": {"type": kind, "unasked": True, **more}}


@dataclass
class Conversation:
    """One chat on a server, through any number of pages."""

    node: NodeDriver
    release: str
    origin: str
    chat_id: str = field(default_factory=lambda: f"chat-{uuid4().hex}")
    headers: dict[str, str] = field(default_factory=dict[str, str])
    transport: Transport = "http"
    requests: list[Any] = field(default_factory=list[Any])
    tool_calls: list[Any] = field(default_factory=list[Any])
    own_frames: list[Any] = field(default_factory=list[Any])
    """What a live server has told without being asked."""
    messages: list[Any] = field(default_factory=list[Any])
    """As the last page showed them."""

    @property
    def api(self) -> str:
        return f"{self.origin}/api/chat"

    def open_page(
        self,
        *steps: Step,
        paced: bool = True,
        drops: int = 0,
        errors: Sequence[str] = (),
        goes_on: bool = False,
        **options: Any,
    ) -> Any:
        """A page with what the server has kept, unless `initialMessages` are others, and with all stock helpers on. It
        ends at rest, without an error in the end and with no other `errors` before, and every response is what its
        release takes for one; except for the first ones that it `drops`. `paced`: it comes to rest after every step.
        `goes_on`: the server works on at calls of earlier responses."""
        resend = "tool-calls" if self.release == "5" else "both"
        options = {"resend": resend, "headers": self.headers, "transport": self.transport, **options}
        options.setdefault("initialMessages", self.kept())
        if paced:
            steps = tuple(paced for step in steps for paced in (step, IDLE))
        answer = self.node.chat(release=self.release, api=self.api, chatId=self.chat_id, steps=steps, **options)
        assert (answer["status"], answer["error"], answer["onError"]) == ("ready", None, list(errors))
        assert not answer["resendLoop"]
        # A page that asks for a running response where there is none gets nothing to read.
        requests = [request for request in answer["requests"] if request["response"]["status"] != 204]
        for request in requests[drops:]:
            check_response(request["response"], goes_on=goes_on)
        self.requests += requests
        self.tool_calls += answer["onToolCall"]
        self.own_frames += answer["ownFrames"]
        self.messages = answer["messages"]
        return answer

    def kept(self) -> list[Any]:
        try:
            with urlopen(Request(f"{self.api}/{self.chat_id}/messages", headers=self.headers)) as response:
                return json.load(response)
        except HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return []  # nothing was said yet

    @property
    def wire(self) -> str:
        return notation([request["response"]["chunks"] for request in self.requests])

    @property
    def methods(self) -> list[str]:
        """How each request was made: over a socket it is the kind of its frame."""
        return [request["method"] for request in self.requests]

    @property
    def tools(self) -> list[Any]:
        return [part for message in self.messages for part in message["parts"] if "toolCallId" in part]

    @property
    def ends(self) -> str:
        """How the calls have ended, in the letters of the wire."""
        letters = {"output-available": "O", "output-denied": "D", "output-error": "E"}
        return "".join(letters.get(tool["state"], f" {tool['state']} ") for tool in self.tools)

    @property
    def spoken(self) -> str:
        """What the assistant has said last."""
        return "".join(part["text"] for part in self.messages[-1]["parts"] if part["type"] == "text")

    def is_what_the_server_kept(self, *, after_replay: bool = False) -> bool:
        shown, kept = (as_any_release(messages, after_replay) for messages in (self.messages, self.kept()))
        assert shown == kept  # with pytest's account of the difference
        return True

    def another_page(self, node: NodeDriver | None = None) -> Conversation:
        """The same chat, for what happens on that page alone."""
        return Conversation(node or self.node, self.release, self.origin, self.chat_id, self.headers, self.transport)

    def came_to_its_end(self) -> bool:
        """One message of the assistant's for each of the user's, and nothing in them is open."""
        assert [message["role"] for message in self.messages] == ["user", "assistant"] * (len(self.messages) // 2)
        return not [part for message in self.messages for part in message["parts"] if part.get("state") in OPEN_STATES]


def check_response(response: Any, *, goes_on: bool = False) -> None:
    assert (response["status"], response["complete"], response["schemaErrors"]) == (200, True, [])
    assert response["text"].count("[DONE]") == 1
    assert response["text"].endswith("data: [DONE]\n\n")
    kinds = [chunk["type"] for chunk in response["chunks"]]
    assert (kinds[0], kinds[-1] in ("finish", "error")) == ("start", True)
    assert len([kind for kind in kinds if kind in ("start", "finish", "abort", "error")]) == 2
    # What is told of calls of earlier segments comes before the first step of this one.
    steps = kinds.index("start-step") if "start-step" in kinds else len(kinds)
    begun = {chunk["toolCallId"] for chunk in response["chunks"] if chunk["type"] == "tool-input-start"}
    late = [chunk for chunk in response["chunks"][steps:] if chunk.get("toolCallId", None) not in {None, *begun}]
    assert late == [] or (goes_on and {chunk["type"] for chunk in late} == {"tool-output-available"})


_LETTERS = {
    "start": "start",
    "tool-input-available": "I",
    "tool-approval-request": "A",
    "tool-output-available": "O",
    "tool-output-denied": "D",
    "tool-output-error": "E",
    "text-start": "X",
    "finish": "F",
}
_WITHOUT_LETTER = ("start-step", "finish-step", "tool-input-delta", "text-delta", "text-end", "data-adk-approval")


def notation(segments: Sequence[Sequence[Any]]) -> str:
    """Segments in letters, calls numbered in the order of their beginning if there are several. `i` is a call whose
    arguments come as text only, for the person to look at: its `I` would make the client act."""
    calls = list(dict.fromkeys(c["toolCallId"] for chunks in segments for c in chunks if "toolCallId" in c))
    told: list[str] = []
    for chunks in segments:
        whole = {chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-input-available"}
        letters: list[str] = []
        for chunk in chunks:
            kind, call = chunk["type"], chunk.get("toolCallId")
            number = str(calls.index(call) + 1) if call is not None and len(calls) > 1 else ""
            if kind == "tool-input-start":
                letters += [] if call in whole else [f"i{number}"]
            elif kind not in _WITHOUT_LETTER:
                letters.append(_LETTERS.get(kind, kind) + number)
        told.append(" ".join(letters))
    return " || ".join(told)


def as_any_release(messages: Sequence[Any], after_replay: bool = False) -> list[Any]:
    """Messages without that in which the releases differ among themselves, and after a replay without the user's own
    word: it is the client that writes it down, and no chunk brings it back."""
    return [{**m, "parts": [_as_any_release(part, after_replay) for part in m["parts"]]} for m in messages]


def _as_any_release(part: Any, after_replay: bool) -> Any:
    known = dict(part)
    if "rawInput" in known and json.loads(known["rawInput"]) == known["input"]:
        del known["rawInput"]  # the newest ones keep the text of arguments that were told as text
    if "approval" in known and after_replay:
        known["approval"] = {"id": known["approval"]["id"]}
    return known


def without_made_up(messages: Sequence[Any]) -> Any:
    """Messages with a name for each id, in their order, instead of the one that was made up, and without times."""
    ids = [message["id"] for message in messages]
    parts = [part for message in messages for part in message["parts"]]
    ids += [part["toolCallId"] for part in parts if "toolCallId" in part]
    ids += [part["approval"]["id"] for part in parts if "approval" in part]
    told = json.dumps(as_any_release(messages))
    for number, made_up in enumerate(ids):
        told = told.replace(made_up, f"id-{number}")
    return json.loads(re.sub(r'"deadline": "[^"]*"', '"deadline": ""', told))
