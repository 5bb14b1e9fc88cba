"""Many at a time: bounded memory, and nobody reads what was meant for another."""

import asyncio
import json
import os
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.testing import ScriptedModel
from support.apps import app_of, figure, user_of
from support.live_server import serving

STREAMS = 1_000
DEAD_READERS = 200
WORDS = 30


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class EchoModel(ScriptedModel):
    """Says its user's word again and again, slowly."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
        parts = llm_request.contents[-1].parts or []
        word = f"{parts[0].text} "
        for _ in range(WORDS):
            await asyncio.sleep(0.1)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=word)]), partial=True)
        whole = types.Content(role="model", parts=[types.Part(text=word * WORDS)])
        yield LlmResponse(content=whole, partial=False)


async def post(origin: str, chat_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = origin.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": f"<{chat_id}>"}]}
    body = json.dumps({"id": chat_id, "messages": [message]}).encode()
    head = "POST /api/chat HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
    head += f"x-user: {chat_id}\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    return reader, writer


@pytest.mark.figures
def test_every_stream_gets_its_own_chunks_and_little_memory(capsys: pytest.CaptureFixture[str]) -> None:
    count = figure(STREAMS)

    async def read(origin: str, chat_id: str) -> bytes:
        reader, writer = await post(origin, chat_id)
        data = await reader.read(-1)
        writer.close()
        return data

    async def clients(origin: str) -> list[bytes]:
        peak.append(resident_bytes())
        reading = [asyncio.create_task(read(origin, f"chat{n}")) for n in range(count)]
        while not all(task.done() for task in reading):
            await asyncio.sleep(0.05)
            peak.append(resident_bytes())
        return [task.result() for task in reading]

    peak: list[int] = []
    bridge = ChatBridge(LlmAgent(name="helper", model=EchoModel()), user_id=user_of)
    with serving(app_of(bridge)) as origin:
        asyncio.run(read(origin, "warm"))
        streams = asyncio.run(clients(origin))
    for number, stream in enumerate(streams):
        assert stream.count(f"<chat{number}> ".encode()) == WORDS
        assert stream.count(b"<chat") == WORDS
        assert b"[DONE]" in stream
    per_stream = (max(peak) - peak[0]) // count
    with capsys.disabled():
        print(f"\n{count} streams: {per_stream // 1024} KiB each, ADK's run and the test's own client included")
    assert per_stream < 512 * 1024


class LongModel(ScriptedModel):
    """Eight megabytes, more than any socket buffers."""

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
        for _ in range(2000):
            await asyncio.sleep(0.001)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="x" * 4096)]), partial=True)
        await asyncio.sleep(3600)


@pytest.mark.figures
def test_readers_that_never_read_cost_little_and_are_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    count = figure(DEAD_READERS)
    limits = Limits(send_timeout_s=2, ping_interval_s=2, max_readers_per_run=count + 1)
    bridge = ChatBridge(LlmAgent(name="helper", model=LongModel()), user_id=user_of, limits=limits)

    async def dead_readers(origin: str) -> int:
        first = await post(origin, "c1")
        while (log := bridge._service.running("c1", "c1")) is None or log.size_bytes < 8_000_000:
            await asyncio.sleep(0.01)
        before = resident_bytes()
        host, port = origin.removeprefix("http://").split(":")
        sockets = [first]
        descriptors = open_descriptors() - 2
        for _ in range(count):
            reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
            writer.transport.pause_reading()  # pyright: ignore
            writer.write(b"GET /api/chat/c1/stream HTTP/1.1\r\nhost: x\r\nx-user: c1\r\n\r\n")
            sockets.append((reader, writer))
        grown = 0
        watched = False
        while log.is_read or not watched:  # until the last one is cut off
            watched |= log.is_read
            grown = max(grown, resident_bytes() - before)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(60):
            while open_descriptors() > descriptors + len(sockets):  # the clients' own are all that is left
                await asyncio.sleep(0.05)
        for _, writer in sockets:
            writer.transport.abort()
        return grown

    with serving(app_of(bridge)) as origin:
        grown = asyncio.run(dead_readers(origin))
        assert httpx.post(f"{origin}/api/chat/c1/stop", headers={"x-user": "c1"}).status_code == 204
    with capsys.disabled():
        print(f"\n{count} readers that never read: {grown // count // 1024} KiB each")
    assert grown < 64 * 1024 * 1024 + count * 256 * 1024
