"""Responses that a client may keep if it asks each time whether they have changed: `ETag` and `If-None-Match`."""

import asyncio
import hashlib

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from ..chat.history import ChatHistory
from ..limits import Limits
from ..loop_share import LoopShare
from ..protocol.chunks import encode_json
from ..protocol.fold import UIMessage
from .security import RUNNING

NO_CACHE = "private, no-cache"
"""The client's own cache may keep it, and asks each time whether it has changed."""


async def history_response(history: ChatHistory, request: Request, user: str, limits: Limits) -> Response:
    """The history; or 304, without loading the session if its tag is to be had without."""
    about = {"vary": "x-ai-sdk-version"}
    if history.running is not None:
        about[RUNNING] = history.running
    if "if-none-match" in request.headers:
        tag = await history.peek()
        if tag is not None and is_known(_weak(tag), request.headers):
            return _json(b"", _weak(tag), about, request.headers)
    body = await _encode_messages(await history.load())
    tag = history.tag or await digest_of(body, limits, user, history.running or "")
    return _json(body, _weak(tag), about, request.headers)


async def list_response(body: bytes, request: Request, user: str, limits: Limits) -> Response:
    """A list reads no session, so its own bytes are looked at."""
    return _json(body, _weak(await digest_of(body, limits, user)), {}, request.headers)


def _json(body: bytes, tag: str, about: dict[str, str], headers: Headers) -> Response:
    about = {**about, "cache-control": NO_CACHE, "etag": tag}
    if is_known(tag, headers):
        return Response(status_code=304, headers=about)
    return Response(body, media_type="application/json", headers=about)


def _weak(tag: str) -> str:
    """Weak: the application may compress the response, and it still says the same."""
    return f'W/"{tag}"'


def is_known(tag: str, headers: Headers) -> bool:
    """Whether the client names this tag in `If-None-Match`, and so has the response already."""
    named = ",".join(headers.getlist("if-none-match"))
    tags = [one.strip().removeprefix("W/") for one in named.split(",")]
    return tag.removeprefix("W/") in tags or tags == ["*"]


async def digest_of(data: bytes, limits: Limits, *about: str) -> str:
    """A hash of the contents, and of what else they are about."""
    if len(data) > limits.threaded_decode_bytes:
        return await asyncio.to_thread(_digest, data, about)
    return _digest(data, about)


def _digest(data: bytes, about: tuple[str, ...]) -> str:
    digest = hashlib.sha256(encode_json(about) if about else b"")
    digest.update(data)
    return digest.hexdigest()[:32]


async def _encode_messages(messages: list[UIMessage]) -> bytes:
    """One message after the other, and each is freed at once: both take a while for a long history."""
    share = LoopShare()
    encoded: list[bytes] = []
    messages.reverse()
    while messages:
        await share.give_way()
        encoded.append(encode_json(messages.pop()))
    return b"[" + b",".join(encoded) + b"]"
