"""What a client may send: untrusted shapes, read as loosely as the AI SDK 5, 6 and 7 differ, and no looser.

Of a message only the part that counts is ever decoded. The rest of the posted history stays raw JSON: the
conversation is the server's, and what a client says about it is not even looked at.
"""

import re
from typing import Any, Literal

import msgspec

ApprovalStyle = Literal["approval-request", "confirmation-tool"]


class RequestBody(msgspec.Struct, rename="camel"):
    """The body of `DefaultChatTransport`; fields of the application's own are left alone."""

    id: str
    messages: list[msgspec.Raw] | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")
    trigger: str = "submit-message"
    message_id: str | None = None
    sdk_version: int | str | None = None
    approval_style: ApprovalStyle | None = None


class MessageHead(msgspec.Struct):
    """As much of a message as tells what it is."""

    role: str
    id: str | None = None


class Message(MessageHead, kw_only=True):
    parts: list[dict[str, Any]]


_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING = re.compile(r"missing required field `(\w+)`")


def what_is_wrong(error: msgspec.ValidationError, inside: str = "") -> str:
    """Which field is at fault. Names and numbers only: the decoder's own words may quote what it has read."""
    said = str(error)
    place, missing = _PLACE.search(said), _MISSING.search(said)
    names = (inside, place[1] if place else "", missing[1] if missing else "")
    field = ".".join(name for name in names if name)
    if not field:
        return "it is no object"
    return f"`{field}` is missing" if missing else f"`{field}` has a wrong type or value"
