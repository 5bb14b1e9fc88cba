"""What a client may send: untrusted shapes, as loose as the AI SDK 5, 6 and 7 differ, and no looser.

Only the message that counts is decoded. The rest of the posted history stays raw JSON: the history of a chat is in its
session, and what a client says about it is ignored.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from .chunks import SdkVersion

ApprovalStyle = Literal["approval-request", "confirmation-tool"]


@dataclass(frozen=True)
class ClientStyle:
    """How a client is to be shown what it did not ask for in writing. What is None is for the server to choose."""

    sdk_version: SdkVersion | None = None
    approval_style: ApprovalStyle | None = None


class RequestBody(msgspec.Struct, rename="camel"):
    """The body of `DefaultChatTransport`; other fields are the application's own."""

    id: str
    messages: list[msgspec.Raw] | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")
    trigger: str | None = None
    """The AI SDK sends it since release 5. Without it, a message is submitted."""
    message_id: str | None = None
    sdk_version: int | str | None = None
    approval_style: ApprovalStyle | None = None


class MessageHead(msgspec.Struct):
    """The fields that say what a message is."""

    role: str
    id: str | None = None


class Message(MessageHead, kw_only=True):
    parts: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    content: Any = msgspec.UNSET
    """Older clients send this instead of `parts`. A text here comes from AI SDK 4."""


class OlderMessage(msgspec.Struct):
    content: list[dict[str, Any]]


_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING = re.compile(r"missing required field `(\w+)`")


def what_is_wrong(error: msgspec.ValidationError, inside: str = "") -> str:
    """Which field is wrong. Names and numbers only: the decoder's own message may quote the request."""
    said = str(error)
    place, missing = _PLACE.search(said), _MISSING.search(said)
    names = (inside, place[1] if place else "", missing[1] if missing else "")
    field = ".".join(name for name in names if name)
    if not field:
        return "it is not an object"
    return f"`{field}` is missing" if missing else f"`{field}` has a wrong type or value"
