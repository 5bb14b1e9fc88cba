"""Artifacts over HTTP: whole, a range, or 304 if the client has them; and what a browser may do with them."""

import re
from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import Response

from ..errors import RangeNotSatisfiable
from ..limits import Limits
from .http import refusal
from .revalidation import NO_CACHE, digest_of, is_known

_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"  # noqa: S105, not a secret
_MEDIA_TYPE = re.compile(rf'({_TOKEN}/{_TOKEN})((?:\s*;\s*{_TOKEN}=(?:{_TOKEN}|"[A-Za-z0-9 !#$&^_.,:/+-]*"))*)')
_UNKNOWN = "application/octet-stream"

# Shown in the page. A browser may only save all other files: a page of our origin could act as the user.
_SHOWN_INLINE = re.compile(r"image/(png|jpeg|gif|webp)|audio/.*|video/.*|text/plain")
# Another page could still run a script as `<script src>`, so no file is sent with a script's type.
_SCRIPT = re.compile(r".*script.*")

_RANGE = re.compile(r"bytes=\s*(\d*)\s*-\s*(\d*)\s*", re.ASCII | re.IGNORECASE)
_MAX_DIGITS = 18


@dataclass(frozen=True)
class StoredFile:
    data: bytes
    media_type: str
    name: str
    has_version: bool
    """Whether its address names a version, so that it cannot change."""


async def file_response(file: StoredFile, request_headers: Headers, limits: Limits) -> Response:
    data = file.data
    # A hash of the contents, not the version: in a chat that was deleted, versions are counted from 0 again.
    tag = f'"{await digest_of(data, limits)}"'
    shown_type, is_shown = _how_to_show(file.media_type)
    headers = {
        "accept-ranges": "bytes",
        "cache-control": "private, max-age=3600" if file.has_version else NO_CACHE,
        "content-disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{_file_name(file.name)}",
        "content-security-policy": "default-src 'none'; sandbox",
        "etag": tag,
        "x-content-type-options": "nosniff",
    }
    if is_known(tag, request_headers):
        return Response(status_code=304, headers=headers)
    wanted = request_headers.get("range")
    if wanted is None or request_headers.get("if-range", tag) != tag:
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


def _how_to_show(media_type: str) -> tuple[str, bool]:
    """The media type for the browser, and whether the browser may show the file."""
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
    """Start and end. None for several ranges and for malformed ones: HTTP allows to send the whole file then."""
    found = _RANGE.fullmatch(wanted)
    if found is None or not (found[1] or found[2]) or max(map(len, found.groups())) > _MAX_DIGITS:
        return None
    if not found[1]:  # bytes=-500: the last 500 bytes
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
