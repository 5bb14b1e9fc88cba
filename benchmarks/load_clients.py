"""Clients in a process of their own: `load_clients.py CASE PORT STREAMS WORDS RATE`. Prints how late words were, in ms.

They read from sockets without an HTTP library, so that they are not what is measured.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

_WORD = re.compile(rb"\d{20}")
_STARTS_PER_S = 50


def start_s(streams: int) -> float:
    """Within this time all streams begin, one after the other: words do not come all at once, and a server that is busy
    with what it costs to begin a stream says little about the cost of a word."""
    return max(2.0, streams / _STARTS_PER_S)


def _ai_sdk(chat: str, prompt: str) -> tuple[str, dict[str, Any]]:
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": prompt}]}
    return "/chat", {"id": chat, "trigger": "submit-message", "messages": [message]}


def _run_sse(chat: str, prompt: str) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "parts": [{"text": prompt}]}
    request = {"app_name": "bench", "user_id": "bench", "session_id": chat, "new_message": message, "streaming": True}
    return "/run_sse", request


def _ag_ui(chat: str, prompt: str) -> tuple[str, dict[str, Any]]:
    message = {"id": "u1", "role": "user", "content": prompt}
    rest = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return "/chat", {"threadId": chat, "runId": "r1", "messages": [message], **rest}


REQUESTS: dict[str, Callable[[str, str], tuple[str, dict[str, Any]]]] = {"adk run_sse": _run_sse, "ag-ui-adk": _ag_ui}


async def _read(port: int, path: str, body: dict[str, Any], words: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n"
    writer.write(f"{head}connection: close\r\ncontent-length: {len(sent)}\r\n\r\n".encode() + sent)
    late_ms: list[float] = []
    newest = 0
    rest = b""
    while data := await reader.read(1 << 16):
        now = time.monotonic_ns()
        found = rest + data
        for word in map(int, _WORD.findall(found)):
            if word > newest:  # servers may say everything once more in the end
                newest = word
                late_ms.append((now - word) / 1e6)
        rest = found[-19:] if len(found) > 19 else found
    writer.close()
    if len(late_ms) != words:
        raise AssertionError(f"{len(late_ms)} of {words} words arrived")
    return late_ms


async def _main(case: str, port: int, streams: int, words: int, rate: float) -> None:
    asked = REQUESTS.get(case, _ai_sdk)
    apart_s = start_s(2 * streams) / streams  # another process has the other half

    async def one(number: int) -> list[float]:
        await asyncio.sleep(number * apart_s)
        return await _read(port, *asked(f"c{port}-{number}-{time.monotonic_ns()}", f"Say {words} {rate}"), words)

    late = [ms for each in await asyncio.gather(*map(one, range(streams))) for ms in each]
    print(json.dumps(late))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])))
