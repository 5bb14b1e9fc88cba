"""What a reader gets who comes without a cursor."""

import sys
from collections.abc import Sequence

from adk_stream_protocol.chunk_log import ChunkLog
from adk_stream_protocol.protocol.replay import Event


def replayed(earlier: Sequence[bytes], chunks: Sequence[bytes], max_bytes: int = sys.maxsize) -> list[Event]:
    log = ChunkLog("s", earlier)
    log.append(chunks)
    return [event for piece in log.replayed(len(log), max_bytes) for event in piece]
