"""Segments that are written in one go: nothing runs while they are read."""

import secrets
from collections.abc import Iterable, Sequence

from ..chunk_log import ChunkLog
from ..loop_share import LoopShare
from ..protocol.chunks import AnyChunk, Error, Start, encode_chunks


def new_log(earlier: Sequence[bytes] = ()) -> ChunkLog:
    """`earlier`: the segments before it of the same message."""
    return ChunkLog(secrets.token_urlsafe(3), earlier)


async def closed_log(chunks: Iterable[AnyChunk]) -> ChunkLog:
    return _closed(await encode_in_slices(chunks))


def failed_log(start_id: str | None, text: str) -> ChunkLog:
    """Only the reason why there is no more."""
    return _closed(encode_chunks([Start(start_id), Error(text)]))


async def encode_in_slices(chunks: Iterable[AnyChunk]) -> list[bytes]:
    encoded: list[bytes] = []
    share = LoopShare()
    for chunk in chunks:
        await share.give_way()
        encoded += encode_chunks([chunk])
    return encoded


def _closed(chunks: Sequence[bytes]) -> ChunkLog:
    log = new_log()
    log.append(chunks)
    log.close()
    return log
