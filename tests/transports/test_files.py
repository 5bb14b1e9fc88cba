"""Files over HTTP: parts of them, those that a client has already, and those that a browser may only save."""

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from google.adk.artifacts import FileArtifactService
from google.genai import types

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import ChatClient, call
from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange

DATA = bytes(range(100))


async def app_with(*versions: bytes, media_type: str = "image/png", **options: Any) -> FastAPI:
    """A chat c1 with the file `a.bin` in these versions."""

    async def save(tool_context: Any) -> dict[str, str]:
        """Saves."""
        for data in versions:
            await tool_context.save_artifact("a.bin", types.Part.from_bytes(data=data, mime_type=media_type))
        return {}

    app = app_of(bridge_with([call("save")], "Saved.", "Saved.", tools=(save,), **options))
    await ChatClient(app, chat_id="c1").send("save")
    return app


async def fetch(app: FastAPI, query: str = "", method: str = "GET", **headers: str) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await exchange(app, method=method, path="/api/chat/c1/files/a.bin", query=query, headers=named)


# -- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=0-0", 0, 1),
        ("bytes=90-", 90, 100),
        ("bytes=90-1000", 90, 100),
        ("bytes=-10", 90, 100),
        ("bytes=-1000", 0, 100),
        ("bytes=0-", 0, 100),
        ("BYTES= 5 - 6", 5, 7),
        ("bytes=99-999999999999999999", 99, 100),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_part_of_a_file(wanted: str, first: int, end: int, method: str) -> None:
    part = await fetch(await app_with(DATA), method=method, range=wanted)
    assert (part.status, part.headers["content-range"]) == (206, f"bytes {first}-{end - 1}/100")
    assert part.headers["content-length"] == str(end - first)
    assert part.body == (DATA[first:end] if method == "GET" else b"")


@pytest.mark.parametrize("wanted", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999-"])
async def test_a_part_beyond_the_end(wanted: str) -> None:
    refused = await fetch(await app_with(DATA), range=wanted)
    assert (refused.status, refused.headers["content-range"]) == (416, "bytes */100")
    assert b'"code":"range-not-satisfiable"' in refused.body


@pytest.mark.parametrize(
    "wanted",
    [
        *("bytes=0-1,5-6", "bytes=9-1", "bytes=-", "bytes=", "bytes", "", "items=0-1", "bytes=a-b", "bytes=0x1-2"),
        *("bytes=²-3", "bytes=--5", "bytes=1-2-3", f"bytes={'9' * 5000}-", f"bytes=-{'9' * 5000}"),
    ],
)
async def test_what_is_no_part_or_several_gets_the_whole(wanted: str) -> None:
    whole = await fetch(await app_with(DATA), range=wanted)
    assert (whole.status, whole.body, whole.headers["accept-ranges"]) == (200, DATA, "bytes")


async def test_an_empty_file_has_no_parts() -> None:
    app = await app_with(b"")
    assert (await fetch(app)).status == 200
    assert (await fetch(app, range="bytes=0-")).status == 416


async def test_a_part_of_a_file_that_has_changed_meanwhile_is_the_whole() -> None:
    app = await app_with(DATA)
    tag = (await fetch(app)).headers["etag"]
    assert (await fetch(app, range="bytes=0-1", if_range=tag)).status == 206
    assert (await fetch(app, range="bytes=0-1", if_range='"other"')).status == 200


# -- what the client has already --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [Limits(), Limits(threaded_decode_bytes=10)])
async def test_a_client_that_has_it_gets_nothing(limits: Limits) -> None:
    app = await app_with(DATA, limits=limits)
    first = await fetch(app)
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = await fetch(app, if_none_match=known)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    for known in ('"x"', "", "W/", tag.strip('"')):
        assert (await fetch(app, if_none_match=known)).status == 200


async def test_each_version_has_a_tag_of_its_own_and_only_a_named_one_is_kept_unasked() -> None:
    app = await app_with(b"one", b"two")
    old, new, latest = [await fetch(app, query) for query in ("version=0", "version=1", "")]
    assert [file.body for file in (old, new, latest)] == [b"one", b"two", b"two"]
    assert old.headers["etag"] != new.headers["etag"] == latest.headers["etag"]
    kept = [file.headers["cache-control"] for file in (old, new, latest)]
    assert kept == ["private, max-age=3600", "private, max-age=3600", "private, no-cache"]


# -- what a browser may do --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media_type", "served_as", "is_shown"),
    [
        ("image/png", "image/png", True),
        ("IMAGE/PNG", "image/png", True),
        ("audio/L16;rate=24000", "audio/l16;rate=24000", True),
        ('audio/webm; codecs="opus"', 'audio/webm; codecs="opus"', True),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8", True),
        ("application/pdf", "application/pdf", False),
        ("text/csv", "text/csv; charset=utf-8", False),
        ("text/html", "text/html; charset=utf-8", False),
        ("Text/HTML; charset=utf-8", "text/html; charset=utf-8", False),
        ("application/xhtml+xml", "application/xhtml+xml", False),
        ("image/svg+xml", "image/svg+xml", False),
        ("IMAGE/SVG+XML;x=y", "image/svg+xml;x=y", False),
        ("text/xml", "text/xml; charset=utf-8", False),
        ("application/xml", "application/xml", False),
        ("text/plainer", "text/plainer; charset=utf-8", False),
        ("image/png+xml", "image/png+xml", False),
        ("text/javascript", "application/octet-stream", False),
        ("Application/X-JavaScript; charset=utf-8", "application/octet-stream", False),
        ("text/ecmascript", "application/octet-stream", False),
        ("image/png,text/html", "application/octet-stream", False),
        ("image/png, text/html", "application/octet-stream", False),
        ("text/plain;text/html", "application/octet-stream", False),
        ("image/png\r\nset-cookie: a=b", "application/octet-stream", False),
        ("image/png\n", "image/png", True),
        ("image", "application/octet-stream", False),
        ("画像/png", "application/octet-stream", False),
        ("x" * 5000, "application/octet-stream", False),
    ],
)
async def test_only_harmless_files_are_shown_whatever_they_say_they_are(
    media_type: str, served_as: str, is_shown: bool
) -> None:
    file = await fetch(await app_with(DATA, media_type=media_type))
    assert (file.status, file.headers["content-type"]) == (200, served_as)
    assert file.headers["content-disposition"].split(";")[0] == ("inline" if is_shown else "attachment")
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "set-cookie" not in file.headers


@pytest.mark.parametrize(
    "name", ["x" * 256, "é" * 128, "a/" * 600, "a\0b", "..", "../../etc/passwd", ".", "/", "a//b", "a.bin/x"]
)
async def test_a_name_that_no_file_has_is_not_found_also_where_artifacts_are_files(name: str, tmp_path: Path) -> None:
    app = await app_with(DATA, artifact_service=FileArtifactService(str(tmp_path)))
    assert (await fetch(app)).status == 200
    missing = await exchange(app, method="GET", path=f"/api/chat/c1/files/{name}")
    assert missing.status == 404
