"""Messages of tool parts, without an agent."""

from typing import Any

import msgspec

from adk_stream_protocol.adk.translate.call_parts import CallPart, CallParts
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord
from adk_stream_protocol.protocol.chunks import AnyChunk
from adk_stream_protocol.protocol.stream import ChunkWriter

PAY = {"amount": 5}
LARGE = {"amount": 2**53 + 1}
QUESTION = {"toolConfirmation": {"hint": "ADK asks.", "payload": {"to": ""}}}


def told(chunks: list[AnyChunk] | None) -> list[Any]:
    """The chunks, in short."""
    plain = [msgspec.to_builtins(chunk) for chunk in chunks or []]
    return [tuple(value for name, value in chunk.items() if name not in ("toolName", "type")) for chunk in plain]


def types(chunks: list[AnyChunk] | None) -> list[str]:
    return [msgspec.to_builtins(chunk)["type"] for chunk in chunks or []]


class Message:
    def __init__(self, *records: CallRecord, style: Any = "approval-request", sdk_version: Any = 6) -> None:
        self.writer = ChunkWriter(sdk_version=sdk_version)
        self.tools = CallParts(self.writer, style)
        self.writer.start("m1")
        self.records = {found.call: found for found in records}

    def call(self, id: str = "1", arguments: Any = PAY, invocation_id: str = "i1", **how: bool) -> list[AnyChunk]:
        self.writer.tool_input_start(id, "pay")
        part = CallPart(id, CallKey(invocation_id, id.partition("/")[0]), **how)
        return self.tools.add(part, arguments, {"adk": {"a": 1}})

    def ask(self, id: str = "1", question: dict[str, Any] = QUESTION) -> list[AnyChunk]:
        return self.tools.ask(id, f"q{id}", question, self.records)

    def settle(self) -> list[AnyChunk]:
        return self.tools.settle(self.records)

    def result(self, id: str = "1", closing: tuple[str, ...] = ()) -> list[AnyChunk] | None:
        return self.tools.result(id, self.records, closing)

    def go_on(self, *answered: str, known: tuple[str, ...] = ()) -> list[AnyChunk]:
        self.writer.pause()
        keys, known_keys = {CallKey("i1", id) for id in answered}, {CallKey("i1", id) for id in known}
        return self.tools.new_segment("m1", self.records, keys, known_keys)

    def end(self) -> list[AnyChunk]:
        return self.tools.end_recorded(self.records)
