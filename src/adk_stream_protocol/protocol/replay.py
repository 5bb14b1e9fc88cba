"""What a reader gets who comes without a cursor: the message from its start, told as what it is by now.

A client runs its `onToolCall` at every `tool-input-available`. A call that has its result already is therefore told by
its arguments as text and the result, so that nobody runs it again.
"""

from typing import Any, cast

import msgspec

_OUTPUTS = ("tool-output-available", "tool-output-error", "tool-output-denied")


def replayed(chunks: list[bytes]) -> list[tuple[int, bytes]]:
    """The chunks so far, each with its place in the log, as a client that starts anew should read them."""
    told = [cast(dict[str, Any], msgspec.json.decode(chunk)) if b'"tool-' in chunk[:14] else None for chunk in chunks]
    finished = {
        chunk["toolCallId"] for chunk in told if chunk and chunk["type"] in _OUTPUTS and not chunk.get("preliminary")
    }
    out: list[tuple[int, bytes]] = []
    for place, (encoded, chunk) in enumerate(zip(chunks, told, strict=True)):
        if chunk is None or chunk["toolCallId"] not in finished:
            out.append((place, encoded))
        elif chunk["type"] == "tool-input-available":
            whole = msgspec.json.encode(chunk["input"]).decode()
            delta = {"type": "tool-input-delta", "toolCallId": chunk["toolCallId"], "inputTextDelta": whole}
            out.append((place, msgspec.json.encode(delta)))
        elif chunk["type"] != "tool-input-delta":  # a preview of what the line above tells whole
            out.append((place, encoded))
    return out
