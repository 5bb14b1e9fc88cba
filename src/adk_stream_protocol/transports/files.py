"""Artifacts over HTTP: whole, in part, or not at all if the client has them; and what a browser may do with them."""

import asyncio
import hashlib
import re
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response

from ..errors import RangeNotSatisfiable
from ..limits import Limits
from .http import refusal

_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"  # noqa: S105, not a secret
_MEDIA_TYPE = re.compile(rf'({_TOKEN}/{_TOKEN})((?:\s*;\s*{_TOKEN}=(?:{_TOKEN}|"[A-Za-z0-9 !#$&^_.,:/+-]*"))*)')
_UNKNOWN = "application/octet-stream"

# Shown in the page; everything else a browser may only save, since a page of our origin could act as the user.
_SHOWN_INLINE = re.compile(r"image/(png|jpeg|gif|webp)|audio/.*|video/.*|text/plain")
# A saved script would still run as a part of another page (`<script src>`), so it goes out under no such type.
_SCRIPT = re.compile(r".*script.*")

_RANGE = re.compile(r"bytes=\s*(\d*)\s*-\s*(\d*)\s*", re.ASCII | re.IGNORECASE)
_MAX_FIGURES = 18


async def file_response(
    data: bytes, media_type: str, name: str, *, has_version: bool, asked: Headers, limits: Limits
) -> Response:
    """`has_version`: whether its address names a version, so that it cannot change."""
    tag = await _entity_tag(data, limits)
    shown_type, is_shown = _how_to_show(media_type)
    headers = {
        "accept-ranges": "bytes",
        "cache-control": "private, max-age=3600" if has_version else "private, no-cache",
        "content-disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{_file_name(name)}",
        "content-security-policy": "default-src 'none'; sandbox",
        "etag": tag,
        "x-content-type-options": "nosniff",
    }
    if _has_it(asked.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    wanted = asked.get("range")
    if wanted is None or asked.get("if-range", tag) != tag:
        return Response(data, media_type=shown_type, headers=headers)
    try:
        found = _find_range(wanted, len(data))
    except RangeNotSatisfiable as error:
        refused = refusal(error)
        refused.headers["content-range"] = f"bytes */{len(data)}"
        return refused
    if found is None:
        return Response(data, media_type=shown_type, headers=headers)
    first, end = found
    headers["content-range"] = f"bytes {first}-{end - 1}/{len(data)}"
    return Response(data[first:end], 206, media_type=shown_type, headers=headers)


async def _entity_tag(data: bytes, limits: Limits) -> str:
    """Of the contents: numbers of versions begin anew in a chat that was deleted."""
    if len(data) > limits.threaded_decode_bytes:
        digest = await asyncio.to_thread(hashlib.sha256, data)
    else:
        digest = hashlib.sha256(data)
    return f'"{digest.hexdigest()[:32]}"'


def _has_it(known: str, tag: str) -> bool:
    tags = [one.strip().removeprefix("W/") for one in known.split(",")]
    return tag in tags or tags == ["*"]


def _how_to_show(media_type: str) -> tuple[str, bool]:
    """What the browser is told that it is, and whether it may show it."""
    found = _MEDIA_TYPE.fullmatch(media_type.strip())
    if found is None:
        return _UNKNOWN, False
    kind = found[1].lower()
    if _SHOWN_INLINE.fullmatch(kind):
        return kind + found[2], True
    return (_UNKNOWN if _SCRIPT.fullmatch(kind) else kind + found[2]), False


def _file_name(name: str) -> str:
    return quote(name.rpartition("/")[2], safe="", errors="replace")


def _find_range(wanted: str, size: int) -> tuple[int, int] | None:
    """Where it begins and ends. None for several ranges, or what is no range: those may get the whole."""
    found = _RANGE.fullmatch(wanted)
    if found is None or not (found[1] or found[2]) or max(map(len, found.groups())) > _MAX_FIGURES:
        return None
    if not found[1]:  # the last so many bytes
        first, end = max(size - int(found[2]), 0), size
        if int(found[2]) == 0:
            raise RangeNotSatisfiable
    else:
        first, end = int(found[1]), min(int(found[2]) + 1, size) if found[2] else size
        if found[2] and int(found[2]) < first:
            return None
    if first >= size:
        raise RangeNotSatisfiable
    return first, end
