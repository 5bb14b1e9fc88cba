"""Judges a whole segment by the rules of the AI SDK's clients, knowing nothing of the code that wrote it."""

import json
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
    "data-adk-note": {"id", "data"},
    "tool-input-start": {"toolCallId", "toolName", "providerExecuted", "dynamic"},
    "tool-input-delta": {"toolCallId", "inputTextDelta"},
    "tool-input-available": {"toolCallId", "toolName", "input", "providerExecuted", "providerMetadata", "dynamic"},
    "tool-input-error": {"toolCallId", "toolName", "input", "errorText", "providerExecuted", "dynamic"},
    "tool-output-available": {"toolCallId", "output", "providerExecuted", "dynamic", "preliminary"},
    "tool-output-error": {"toolCallId", "errorText", "providerExecuted", "dynamic"},
}
APPROVAL_FIELDS = {"tool-approval-request": {"approvalId", "toolCallId"}, "tool-output-denied": {"toolCallId"}}
NEWEST_FIELDS = {"text-end": {"id", "providerMetadata", "citations"}, "reasoning-file": {"url", "mediaType"}}
FIELDS: dict[SdkVersion, dict[str, set[str]]] = {
    5: PORTABLE_FIELDS,
    6: PORTABLE_FIELDS | APPROVAL_FIELDS,
    7: PORTABLE_FIELDS | APPROVAL_FIELDS | NEWEST_FIELDS,
}
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
    assert written[0]["type"] == "start"
    assert written[-1]["type"] in TERMINALS
    assert all(kind not in {"start", *TERMINALS} for kind in kinds(written[1:-1]))
    step: int | None = None
    steps = 0
    open_texts: dict[str, str] = {}
    inputs: dict[str, int] = {}  # call whose arguments are not whole -> its step
    waiting: set[str] = set()  # calls with arguments and no final result
    known: set[str] = set(earlier_calls)
    for chunk in written:
        kind = chunk["type"]
        check_fields(chunk, FIELDS[version][kind])
        call_id = chunk.get("toolCallId")
        if kind == "start-step":
            assert step is None
            steps += 1
            step = steps
        elif kind == "finish-step":
            assert step is not None
            assert not open_texts, "a text may not span two steps"
            step = None
        elif kind in TERMINALS:
            assert step is None
            assert not inputs, "arguments are left half written"
        elif kind.startswith(("text-", "reasoning-")) and kind != "reasoning-file":
            assert step is not None
            family, _, event = kind.partition("-")
            if event == "start":
                assert chunk["id"] not in open_texts
                open_texts[chunk["id"]] = family
            assert open_texts[chunk["id"]] == family
            if event == "end":
                del open_texts[chunk["id"]]
        elif kind in {"source-url", "source-document", "file", "reasoning-file"}:
            assert step is not None
        elif kind == "tool-input-start":
            assert step is not None
            assert call_id not in known, "a tool call id is used twice"
            known.add(call_id)
            inputs[call_id] = step
        elif kind.startswith("tool-input-"):
            assert inputs[call_id] == step, "arguments are continued in another step"
            if kind != "tool-input-delta":
                del inputs[call_id]
            if kind == "tool-input-available":
                waiting.add(call_id)
        elif kind == "tool-approval-request":
            assert call_id in waiting
        elif call_id is not None:
            assert call_id in waiting or call_id in earlier_calls
            if not chunk.get("preliminary"):
                waiting.discard(call_id)
                earlier_calls -= {call_id}
    return waiting


def check_fields(chunk: Wire, allowed: set[str]) -> None:
    assert chunk.keys() - {"type"} <= allowed
    assert all(value is not None or name in MAY_BE_NULL for name, value in chunk.items())
    assert all(isinstance(values, dict) for values in chunk.get("providerMetadata", {}).values())
    if "finishReason" in chunk:
        assert chunk["finishReason"] in {"stop", "length", "content-filter", "tool-calls", "error", "other"}
