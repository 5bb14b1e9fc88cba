"""Fold chunks into the `UIMessage` that a client makes of them. The history route sends what the client had."""

from typing import Any, cast

import msgspec

from . import chunks as c
from .chunks import AnyChunk

Part = dict[str, Any]
UIMessage = dict[str, Any]


class MessageFold:
    """One assistant message, chunk by chunk, as the AI SDK 6 and 7 fold it. Tool arguments that stream count only
    when they are whole."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._id = ""
        self._metadata: dict[str, Any] | None = None
        self._unseen_steps = 0
        self._texts: dict[str, Part] = {}
        self._calls: dict[str, Part] = {}
        self._data_parts: dict[tuple[str, str], Part] = {}
        self._argument_texts: dict[str, str] = {}

    def message(self) -> UIMessage:
        metadata = {} if self._metadata is None else {"metadata": self._metadata}
        return {"id": self._id, "role": "assistant", **metadata, "parts": self.parts}

    def feed(self, chunk: AnyChunk) -> None:
        if isinstance(chunk, c.StartStep):
            self._unseen_steps += 1  # the client shows a step with whatever comes next in it, if anything does
            return
        if isinstance(chunk, c.FinishStep | c.Abort | c.Error):
            return
        if isinstance(chunk, c.Finish) and chunk.message_metadata is None:
            return
        self.parts += [{"type": "step-start"} for _ in range(self._unseen_steps)]
        self._unseen_steps = 0
        match chunk:
            case c.Start(message_id, metadata):
                self._id = message_id or self._id
                self._merge_metadata(metadata)
            case c.Finish(_, metadata) | c.MessageMetadata(metadata):
                self._merge_metadata(metadata)
            case c.TextStart() | c.ReasoningStart():
                kind = "text" if isinstance(chunk, c.TextStart) else "reasoning"
                part: Part = {"type": kind, "text": "", "state": "streaming"}
                self._texts[chunk.id] = self._add(part, providerMetadata=chunk.provider_metadata)
            case c.TextDelta(id, delta) | c.ReasoningDelta(id, delta):
                self._texts[id]["text"] += delta
            case c.TextEnd() | c.ReasoningEnd():
                part = self._texts.pop(chunk.id)
                part["state"] = "done"
                _set(part, providerMetadata=chunk.provider_metadata)
                if isinstance(chunk, c.TextEnd):
                    _set(part, citations=chunk.citations)
            case c.SourceUrl() | c.SourceDocument() | c.File() | c.ReasoningFile():
                self.parts.append(_fields(chunk))
            case c.Data(transient=True):
                pass
            case c.Data(type, data, id):
                self._data(type, data, id)
            case _:
                self._tool(chunk)

    def _tool(self, chunk: AnyChunk) -> None:
        match chunk:
            case c.ToolInputStart(call_id, name):
                typed = {"type": "dynamic-tool", "toolName": name} if chunk.dynamic else {"type": f"tool-{name}"}
                part: Part = {**typed, "toolCallId": call_id, "state": "input-streaming"}
                self._argument_texts[call_id] = ""
                if call_id in self._calls:  # started again
                    self._calls[call_id] |= part
                else:
                    self._calls[call_id] = self._add(part, providerExecuted=chunk.provider_executed)
            case c.ToolInputDelta(call_id, text):
                self._argument_texts[call_id] += text
            case c.ToolInputAvailable(call_id):
                part = self._calls[call_id]
                part |= {"state": "input-available", "input": chunk.input}
                _set(part, callProviderMetadata=chunk.provider_metadata)
            case c.ToolInputError(call_id):
                self._calls[call_id] |= {"state": "output-error", "errorText": chunk.error_text}
            case c.ToolApprovalRequest(approval_id, call_id):
                approval: Part = {"id": approval_id}
                _set(approval, requestReason=chunk.reason, descriptor=chunk.approval_descriptor)
                _set(approval, isAutomatic=chunk.is_automatic)
                self._with_input(call_id).update({"state": "approval-requested", "approval": approval})
            case c.ToolApprovalResponse(approval_id, approved):
                asked = next(part for part in self.parts if part.get("approval", {}).get("id") == approval_id)
                asked["approval"]["approved"] = approved
                asked["state"] = "approval-responded"
            case c.ToolOutputAvailable(call_id, output):
                part = self._calls[call_id]
                part |= {"state": "output-available", "output": output}
                part.pop("preliminary", None)
                _set(part, preliminary=chunk.preliminary)
            case c.ToolOutputError(call_id, error_text):
                part = self._with_input(call_id)
                part |= {"state": "output-error", "errorText": error_text}
                part.pop("output", None)
                part.pop("preliminary", None)
            case c.ToolOutputDenied(call_id):
                self._with_input(call_id)["state"] = "output-denied"
            case _:
                raise TypeError(type(chunk).__name__)

    def _with_input(self, call_id: str) -> Part:
        """The part of a call. If the client has its arguments only as text, they are decoded."""
        part, text = self._calls[call_id], self._argument_texts[call_id]
        if text and "input" not in part:
            part["input"] = msgspec.json.decode(text)
        return part

    def _add(self, part: Part, **optional: Any) -> Part:
        _set(part, **optional)
        self.parts.append(part)
        return part

    def _data(self, kind: str, data: Any, id: str | None) -> None:
        if id is None:
            self.parts.append({"type": kind, "data": data})
        elif (kind, id) in self._data_parts:
            self._data_parts[kind, id]["data"] = data
        else:
            self._data_parts[kind, id] = self._add({"type": kind, "id": id, "data": data})

    def _merge_metadata(self, metadata: dict[str, Any] | None) -> None:
        if metadata is not None:
            self._metadata = _merged(self._metadata or {}, metadata)


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Objects are merged, everything else is replaced."""
    result = dict(old)
    for key, value in new.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            value = _merged(cast(dict[str, Any], before), cast(dict[str, Any], value))
        result[key] = value
    return result


def _set(part: Part, **optional: Any) -> None:
    part.update({name: value for name, value in optional.items() if value is not None})


def _fields(chunk: c.SourceUrl | c.SourceDocument | c.File | c.ReasoningFile) -> Part:
    """Chunks that are parts as they stand."""
    return cast(Part, msgspec.to_builtins(chunk))
