"""A server that nobody but the application has started: real uvicorn, with its own defaults, and real sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from adk_stream_protocol import ChatBridge
from transports.live_apps import LiveApp, live_app, talks_for_ever


class DrainingServer(uvicorn.Server):
    """As the documentation has it."""

    def __init__(self, config: uvicorn.Config, bridge: ChatBridge) -> None:
        super().__init__(config)
        self.bridge = bridge

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.bridge.drain()
        await super().shutdown(sockets)


@asynccontextmanager
async def serving(live: LiveApp) -> AsyncGenerator[tuple[uvicorn.Server, str]]:
    config = uvicorn.Config(live.app, log_level="critical", timeout_graceful_shutdown=2)
    server = DrainingServer(config, live.bridge)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = asyncio.create_task(server._serve([listening]))  # pyright: ignore -- `serve` takes the signals
        while not server.started:
            assert not running.done(), running.exception()
            await asyncio.sleep(0.005)
        try:
            yield server, f"ws://127.0.0.1:{listening.getsockname()[1]}/api/chat/live"
        finally:
            server.should_exit = True
            await running


async def until_closed(client: ClientConnection) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    while True:
        try:
            frames.append(json.loads(await client.recv()))
        except ConnectionClosed:
            return frames


@pytest.mark.parametrize("is_answering", [False, True], ids=["idle", "answering"])
async def test_clients_are_asked_to_reconnect_before_their_sockets_are_closed(is_answering: bool) -> None:
    async with live_app(talks_for_ever) as live, serving(live) as (server, url), connect(url, proxy=None) as client:
        if is_answering:
            message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Go on"}]}
            send = {"type": "send", "requestId": "r1", "id": "chat-1", "messages": [message]}
            await client.send(json.dumps(send))
            while json.loads(await client.recv()).get("chunk", {}).get("type") != "text-delta":
                pass
        else:
            await client.send(json.dumps({"type": "ping", "requestId": "-"}))
            await client.recv()
        server.should_exit = True
        frames = await until_closed(client)
        assert frames[0] == {"type": "reconnect", "requestId": "-"}
        assert (frames[-1]["type"] == "end") is is_answering
        assert client.close_code == 1012


async def test_the_largest_frame_of_ours_is_taken_by_plain_uvicorn() -> None:
    size = 11 * 1024 * 1024 * 4 // 3 // 4 * 4
    file = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "A" * size}
    message = {"id": "u1", "role": "user", "parts": [file]}
    async with live_app(talks_for_ever) as live, serving(live) as (_, url), connect(url, proxy=None) as client:
        send = {"type": "send", "requestId": "r1", "id": "chat-1", "messages": [message]}
        await client.send(json.dumps(send))
        assert json.loads(await client.recv())["type"] == "chunk"
