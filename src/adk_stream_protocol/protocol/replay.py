"""What a reader gets who comes without a cursor: the message from its start, told as what it is by now.

A client runs its `onToolCall` at every `tool-input-available`. A call that has its result already is therefore told by
its arguments as text and the result, so that nobody runs it again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

_TOOL = b'{"type":"tool-'
_OUTPUT = b'{"type":"tool-output-'


def replayed(chunks: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """The chunks so far, each with its place in the log, as a client that starts anew should read them."""
    outputs = (_decoded(chunk) for chunk in chunks if chunk.startswith(_OUTPUT))
    finished = {output["toolCallId"] for output in outputs if not output.get("preliminary")}
    for place, encoded in enumerate(chunks):
        chunk = _decoded(encoded) if encoded.startswith(_TOOL) else {}
        if chunk.get("toolCallId") not in finished:
            yield place, encoded
        elif chunk["type"] == "tool-input-available":
            whole = msgspec.json.encode(chunk["input"]).decode()
            delta = {"type": "tool-input-delta", "toolCallId": chunk["toolCallId"], "inputTextDelta": whole}
            yield place, msgspec.json.encode(delta)
        elif chunk["type"] != "tool-input-delta":  # a preview of what the lines above tell whole
            yield place, encoded


def _decoded(chunk: bytes) -> dict[str, Any]:
    return cast(dict[str, Any], msgspec.json.decode(chunk))
