"""The frames that clients of the design notes send: older than the AI SDK's own WebSocket transport.

They become the frames of `frames.py`. What the server sends back is what HTTP would send, one event in each frame.
docs/reference/websocket.md describes them.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import BridgeError, MalformedRequest, RequestTooLarge
from ..limits import Limits
from . import sse
from .chunks import encode_json
from .frames import MAX_OWN_FRAME, OURS, Refused, Send, require_size
from .messages import what_is_wrong

DONE = sse.DONE.decode()

_MESSAGE = "message"
_RESULTS = ("tool_result", "tool-result")
_PING = "ping"
_KINDS = (_MESSAGE, *_RESULTS, _PING)

_NO_FRAME = "This is not one of the older frames of docs/reference/websocket.md"
_OTHER_FRAME = (
    "This socket has begun with the older frames: send `message`, `tool_result` or `ping`. For voice, Stop and resume, "
    "open another socket, and send the frames of the AI SDK."
)

# Of a `message`, beside its messages: fields of the frame itself, and those that name a place in a conversation. The
# chat is the socket's own, and the last message is the one that counts.
_NOT_FOR_APPLICATIONS = {"type", "version", "timestamp", "data", "id", "messages", "trigger", "messageId"}


class _Head(msgspec.Struct, rename="camel"):
    type: str
    version: str = "1.0"
    data: dict[str, msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    """The fields of a frame that is not flat."""
    request_id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class OlderPing:
    timestamp: int | float | None = None


@dataclass(frozen=True)
class Target:
    """What the older frames do not name themselves."""

    chat_id: str
    request_id: str


def is_older(text: str) -> bool:
    """Whether a socket that begins with this frame speaks the older ones. The AI SDK's and our own have a
    `requestId`."""
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return head.type in _KINDS and head.request_id is msgspec.UNSET


def decode_older(text: str, target: Target, limits: Limits) -> Send | OlderPing | Refused:
    try:
        if len(text) > MAX_OWN_FRAME:
            require_size(text.encode(errors="replace"), limits)
        return _decode(text, target)
    except BridgeError as error:
        return Refused(OURS, error)


def _decode(text: str, target: Target) -> Send | OlderPing:
    head = _read(text, _Head)
    if head.type not in _KINDS:
        raise MalformedRequest(_OTHER_FRAME)
    if head.version != "1.0":
        raise MalformedRequest(f"{_NO_FRAME}: `version` must be 1.0.")
    fields = _read(text, dict[str, msgspec.Raw]) if head.data is msgspec.UNSET else head.data
    if head.type == _PING:
        if len(text) > MAX_OWN_FRAME:
            raise RequestTooLarge
        return OlderPing(_field(fields, "timestamp", int | float | None, None))
    others = {name: _read(raw, Any, name) for name, raw in fields.items() if name not in _NOT_FOR_APPLICATIONS}
    if head.type in _RESULTS:
        messages = [_result_message(fields)]
        others = {name: value for name, value in others.items() if name not in _OF_A_RESULT}
    else:
        messages = _field(fields, "messages", list[msgspec.Raw])
    return Send(
        target.request_id,
        target.chat_id,
        messages,
        trigger=_field(fields, "trigger", str, "submit-message"),
        body={"approvalStyle": "confirmation-tool", **others},
    )


_OF_A_RESULT = ("toolCallId", "toolName", "result", "output", "status")


def _result_message(fields: dict[str, msgspec.Raw]) -> msgspec.Raw:
    """The same as a user's message with the result, which HTTP takes, too."""
    value = _field(fields, "output" if "output" in fields else "result", Any)
    part = {"type": "tool-result", "toolCallId": _field(fields, "toolCallId", str), "output": value}
    return msgspec.Raw(encode_json({"role": "user", "parts": [part]}))


_REQUIRED: Any = object()


def _field(fields: dict[str, msgspec.Raw], name: str, shape: Any, default: Any = _REQUIRED) -> Any:
    if name in fields:
        return _read(fields[name], shape, name)
    if default is _REQUIRED:
        raise MalformedRequest(f"{_NO_FRAME}: `{name}` is missing.")
    return default


def _read(raw: str | msgspec.Raw, shape: Any, inside: str = "") -> Any:
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"{_NO_FRAME}: {what_is_wrong(error, inside)}.") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise MalformedRequest(f"{_NO_FRAME}: it is not JSON.") from None


# -- to the client ----------------------------------------------------------------------------------------------------


def encode_older(chunk: bytes) -> str:
    return sse.encode_event(b"", None, chunk).decode()


def encode_older_error(error: BridgeError) -> str:
    return encode_older(encode_json({"type": "error", "errorText": str(error), "code": error.code}))


def encode_older_pong(ping: OlderPing) -> str:
    """Not an event: clients would take it for a chunk of their stream."""
    return encode_json({"type": "pong", "timestamp": ping.timestamp}).decode()
