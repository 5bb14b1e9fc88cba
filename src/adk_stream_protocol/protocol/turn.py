"""From request bytes to a `Turn`, or one typed refusal."""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast
from urllib.parse import unquote_to_bytes

import msgspec

from ..errors import MalformedRequest, RequestTooLarge
from ..limits import Limits
from .answers import CONFIRMATION
from .body_meter import too_large_file, too_much_json
from .chunks import SdkVersion
from .digest import MAX_DEPTH
from .messages import ApprovalStyle, Message, MessageHead, OlderMessage, RequestBody, what_is_wrong


@dataclass(frozen=True, slots=True)
class TextInput:
    text: str


@dataclass(frozen=True, slots=True)
class FileInput:
    """A file of the user's: its bytes, or the URL of one that the model service may fetch."""

    media_type: str
    content: bytes | str
    filename: str | None = None


Again = Literal["regenerate", "edit"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One user message for one chat, or a client's answers to calls. Everything else of the conversation is in the
    session. A message that is to be answered again may be there, too: then there are no `parts`."""

    chat_id: str
    message_id: str | None
    parts: tuple[TextInput | FileInput, ...]
    sdk_version: SdkVersion | None
    approval_style: ApprovalStyle | None
    again: Again | None = None
    """Whether the conversation first goes back to the message `target_id`: to answer it again, or to replace it."""
    target_id: str | None = None
    answers: tuple[dict[str, Any], ...] | None = None
    """Instead of a user's message: parts that may answer calls. `message_id` names the message that goes on."""


def decode_turn(body: bytes, limits: Limits, *, sdk_version_header: str | None = None) -> Turn:
    try:
        request = _decode(body, RequestBody)
    except MalformedRequest as refusal:
        raise MalformedRequest(f"{refusal} {_WHAT_TO_SEND}") from None
    return read_turn(request, limits, sdk_version_header=sdk_version_header)


def read_turn(request: RequestBody, limits: Limits, *, sdk_version_header: str | None = None) -> Turn:
    if not is_chat_id(request.id):
        raise MalformedRequest(CHAT_ID_RULE)
    if request.message_id is not None:
        _identifier(request.message_id, "messageId")
    sdk_version = decode_sdk_version(request.sdk_version, sdk_version_header)
    again = _again(request)
    if again == "regenerate" and not request.messages and _is_null(request.message):
        return _regenerate(request, sdk_version)
    raw, head, place = _named_message(request)
    message_id = None if head.id is None else _identifier(head.id, "id of the message")
    if head.role == "assistant":
        answers = _answers(_parts(request, raw, place))
        return Turn(request.id, message_id, (), sdk_version, request.approval_style, answers=answers)
    if head.role != "user":
        raise MalformedRequest(_LAST_MESSAGE)
    parts = _parts(request, raw, place)
    results = [part for part in parts if part.get("type") in _ANSWERS_OF_A_USER]
    if results:
        return Turn(request.id, None, (), sdk_version, request.approval_style, answers=_answers(results))
    return Turn(
        chat_id=request.id,
        message_id=message_id,
        again=again,
        target_id=(request.message_id or message_id) if again else None,
        parts=_user_parts(parts, limits),
        sdk_version=sdk_version,
        approval_style=request.approval_style,
    )


def _regenerate(request: RequestBody, sdk_version: SdkVersion | None) -> Turn:
    """The user's message is in the session, so the id of its answer is enough."""
    if request.message_id is None:
        raise MalformedRequest("Send the `messageId` of the answer to regenerate, or the `messages` up to it.")
    return Turn(
        chat_id=request.id,
        message_id=None,
        again="regenerate",
        target_id=request.message_id,
        parts=(),
        sdk_version=sdk_version,
        approval_style=request.approval_style,
    )


# The depth of a client's answer, which is compared, stored and shown. The deepest arguments that can be shown must fit,
# since they come back in a question's copy of the call.
_MAX_DEPTH = MAX_DEPTH + 4


def _answers(parts: list[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    level: list[Any] = list(parts)
    for _ in range(_MAX_DEPTH):
        level = [below for value in level for below in _inside(value)]
    if level:
        raise MalformedRequest("The answer is nested too deep.")
    return tuple(parts)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast(dict[str, Any], value).values()
    return cast(list[Any], value) if isinstance(value, list) else ()


def _named_message(request: RequestBody) -> tuple[msgspec.Raw, MessageHead, str]:
    """The last message, and its place. An answer may also continue an earlier message of the assistant, and then names
    it."""
    if not _is_null(request.message):
        return request.message, _decode(request.message, MessageHead, "message"), "message"
    if not request.messages:
        raise MalformedRequest("The request has no message: send `messages` or `message`.")
    place = f"messages[{len(request.messages) - 1}]"
    last = request.messages[-1]
    head = _decode(last, MessageHead, place)
    if request.message_id is not None and request.trigger != "regenerate-message" and head.id != request.message_id:
        for number, raw in reversed(list(enumerate(request.messages[:-1]))):
            try:
                earlier = _decode(raw, MessageHead)
            except MalformedRequest:
                continue  # the rest of the history is not used
            if earlier.id == request.message_id and earlier.role == "assistant":
                return raw, earlier, f"messages[{number}]"
    return last, head, place


# The notes' clients answer the confirmation tool in a message of the user's, as they do with results.
_ANSWERS_OF_A_USER = ("tool-result", f"tool-{CONFIRMATION}")


def _parts(request: RequestBody, raw: msgspec.Raw, place: str) -> list[dict[str, Any]]:
    message = _decode(raw, Message, place)
    # Release 4.2 sends `parts` beside the text. A newer page may have stored such a message, but sends a trigger.
    if isinstance(message.content, str) and (message.parts is msgspec.UNSET or request.trigger is None):
        raise MalformedRequest(_AI_SDK_4)
    if message.parts is not msgspec.UNSET:
        return message.parts
    if message.content is msgspec.UNSET:
        raise MalformedRequest(f"{_NO_CHAT_REQUEST}: `{place}.parts` is missing.")
    return _decode(raw, OlderMessage, place).content


_Shape = TypeVar("_Shape")


def _decode(body: bytes | msgspec.Raw, shape: type[_Shape], inside: str = "") -> _Shape:
    # The decoder's own message is not passed on: it may quote the body.
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"{_NO_CHAT_REQUEST}: {what_is_wrong(error, inside)}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise MalformedRequest(f"{_NO_CHAT_REQUEST}: it is not JSON.") from None
    except RecursionError:
        raise MalformedRequest(f"{_NO_CHAT_REQUEST}: it is nested too deep.") from None


_NO_CHAT_REQUEST = MalformedRequest.public_text.rstrip(".")
_WHAT_TO_SEND = "Send JSON with the `id` of the chat and its `messages`, as `useChat` does."
_LAST_MESSAGE = (
    "The last message must have the role `user`, or be the assistant's, with outputs or decisions for its tool calls."
)
_AI_SDK_4 = (
    "A message with its text in `content` is of AI SDK 4. Use AI SDK 5 or newer, or send the text as "
    '`parts: [{"type": "text", "text": "..."}]`.'
)


def _again(request: RequestBody) -> Again | None:
    if request.trigger == "regenerate-message":
        return "regenerate"
    if request.trigger not in (None, "submit-message"):
        raise MalformedRequest("The trigger must be submit-message or regenerate-message.")
    return None if request.message_id is None else "edit"


def _is_null(value: msgspec.Raw) -> bool:
    seen = memoryview(value)  # no copy: the value may be a message with a file in it
    return len(seen) == 4 and seen.tobytes() == b"null"


_IDENTIFIER = re.compile(r"[^\s/\\\x00-\x1f\x7f]{1,128}")
_IDENTIFIER_RULE = "must be 1 to 128 printable characters without spaces and slashes"
CHAT_ID_RULE = f"The id {_IDENTIFIER_RULE}, other than `user` and `approvals`, and must not begin like a drive (`c:`)."
# ADK keeps no files under the first and the last of these, and the inbox has its address under the other.
_NOT_FOR_CHATS = re.compile(r"user|approvals|[A-Za-z]:.*", re.DOTALL)


def is_chat_id(value: str) -> bool:
    return _is_identifier(value) and not _NOT_FOR_CHATS.fullmatch(value)


def _is_identifier(value: str) -> bool:
    """Ids become path segments, session keys and log fields, so they stay short and printable."""
    return bool(_IDENTIFIER.fullmatch(value)) and value.isprintable() and value not in (".", "..")


def _identifier(value: str, what: str) -> str:
    if not _is_identifier(value):
        raise MalformedRequest(f"The {what} {_IDENTIFIER_RULE}.")
    return value


def decode_sdk_version(in_body: int | str | None, in_header: str | None) -> SdkVersion | None:
    """5, 6 or 7, also as the major number of a full version; the body goes before the header."""
    named = in_header if in_body is None else in_body
    if named is None:
        return None
    match str(named).split(".", 1)[0]:
        case "5":
            return 5
        case "6":
            return 6
        case "7":
            return 7
        case _:
            raise MalformedRequest("The AI SDK version must be 5, 6 or 7.")


def _user_parts(parts: list[dict[str, Any]], limits: Limits) -> tuple[TextInput | FileInput, ...]:
    taken: list[TextInput | FileInput] = []
    text_bytes = 0
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise MalformedRequest("A text part needs a `text`.")
            if "\0" in text:
                raise MalformedRequest("A text must not have NUL characters in it.")
            text_bytes += len(text.encode())
            if text.strip():
                taken.append(TextInput(text))
        elif kind == "file":
            taken.append(_file(part, limits))
        elif not (isinstance(kind, str) and kind.startswith("data-")):  # data parts are the page's own
            raise MalformedRequest("A user message may have text, file and data parts only.")
    if not taken:
        raise MalformedRequest("The message is empty: it needs a part of the type `text` or `file`.")
    if text_bytes > limits.max_json_bytes:
        raise RequestTooLarge(too_much_json(limits))
    return tuple(taken)


_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9][\w.+-]{0,63}/[a-zA-Z0-9*][\w.+*-]{0,127}", re.ASCII)

# Names may become those of artifacts, where ADK gives a meaning to the prefix.
_FILE_NAME = re.compile(r"(?!user:)[^/\\\x00-\x1f\x7f]{1,255}")


def _file(part: dict[str, Any], limits: Limits) -> FileInput:
    url, media_type, filename = part.get("url"), part.get("mediaType"), part.get("filename")
    if not isinstance(url, str) or not isinstance(media_type, str) or not isinstance(filename, str | None):
        raise MalformedRequest("A file part needs a `url` and a `mediaType`.")
    media_type = media_type.partition(";")[0].rstrip(" ")  # MediaRecorder adds its codecs
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise MalformedRequest("A file part's `mediaType` must look like image/png.")
    if filename is not None and not _FILE_NAME.fullmatch(filename):
        raise MalformedRequest("A file's name must be 1 to 255 characters without slashes, and not start with user:")
    if url[:5].lower() == "data:":
        return FileInput(media_type, _data_url(url, limits), filename)
    if url.startswith(limits.allowed_file_urls) and ".." not in url:
        return FileInput(media_type, url, filename)
    raise MalformedRequest("Files must be sent as data: URLs.")


def _data_url(url: str, limits: Limits) -> bytes:
    head, comma, payload = url.partition(",")
    if not comma:
        raise MalformedRequest("A data: URL has no contents.")
    if head.lower().endswith(";base64") and len(payload) * 3 // 4 > limits.max_file_bytes + 2:
        raise RequestTooLarge(too_large_file(limits))
    try:
        content = (
            base64.b64decode(payload, validate=True) if head.lower().endswith(";base64") else unquote_to_bytes(payload)
        )
    except (binascii.Error, ValueError):
        raise MalformedRequest("A data: URL is not valid base64.") from None
    if len(content) > limits.max_file_bytes:
        raise RequestTooLarge(too_large_file(limits))
    return content


def decode_body(body: bytes) -> dict[str, Any]:
    """The whole body, for the application's `prepare` hook. Messages are decoded one by one: no other thread runs while
    the decoder does."""
    fields = _decode(body, dict[str, msgspec.Raw])
    return {name: _messages(raw) if name == "messages" else _decode(raw, _ANYTHING) for name, raw in fields.items()}


def _messages(raw: msgspec.Raw) -> list[Any] | None:
    if _is_null(raw):
        return None
    return [_decode(message, _ANYTHING) for message in _decode(raw, list[msgspec.Raw])]


_ANYTHING = cast(type[Any], Any)
