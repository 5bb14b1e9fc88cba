"""Live voice: how much later than from a bare echo does a frame come back, with many sessions at once in one process?

    python benchmarks/live_audio.py [sessions] [seconds]

A model that says back every frame of voice as it comes stands behind a bridge on uvicorn. Clients in two other
processes send one frame of 20 ms every 20 ms in each session, with its number and the time in its first samples. The
same clients talk to two bare WebSockets: one sends back what it gets, the other has ADK's `run_live` between the two
directions, as one would write it without a bridge. Each server is a process of its own.

The processor time of a frame is that of the server, for a frame that comes in and goes out again. A server that cannot
keep up joins frames; only with few sessions does it show what a single frame costs.
"""

import asyncio
import json
import multiprocessing
import struct
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

FRAME_S = 0.02
FRAME_BYTES = 640
STAMP = struct.Struct("<Qd")
PROCESSES = 2
TEXT, BINARY = 1, 2


def serve(kind: str, port: int) -> None:
    import uvicorn

    app = {"echo": echo_app, "run_live": run_live_app, "bridge": bridge_app}[kind]()

    @app.get("/cpu")
    async def cpu() -> float:
        return time.process_time()

    uvicorn.run(app, port=port, log_level="error", ws_ping_interval=None, ws="websockets-sansio")


def echo_app() -> Any:
    from fastapi import FastAPI, WebSocket, WebSocketDisconnect

    app = FastAPI()

    @app.websocket("/api/chat/live")
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept(subprotocol="adk-stream.v1")
        try:
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if message.get("bytes"):
                    await websocket.send_bytes(message["bytes"])
                else:
                    await websocket.send_text('{"type":"attached","requestId":"-"}')
        except WebSocketDisconnect:
            return

    return app


def echo_agent() -> Any:
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Echo(BaseLlmConnection):
        def __init__(self) -> None:
            self._heard: asyncio.Queue[types.Blob | None] = asyncio.Queue()

        async def send_history(self, history: list[types.Content]) -> None: ...

        async def send_content(self, content: types.Content) -> None: ...

        async def send_realtime(self, blob: Any) -> None:
            self._heard.put_nowait(blob)

        async def receive(self) -> AsyncGenerator[LlmResponse, None]:
            while (blob := await self._heard.get()) is not None:
                said = types.Blob(data=blob.data, mime_type="audio/pcm;rate=16000")
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(inline_data=said)]))

        async def close(self) -> None:
            self._heard.put_nowait(None)

    class EchoModel(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            raise NotImplementedError
            yield

        @asynccontextmanager
        async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
            yield Echo()

    return LlmAgent(name="echo", model=EchoModel(model="echo"))


def run_live_app() -> Any:
    from fastapi import FastAPI, WebSocket, WebSocketDisconnect
    from google.adk.agents.live_request_queue import LiveRequestQueue
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    app = FastAPI()
    runner = InMemoryRunner(echo_agent(), app_name="echo")

    @app.websocket("/api/chat/live")
    async def live(websocket: WebSocket) -> None:
        await websocket.accept(subprotocol="adk-stream.v1")
        session = await runner.session_service.create_session(app_name="echo", user_id=websocket.headers["x-user"])
        queue = LiveRequestQueue()

        async def speak() -> None:
            events = runner.run_live(user_id=session.user_id, session_id=session.id, live_request_queue=queue)
            async for event in events:
                for part in (event.content.parts if event.content else None) or ():
                    if part.inline_data is not None and part.inline_data.data:
                        await websocket.send_bytes(part.inline_data.data)

        speaking = asyncio.create_task(speak())
        try:
            while (message := await websocket.receive())["type"] != "websocket.disconnect":
                if message.get("bytes"):
                    queue.send_realtime(types.Blob(data=message["bytes"], mime_type="audio/pcm;rate=16000"))
        except WebSocketDisconnect:
            pass
        finally:
            queue.close()
            speaking.cancel()

    return app


def bridge_app() -> Any:
    from fastapi import FastAPI

    from adk_stream_protocol import ChatBridge, Limits

    bridge = ChatBridge(
        echo_agent(),
        user_id=lambda connection: connection.headers.get("x-user"),
        limits=Limits(max_log_bytes=1 << 30),
    )
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    return app


def talk(port: int, users: list[str], seconds: float, all_ready: Any, results: Any) -> None:
    results.put(asyncio.run(talk_all(port, users, seconds, all_ready)))


async def talk_all(port: int, users: list[str], seconds: float, all_ready: Any) -> dict[str, Any]:
    sockets = [await open_session(port, user) for user in users]
    await asyncio.to_thread(all_ready.wait)
    told = await asyncio.gather(*(speak(socket, seconds, number) for number, socket in enumerate(sockets)))
    return {
        "delays": [delay for session in told for delay in session["delays"]],
        "sent": sum(session["sent"] for session in told),
        "messages": sum(session["messages"] for session in told),
        "in_order": all(session["in_order"] for session in told),
    }


class Socket:
    """As little of a WebSocket client as will do, so that the two cores are there for the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int, user: str) -> "Socket":
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            f"GET /api/chat/live HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nx-user: {user}\r\n"
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: adk-stream.v1\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head:
            raise SystemExit(head.decode())
        return cls(reader, writer)

    def send(self, data: bytes, opcode: int) -> None:
        # Masked with zeros, which is no work and no lie.
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        self._writer.write(bytes([0x80 | opcode]) + size + bytes(4) + data)

    async def receive(self) -> tuple[int, bytes]:
        first, size = await self._reader.readexactly(2)
        if size >= 126:
            size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
        return first & 15, await self._reader.readexactly(size)

    async def voice(self) -> bytes:
        while True:
            opcode, data = await self.receive()
            if opcode == BINARY:
                return data


async def open_session(port: int, user: str) -> Socket:
    socket = await Socket.connect(port, user)
    socket.send(json.dumps({"type": "attach", "requestId": "-", "id": "voice"}).encode(), TEXT)
    socket.send(bytes(FRAME_BYTES), BINARY)  # the first word opens the session
    await socket.voice()
    return socket


async def speak(socket: Socket, seconds: float, number: int) -> dict[str, Any]:
    delays: list[float] = []
    numbers: list[int] = []
    messages = 0
    count = int(seconds / FRAME_S)
    await asyncio.sleep(0.5 + number * FRAME_S / 25)

    async def listen() -> None:
        nonlocal messages
        while len(numbers) < count:
            voice = await socket.voice()  # one frame; or several, where they had to wait
            messages += 1
            for offset in range(0, len(voice), FRAME_BYTES):
                index, sent_at = STAMP.unpack_from(voice, offset)
                numbers.append(index)
                delays.append(time.monotonic() - sent_at)

    listening = asyncio.create_task(listen())
    began = time.monotonic()
    for index in range(count):
        await asyncio.sleep(max(0, began + index * FRAME_S - time.monotonic()))
        socket.send(STAMP.pack(index, time.monotonic()) + bytes(FRAME_BYTES - STAMP.size), BINARY)
    with suppress(TimeoutError):
        await asyncio.wait_for(listening, 10)
    return {"delays": delays, "sent": count, "messages": messages, "in_order": numbers == sorted(numbers)}


def measure(kind: str, port: int, sessions: int, seconds: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=serve, args=(kind, port), daemon=True)
    server.start()
    wait_for(port)
    all_ready, results = context.Barrier(PROCESSES + 1), context.Queue()
    users = [f"user-{number}" for number in range(sessions)]
    clients = [
        context.Process(target=talk, args=(port, users[part::PROCESSES], seconds, all_ready, results))
        for part in range(PROCESSES)
    ]
    for client in clients:
        client.start()
    all_ready.wait()
    began_s = cpu_seconds(port)
    told = [results.get() for _ in clients]
    used_s = cpu_seconds(port) - began_s
    for client in clients:
        client.join()
    server.terminate()
    server.join()
    delays = sorted(delay * 1000 for part in told for delay in part["delays"])
    return {
        "frames": len(delays),
        "in_messages": sum(part["messages"] for part in told),
        "lost": sum(part["sent"] for part in told) - len(delays),
        "in_order": all(part["in_order"] for part in told),
        "p50_ms": delays[len(delays) // 2],
        "p99_ms": delays[int(len(delays) * 0.99)],
        "max_ms": delays[-1],
        "cpu_us": used_s * 1_000_000 / len(delays),
    }


def cpu_seconds(port: int) -> float:
    """Of the server, so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/cpu") as response:
        return float(response.read())


def wait_for(port: int) -> None:
    import socket

    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not start")


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    rounds: dict[str, dict[str, Any]] = {}
    for place, kind in enumerate(("echo", "run_live", "bridge")):
        rounds[kind] = measure(kind, 8790 + place, sessions, seconds)
        told = " ".join(
            f"{name}={value:.1f}" if isinstance(value, float) else f"{name}={value}"
            for name, value in rounds[kind].items()
        )
        print(f"{kind:8s} {told}", flush=True)
    echo, run_live, bridge = (rounds[kind] for kind in ("echo", "run_live", "bridge"))
    print(f"{sessions} sessions, 50 frames a second each way, lost {bridge['lost']}:")
    print(f"  p99 of the delay that is added to the echo's: {bridge['p99_ms'] - echo['p99_ms']:.1f} ms")
    ratio = bridge["cpu_us"] / run_live["cpu_us"]
    print(f"  processor time of a frame, in and out: {bridge['cpu_us']:.0f} us, {ratio:.2f} of that of bare run_live")


if __name__ == "__main__":
    main()
