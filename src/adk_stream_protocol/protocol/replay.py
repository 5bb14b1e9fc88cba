"""The replay for a reader without a cursor: the message from its start to where it is now.

A client runs its `onToolCall` at every `tool-input-available`. A call that has its result already is therefore replayed
with its arguments as text and with its result, so that no client runs it again.

Which calls are finished is kept once for all readers of a log, as it grows. The pieces of a replay are made one by one,
when the reader takes them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

VOICE = b'{"type":"data-pcm"'
"""How the chunks of a voice begin. They are not replayed."""

Event = tuple[int | None, bytes]
"""A chunk and its place in the log. Chunks of earlier segments have no place: no cursor leads into them."""

_TOOL = b'{"type":"tool-'
_INPUT_OR_OUTPUT = (b'{"type":"tool-input-available"', b'{"type":"tool-output-')
_WHOLE = "tool-input-available"
_QUESTION = "tool-approval-request"


class _ToolChunk(msgspec.Struct, rename="camel"):
    type: str
    tool_call_id: str = ""
    preliminary: bool = False


class _Input(msgspec.Struct):
    input: Any


_decode_tool_chunk = msgspec.json.Decoder(_ToolChunk).decode
_decode_input = msgspec.json.Decoder(_Input).decode


class Calls:
    """The calls of a message: where their arguments were whole, and where they had their results. Places are counted
    from the start of the message."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._inputs: dict[str, list[tuple[int, bytes]]] = {}
        self._outputs: dict[str, int] = {}
        self._count = 0
        self.add(chunks)

    def add(self, chunks: Sequence[bytes]) -> None:
        for place, encoded in enumerate(chunks, self._count):
            if encoded.startswith(_INPUT_OR_OUTPUT):
                chunk = _decode_tool_chunk(encoded)
                if chunk.type == _WHOLE:
                    self._inputs.setdefault(chunk.tool_call_id, []).append((place, encoded))
                elif not chunk.preliminary:
                    self._outputs.setdefault(chunk.tool_call_id, place)
        self._count += len(chunks)

    def finished_input(self, call_id: str, end: int) -> bytes | None:
        """The chunk with the whole arguments of a call that is finished by `end`; None if there is none."""
        if self._outputs.get(call_id, end) >= end:
            return None
        return next((chunk for place, chunk in reversed(self._inputs.get(call_id, ())) if place < end), None)


def replayed(
    earlier: Sequence[bytes], chunks: Sequence[bytes], calls: Calls, until: int, max_bytes: int
) -> Iterator[list[Event]]:
    """The message up to place `until` of its running segment, as a client that starts anew should read it: its earlier
    segments, then the running one. A piece covers at least `max_bytes` of the log, and may be empty."""
    end = len(earlier) + until
    as_text: set[str] = set()
    piece: list[Event] = []
    size = 0
    for index in range(end):
        if index < len(earlier):
            place, encoded = None, earlier[index]
        elif index == len(earlier) and earlier:
            continue  # the second `start` of one message
        else:
            place = index - len(earlier)
            encoded = chunks[place]
        piece += _replayed_chunk(place, encoded, calls, end, as_text)
        size += len(encoded)
        if size >= max_bytes:
            yield piece
            piece, size = [], 0
    yield piece


def _replayed_chunk(place: int | None, encoded: bytes, calls: Calls, end: int, as_text: set[str]) -> Sequence[Event]:
    """`as_text`: the calls whose arguments were already replayed as text."""
    if encoded.startswith(VOICE):
        return ()
    if not encoded.startswith(_TOOL):
        return ((place, encoded),)
    chunk = _decode_tool_chunk(encoded)
    finished = calls.finished_input(chunk.tool_call_id, end)
    if finished is None:
        return ((place, encoded),)
    if chunk.type == "tool-input-delta":  # a preview of the whole arguments, which are replayed below
        return ()
    is_question = chunk.type == _QUESTION
    if chunk.type != _WHOLE and not is_question:
        return ((place, encoded),)
    events: list[Event] = []
    if chunk.tool_call_id not in as_text:
        as_text.add(chunk.tool_call_id)
        whole = msgspec.json.encode(_decode_input(finished).input).decode()
        delta = {"type": "tool-input-delta", "toolCallId": chunk.tool_call_id, "inputTextDelta": whole}
        events.append((None if is_question else place, msgspec.json.encode(delta)))
    if is_question:
        events.append((place, encoded))
    return events


def ended_calls(chunks: Sequence[bytes]) -> set[str]:
    """The ids of the calls whose outcome is among these chunks."""
    outputs = [_decode_tool_chunk(chunk) for chunk in chunks if chunk.startswith(_INPUT_OR_OUTPUT)]
    return {output.tool_call_id for output in outputs if output.type != _WHOLE and not output.preliminary}
