"""What a reader gets who comes without a cursor: the message from its start, told as what it is by now.

A client runs its `onToolCall` at every `tool-input-available`. A call that has its result already is therefore told by
its arguments as text and the result, so that nobody runs it again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

VOICE = b'{"type":"data-pcm"'
"""Nobody wants to hear it twice."""

_TOOL = b'{"type":"tool-'
_OUTPUT = b'{"type":"tool-output-'
_WHOLE = "tool-input-available"
_QUESTION = "tool-approval-request"
_INPUT = b'{"type":"tool-input-available"'


def replayed(earlier: Sequence[bytes], chunks: Sequence[bytes]) -> Iterator[tuple[int | None, bytes]]:
    """The message so far, as a client that starts anew should read it: its earlier segments, then the chunks of the
    running one, each with its place in the log. A cursor into the earlier ones would lead nowhere."""
    told = [_decoded(chunk) for chunk in (*earlier, *chunks) if chunk.startswith((_OUTPUT, _INPUT))]
    finished = {chunk["toolCallId"] for chunk in told if chunk["type"] != _WHOLE and not chunk.get("preliminary")}
    finished &= {chunk["toolCallId"] for chunk in told if chunk["type"] == _WHOLE}  # others have their text alone
    places = [*((None, chunk) for chunk in earlier), *enumerate(chunks)]
    if earlier and chunks:
        del places[len(earlier)]  # the second `start` of one message
    inputs = {chunk["toolCallId"]: chunk["input"] for chunk in told if chunk["type"] == _WHOLE}
    for place, encoded in places:
        if encoded.startswith(VOICE):
            continue
        chunk = _decoded(encoded) if encoded.startswith(_TOOL) else {}
        call_id = chunk.get("toolCallId")
        if call_id not in finished:
            yield place, encoded
        elif chunk["type"] in (_WHOLE, _QUESTION):
            if call_id in inputs:  # not told yet
                whole = msgspec.json.encode(inputs.pop(call_id)).decode()
                delta = {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": whole}
                yield place if chunk["type"] == _WHOLE else None, msgspec.json.encode(delta)
            if chunk["type"] == _QUESTION:
                yield place, encoded
        elif chunk["type"] != "tool-input-delta":  # a preview of what the lines above tell whole
            yield place, encoded


def _decoded(chunk: bytes) -> dict[str, Any]:
    return cast(dict[str, Any], msgspec.json.decode(chunk))


def ended_calls(chunks: Sequence[bytes]) -> set[str]:
    """The ids of the calls whose outcome is among these chunks."""
    outputs = [_decoded(chunk) for chunk in chunks if chunk.startswith(_OUTPUT)]
    return {output["toolCallId"] for output in outputs if not output.get("preliminary")}
