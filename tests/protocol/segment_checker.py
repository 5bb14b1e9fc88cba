"""Judges messages by the rules of the AI SDK's clients, segment by segment, and knows nothing of who wrote them."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from adk_stream_protocol.protocol.chunks import AnyChunk, SdkVersion, encode_json

Wire = dict[str, Any]
Terminal = Literal["finish", "abort", "error"]
TERMINALS: tuple[Terminal, ...] = ("finish", "abort", "error")


def wire(chunks: list[AnyChunk]) -> list[Wire]:
    """The chunks as a client reads them."""
    return [json.loads(encode_json(chunk)) for chunk in chunks]


def kinds(written: list[Wire]) -> list[str]:
    return [chunk["type"] for chunk in written]


PORTABLE_FIELDS: dict[str, set[str]] = {  # ai 6.0.0, whose schema is strict
    "start": {"messageId", "messageMetadata"},
    "finish": {"finishReason", "messageMetadata"},
    "message-metadata": {"messageMetadata"},
    "start-step": set(),
    "finish-step": set(),
    "abort": set(),
    "error": {"errorText"},
    "text-start": {"id", "providerMetadata"},
    "text-delta": {"id", "delta", "providerMetadata"},
    "text-end": {"id", "providerMetadata"},
    "reasoning-start": {"id", "providerMetadata"},
    "reasoning-delta": {"id", "delta", "providerMetadata"},
    "reasoning-end": {"id", "providerMetadata"},
    "source-url": {"sourceId", "url", "title", "providerMetadata"},
    "source-document": {"sourceId", "mediaType", "title", "filename", "providerMetadata"},
    "file": {"url", "mediaType", "providerMetadata"},
    "tool-input-start": {"toolCallId", "toolName", "providerExecuted", "dynamic"},
    "tool-input-delta": {"toolCallId", "inputTextDelta"},
    "tool-input-available": {"toolCallId", "toolName", "input", "providerExecuted", "providerMetadata", "dynamic"},
    "tool-input-error": {"toolCallId", "toolName", "input", "errorText", "providerExecuted", "dynamic"},
    "tool-output-available": {"toolCallId", "output", "providerExecuted", "dynamic", "preliminary"},
    "tool-output-error": {"toolCallId", "errorText", "providerExecuted", "dynamic"},
}
APPROVAL_FIELDS = {"tool-approval-request": {"approvalId", "toolCallId"}, "tool-output-denied": {"toolCallId"}}
NEWEST_FIELDS = {
    "text-end": {"id", "providerMetadata", "citations"},
    "reasoning-file": {"url", "mediaType"},
    "tool-approval-request": {"approvalId", "toolCallId", "reason", "approvalDescriptor", "isAutomatic"},
    "tool-approval-response": {"approvalId", "approved"},
}
FIELDS: dict[SdkVersion, dict[str, set[str]]] = {
    5: PORTABLE_FIELDS,
    6: PORTABLE_FIELDS | APPROVAL_FIELDS,
    7: PORTABLE_FIELDS | APPROVAL_FIELDS | NEWEST_FIELDS,
}
DATA_FIELDS = {"id", "data"}
MAY_BE_NULL = {"input", "output", "data"}
ENDS_A_CALL = {"tool-input-error", "tool-output-available", "tool-output-error", "tool-output-denied"}


def stock_client_posts_again(written: list[Wire], *, continues: bool = False) -> bool:
    """Whether a client with the stock tool helper takes the end of this segment for its turn to post.

    It looks at its tools since the last `start-step` that it has seen; and it has seen one only when a chunk after
    it made it write its message down. A segment that `continues` a message finds finished tools in its last step.
    """
    if written[-1]["type"] == "error":
        return False
    of_the_model_service = {chunk["toolCallId"] for chunk in written if chunk.get("providerExecuted")}
    finished_tools = continues
    unseen_step = False
    for chunk in written:
        kind = chunk["type"]
        if kind == "start-step":
            unseen_step = True
        elif kind in ENDS_A_CALL and chunk["toolCallId"] not in of_the_model_service:
            finished_tools, unseen_step = True, False
        elif unseen_step and (kind not in {"finish-step", "abort", "finish"} or "messageMetadata" in chunk):
            finished_tools = unseen_step = False
    return finished_tools


def check_segment(written: list[Wire], version: SdkVersion, earlier_calls: frozenset[str] = frozenset()) -> set[str]:
    """Judges a whole segment as the AI SDK's clients do; returns the calls that it leaves without a result."""
    message = ClientMessage(version)
    works_on = {chunk["toolCallId"] for chunk in written if chunk.get("preliminary")}  # and may have done so before
    for call_id in earlier_calls:
        is_working = call_id in works_on
        message.calls[call_id] = SeenCall(step=0, state="input-available", approved=True, preliminary=is_working)
    message.read(written)
    return message.unfinished - earlier_calls


def check_fields(chunk: Wire, allowed: set[str]) -> None:
    assert chunk.keys() - {"type"} <= allowed
    assert all(value is not None or name in MAY_BE_NULL for name, value in chunk.items())
    assert all(isinstance(values, dict) for values in chunk.get("providerMetadata", {}).values())
    if "finishReason" in chunk:
        assert chunk["finishReason"] in {"stop", "length", "content-filter", "tool-calls", "error", "other"}


# -- messages of several segments -------------------------------------------------------------------------------------

RESULTS = {"output-available", "output-error", "output-denied"}
TO_BE_ANSWERED = {"input-streaming", "input-available", "approval-requested"}


@dataclass(kw_only=True)
class SeenCall:
    """A tool's part, as far as rules ask for it. The states are the client's."""

    step: int
    state: str
    name: str = ""
    provider_executed: bool = False
    text: str | None = None
    """Of the arguments, as far as this segment has told it; None: this segment has not begun the call."""
    has_input: bool = False
    is_asked: bool = False
    approved: bool | None = None
    preliminary: bool = False
    automatic_id: str | None = None
    """Of an approval that the application's policy has given."""

    @property
    def has_result(self) -> bool:
        return self.state in RESULTS


class ClientMessage:
    """An assistant message in a client: it reads segments, answers between them, and objects where a client would, or
    where its stock helpers would hang or send for ever."""

    def __init__(self, version: SdkVersion) -> None:
        self.calls: dict[str, SeenCall] = {}
        self._version: SdkVersion = version
        self._id: str | None = None
        self._others_decide = False  # a chain of people that the client does not know goes on
        self.step = 0  # the last one that the client has
        self._unwritten_steps = 0
        self._in_step = False
        self._texts: dict[str, str] = {}
        self._beside_denials: set[str] = set()  # calls that were open when a sibling was told as denied
        self._ended_by = ""

    # What the person and the browser do.

    def decide(self, call_id: str, approved: bool) -> None:
        call = self.calls[call_id]
        assert call.state == "approval-requested"
        call.state, call.approved = "approval-responded", approved

    def add_output(self, call_id: str) -> None:
        """Beside an approval this is pattern A: both in one request."""
        call = self.calls[call_id]
        assert call.state == "input-available" or call.approved
        call.state = "output-available"

    @property
    def unfinished(self) -> set[str]:
        return {call_id for call_id, call in self.calls.items() if not call.has_result or call.preliminary}

    @property
    def last_tools(self) -> list[SeenCall]:
        """All that the stock helpers look at."""
        return [call for call in self.calls.values() if call.step == self.step and not call.provider_executed]

    @property
    def posts_again(self) -> bool:
        """Whether a stock helper, of whatever release, takes the end of the segment for the client's turn to post."""
        tools = self.last_tools
        if not tools or self._ended_by == "error":
            return False
        answered = {"output-available", "output-error"}
        if all(call.state in answered for call in tools):
            return True
        decided = any(call.state == "approval-responded" for call in tools)
        return decided and all(call.state in {*RESULTS, "approval-responded"} for call in tools)

    # What the server tells.

    def read(self, written: list[Wire], *, paused: bool = False) -> None:
        """One segment; `paused`: as far as it is told to those who come later, without its end."""
        assert written[0]["type"] == "start"
        assert paused or written[-1]["type"] in TERMINALS
        assert all(kind not in {"start", *TERMINALS} for kind in kinds(written[1 : len(written) if paused else -1]))
        for call in self.calls.values():
            call.text = None
        for chunk in written:
            self._read_chunk(chunk)
        self._check_denials()
        assert not self._in_step
        assert not self._texts
        self.step -= self._unwritten_steps  # the client forgets them
        self._unwritten_steps = 0
        self._ended_by = "" if paused else written[-1]["type"]
        for call_id, call in self.calls.items():
            is_left = self._others_decide and _shows_its_input(call)
            assert call.state != "input-streaming" or is_left, "arguments are left half written"
            may_go_on = call.automatic_id is not None and self._ended_by == "error"  # in another run, when it can
            if call.state == "approval-responded" and not self._others_decide and not may_go_on:
                others = [other.state for _, other in self._siblings(call_id)]
                assert TO_BE_ANSWERED.intersection(others), "a decision is left without a result"

    def _read_chunk(self, chunk: Wire) -> None:
        kind = chunk["type"]
        is_data = kind.startswith("data-adk-")
        check_fields(chunk, DATA_FIELDS if is_data else FIELDS[self._version][kind])
        if not kind.startswith(("tool-", "file", "source-", "data-")):  # what comes with results
            self._check_denials()
        if kind == "start":
            named = chunk.get("messageId", self._id)
            assert self._id in (None, named), "the client would show the message twice"
            self._id = named
        elif kind == "start-step":
            assert not self._in_step
            assert not self._texts, "a text may not span two steps"
            self._in_step = True
            self.step += 1
            self._unwritten_steps += 1
            return
        elif kind == "finish-step":
            assert self._in_step
            assert not self._texts, "a text may not span two steps"
            self._in_step = False
        elif kind in TERMINALS:
            assert not self._in_step
        elif kind == "tool-approval-response":
            call = next(call for call in self.calls.values() if call.automatic_id == chunk["approvalId"])
            call.state, call.approved = "approval-responded", chunk["approved"]
        elif kind.startswith("tool-"):
            self._read_tool(kind, chunk)
        elif kind == "data-adk-approval" and "chain" in chunk["data"]:
            self._others_decide = chunk["data"]["status"] == "pending"
        elif kind.startswith(("text-", "reasoning-")) and kind != "reasoning-file":
            self._read_text(kind, chunk["id"])
        elif kind in {"source-url", "source-document", "file", "reasoning-file"}:
            assert self._is_in_step
        if kind not in {"finish-step", "abort", "error", "finish"} or "messageMetadata" in chunk:
            self._unwritten_steps = 0

    @property
    def _is_in_step(self) -> bool:
        """A segment may go on in the last step while that holds something for the client to answer."""
        waiting = (call.step for call in self.calls.values() if call.state in TO_BE_ANSWERED)
        return self._in_step or self.step in waiting

    def _read_text(self, kind: str, text_id: str) -> None:
        family, _, event = kind.partition("-")
        if event == "start":
            assert self._is_in_step
            assert text_id not in self._texts
            self._texts[text_id] = family
        assert self._texts[text_id] == family
        if event == "end":
            del self._texts[text_id]

    def _read_tool(self, kind: str, chunk: Wire) -> None:
        call_id = chunk["toolCallId"]
        if kind == "tool-input-start" and call_id not in self.calls:
            assert self._is_in_step
            executed = bool(chunk.get("providerExecuted"))
            self.calls[call_id] = SeenCall(
                step=self.step, state="input-streaming", name=chunk["toolName"], provider_executed=executed, text=""
            )
            return
        call = self.calls[call_id]
        assert not call.has_result or call.preliminary, "the call has its result"
        if kind.startswith("tool-input-"):
            self._read_input(kind, chunk, call)
        elif kind == "tool-approval-request":
            assert _shows_its_input(call), "a person is asked about something that is not shown"
            assert not call.is_asked, "a person is asked twice"
            call.state, call.is_asked = "approval-requested", True
            call.automatic_id = chunk["approvalId"] if chunk.get("isAutomatic") else None
        else:
            assert call.is_asked or call.approved or _shows_its_input(call)
            call.state = kind.removeprefix("tool-")
            call.preliminary = chunk.get("preliminary", False)
            if kind == "tool-output-denied":
                siblings = self._siblings(call_id)
                self._beside_denials |= {id for id, other in siblings if not other.has_result and not other.preliminary}

    def _read_input(self, kind: str, chunk: Wire, call: SeenCall) -> None:
        assert call.step == self.step, "a client looks for arguments in its last step only, and makes a second part"
        assert call.name == chunk.get("toolName", call.name)
        assert not call.has_input, "the client would act a second time"
        if kind == "tool-input-available":
            assert not call.is_asked or call.approved, "the client would act before the person has agreed"
            call.state, call.has_input = "input-available", True
            return
        assert call.text is not None, "the arguments go on in another segment"
        assert call.state == "input-streaming"
        if kind == "tool-input-start":  # anew
            call.text = ""
        elif kind == "tool-input-delta":
            call.text += chunk["inputTextDelta"]
        else:
            call.state = "output-error"

    def _check_denials(self) -> None:
        """Denials come together with the last results of their step."""
        left = [id for id in self._beside_denials if not self.calls[id].has_result]
        assert not left, "beside a denied call the stock tool helper never fires"
        self._beside_denials.clear()

    def _siblings(self, call_id: str) -> list[tuple[str, SeenCall]]:
        step = self.calls[call_id].step
        return [(id, call) for id, call in self.calls.items() if call.step == step and id != call_id]


def _shows_its_input(call: SeenCall) -> bool:
    if call.has_input:
        return True
    try:
        json.loads(call.text or "")
    except ValueError:
        return False
    return True
