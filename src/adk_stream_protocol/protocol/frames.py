"""The frames of a live session's WebSocket, both ways.

Those of the AI SDK's own `WebSocketChatTransport` to the letter: a request is `send` or `resume`, its stream comes back
as numbered `chunk`s and an `end`. Everything of ours travels under the request id "-", which stock clients ignore.
docs/reference/websocket.md lists them all.
"""

import base64
import binascii
from typing import Any, Protocol

import msgspec

from ..errors import BridgeError, MalformedRequest
from .chunks import encode_json
from .messages import RequestBody, what_is_wrong

OURS = "-"
SUBPROTOCOL = "adk-stream.v1"
"""For clients that take and send voice as binary frames."""

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
        said = {**(self.body or {}), "id": self.id, "trigger": self.trigger, "messageId": self.message_id}
        try:
            request = msgspec.json.decode(msgspec.json.encode(said), type=RequestBody)
        except msgspec.ValidationError as error:
            raise MalformedRequest(f"{_NO_FRAME}: {what_is_wrong(error, 'body')}.") from None
        if request.messages is None:  # an application's own transport may send the one that counts in the body
            request.messages = self.messages
        return request


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
OwnFrame = Ping | Attach | Audio | ActivityStart | ActivityEnd | Interrupt | Stop

_decoder = msgspec.json.Decoder(OfficialFrame | OwnFrame)


class FrameHead(msgspec.Struct, rename="camel"):
    """The field that says which request a refusal belongs to."""

    request_id: str = OURS


def decode_frame(text: str | bytes) -> OfficialFrame | OwnFrame:
    try:
        frame = _decoder.decode(text)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"{_NO_FRAME}: {what_is_wrong(error)}.") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise MalformedRequest(f"{_NO_FRAME}: it is not JSON.") from None
    if not 0 < len(frame.request_id) <= 128:
        raise MalformedRequest("A requestId has 1 to 128 characters.")
    if (frame.request_id == OURS) != isinstance(frame, OwnFrame):
        raise MalformedRequest('Frames beside send, resume and abort have the requestId "-", and only those.')
    return frame


def decode_request_id(text: str | bytes) -> str:
    """The request that a frame belongs to, if the frame could not be decoded."""
    try:
        request_id = msgspec.json.decode(text, type=FrameHead).request_id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return OURS
    return request_id if 0 < len(request_id) <= 128 else OURS


def sdk_version_of(frame: Request) -> str | None:
    version = {name.lower(): value for name, value in (frame.headers or {}).items()}.get("x-ai-sdk-version")
    return version if isinstance(version, str) else None


class FrameEncoder(Protocol):
    """The frames for one socket's client."""

    def chunk(self, request_id: str, sequence: int, chunk: bytes) -> str: ...

    def end(self, request_id: str) -> str: ...

    def resumed(self, request_id: str) -> str: ...

    def nothing_active(self, request_id: str) -> str: ...

    def error(self, request_id: str, error: BridgeError) -> str: ...

    def own(self, kind: str, fields: dict[str, Any]) -> str: ...


class OfficialEncoder:
    """The AI SDK's frames."""

    def chunk(self, request_id: str, sequence: int, chunk: bytes) -> str:
        # The chunk is JSON already, and there may be thousands of them.
        return f'{{"type":"chunk","requestId":{_json(request_id)},"sequence":{sequence},"chunk":{chunk.decode()}}}'

    def end(self, request_id: str) -> str:
        return _json({"type": "end", "requestId": request_id})

    def resumed(self, request_id: str) -> str:
        return _json({"type": "start", "requestId": request_id})

    def nothing_active(self, request_id: str) -> str:
        return _json({"type": "no-active", "requestId": request_id})

    def error(self, request_id: str, error: BridgeError) -> str:
        text = "message" if request_id == OURS else "errorText"
        return _json({"type": "error", "requestId": request_id, "code": error.code, text: str(error)})

    def own(self, kind: str, fields: dict[str, Any]) -> str:
        return _json({"type": kind, "requestId": OURS, **fields})


def _json(value: Any) -> str:
    return encode_json(value).decode()


def encode_audio(samples: bytes) -> str:
    return base64.b64encode(samples).decode()
