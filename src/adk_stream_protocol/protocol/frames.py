"""The frames of a live session's WebSocket, both ways.

They are exactly those of the AI SDK's own `WebSocketChatTransport`: a request is `send` or `resume`, and its stream
comes back as numbered `chunk`s and an `end`. Our own frames have the request id "-", which stock clients ignore.
docs/reference/websocket.md lists them all.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast, get_args

import msgspec

from ..errors import BridgeError, MalformedRequest, RequestTooLarge
from ..limits import Limits, size
from .body_meter import BodyMeter
from .chunks import encode_json
from .messages import ApprovalStyle, ClientStyle, RequestBody, what_is_wrong
from .turn import decode_sdk_version

OURS = "-"
SUBPROTOCOL = "adk-stream.v1"
"""For clients that send and receive voice as binary frames."""

MAX_OWN_FRAME = 4096
"""Bytes: an id and a few words, for all frames but `send` and `audio`."""

_NO_FRAME = "This is not a frame of docs/reference/websocket.md"
_Fields = dict[str, Any] | None


class _Frame(msgspec.Struct, frozen=True, tag_field="type", rename="camel"):
    """What a client may send. Unknown fields are ignored."""

    request_id: str


class Send(_Frame, frozen=True, tag="send"):
    id: str
    messages: list[msgspec.Raw]
    trigger: str = "submit-message"
    message_id: str | None = None
    headers: _Fields = None
    body: _Fields = None

    def request(self) -> RequestBody:
        """The same as the body of an HTTP request."""
        body = {**(self.body or {}), "id": self.id, "trigger": self.trigger, "messageId": self.message_id}
        # An application's own transport may send only the last message, in `body`.
        if "message" in body:
            body["message"] = _raw(body["message"])
        if isinstance(messages := body.get("messages"), list):
            body["messages"] = [_raw(message) for message in cast(list[Any], messages)]
        elif messages is None:
            body["messages"] = self.messages
        try:
            return msgspec.convert(body, RequestBody)
        except msgspec.ValidationError as error:
            raise MalformedRequest(f"{_NO_FRAME}: {what_is_wrong(error, 'body')}.") from None

    def digest(self) -> bytes:
        """Differs from that of other messages."""
        digest = hashlib.sha256()
        for message in self.messages:
            digest.update(message)
        return digest.digest()

    def is_larger_than(self, size_bytes: int) -> bool:
        """Whether its messages are larger. Those in its body may have any size, so they count as large."""
        if self.body is not None and not self.body.keys().isdisjoint(("message", "messages")):
            return True
        return sum(len(memoryview(message)) for message in self.messages) > size_bytes


class Resume(_Frame, frozen=True, tag="resume"):
    id: str
    last_sequence: int | None = None
    headers: _Fields = None
    body: _Fields = None


class Abort(_Frame, frozen=True, tag="abort"):
    pass


class Ping(_Frame, frozen=True, tag="ping"):
    pass


class Attach(_Frame, frozen=True, tag="attach"):
    id: str


class Detach(_Frame, frozen=True, tag="detach"):
    id: str


class VoiceStart(_Frame, frozen=True, tag="voice-start"):
    client: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    """The same on every socket of one client, which so keeps its voice when it reconnects."""
    name: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    """What the user's other pages call it."""
    sdk_version: int | str | None = None
    approval_style: ApprovalStyle | None = None

    def style(self) -> ClientStyle:
        return ClientStyle(decode_sdk_version(self.sdk_version, None), self.approval_style)


class VoiceEnd(_Frame, frozen=True, tag="voice-end"):
    pass


class Audio(_Frame, frozen=True, tag="audio"):
    data: str

    def samples(self) -> bytes:
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise MalformedRequest("The audio is not valid base64.") from None


class ActivityStart(_Frame, frozen=True, tag="activity-start"):
    pass


class ActivityEnd(_Frame, frozen=True, tag="activity-end"):
    pass


class Interrupt(_Frame, frozen=True, tag="interrupt"):
    pass


class Stop(_Frame, frozen=True, tag="stop"):
    pass


Request = Send | Resume
OfficialFrame = Send | Resume | Abort
OwnFrame = Ping | Attach | Detach | VoiceStart | VoiceEnd | Audio | ActivityStart | ActivityEnd | Interrupt | Stop

_decoder = msgspec.json.Decoder(OfficialFrame | OwnFrame)
_TYPES = ", ".join(f"`{kind.__struct_config__.tag}`" for kind in get_args(OfficialFrame | OwnFrame))


class FrameHead(msgspec.Struct, rename="camel"):
    """The part of a frame that its refusal needs."""

    request_id: str = OURS


def decode_frame(text: str | bytes) -> OfficialFrame | OwnFrame:
    try:
        frame = _decoder.decode(text)
    except msgspec.ValidationError as error:
        wrong = what_is_wrong(error)
        types = f" It is one of {_TYPES}." if wrong.startswith("`type`") else ""
        raise MalformedRequest(f"{_NO_FRAME}: {wrong}.{types}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise MalformedRequest(f"{_NO_FRAME}: it is not JSON.") from None
    if not 0 < len(frame.request_id) <= 128:
        raise MalformedRequest("A requestId has 1 to 128 characters.")
    if (frame.request_id == OURS) != isinstance(frame, OwnFrame):
        raise MalformedRequest(
            'The requestId of `send`, `resume` and `abort` must not be "-". That of all other frames must be "-".'
        )
    return frame


def decode_request_id(text: str | bytes) -> str:
    """The request that an error belongs to if the frame cannot be decoded."""
    try:
        request_id = msgspec.json.decode(text, type=FrameHead).request_id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return OURS
    return request_id if 0 < len(request_id) <= 128 else OURS


@dataclass(frozen=True)
class Refused:
    """The refusal of a frame, and the request that gets it."""

    request_id: str
    error: BridgeError


def decode_received(text: str, limits: Limits) -> OfficialFrame | OwnFrame | Refused:
    """Decodes a frame once. Only one that is refused is looked at again."""
    try:
        if len(text) > MAX_OWN_FRAME:
            require_size(text.encode(errors="replace"), limits)
        frame = decode_frame(text)
        if len(text) > MAX_OWN_FRAME and not isinstance(frame, Send | Audio):
            raise RequestTooLarge
        return frame
    except BridgeError as error:
        return Refused(decode_request_id(text), error)


def require_size(frame: bytes, limits: Limits) -> None:
    max_file_bytes = min(limits.max_file_bytes, limits.max_socket_file_bytes)
    max_frame_bytes = min(limits.max_body_bytes, limits.max_frame_bytes)
    try:
        BodyMeter(replace(limits, max_file_bytes=max_file_bytes, max_body_bytes=max_frame_bytes)).feed(frame)
    except RequestTooLarge:
        BodyMeter(limits).feed(frame)  # refuses what HTTP would not take either
        raise RequestTooLarge(
            f"This is too large for a WebSocket: a file may have {size(max_file_bytes)} there, and the whole frame "
            f"{size(max_frame_bytes)}. Stop the live session, then send it over HTTP."
        ) from None


def sdk_version_of(frame: Request) -> str | None:
    version = {name.lower(): value for name, value in (frame.headers or {}).items()}.get("x-ai-sdk-version")
    return version if isinstance(version, str) else None


# -- to the client ----------------------------------------------------------------------------------------------------


def encode_chunk(request_id: str, sequence: int, chunk: bytes) -> str:
    # The chunk is JSON already, and there may be thousands of them.
    return f'{{"type":"chunk","requestId":{_json(request_id)},"sequence":{sequence},"chunk":{chunk.decode()}}}'


def encode_end(request_id: str) -> str:
    return _json({"type": "end", "requestId": request_id})


def encode_start(request_id: str) -> str:
    """A `resume` was accepted."""
    return _json({"type": "start", "requestId": request_id})


def encode_no_active(request_id: str) -> str:
    return _json({"type": "no-active", "requestId": request_id})


def encode_error(request_id: str, error: BridgeError) -> str:
    text = "message" if request_id == OURS else "errorText"
    return _json({"type": "error", "requestId": request_id, "code": error.code, text: str(error)})


def encode_own(kind: str, fields: dict[str, Any]) -> str:
    """A frame that the AI SDK does not have."""
    return _json({"type": kind, "requestId": OURS, **fields})


def encode_audio(samples: bytes) -> str:
    return base64.b64encode(samples).decode()


def _json(value: Any) -> str:
    return encode_json(value).decode()


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode_json(value))
