"""A disconnect never cancels a tool and never loses its result: clients that leave at random bytes."""

import asyncio
import json
import socket
from random import Random
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from google.adk.agents import LlmAgent

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import Reply, ScriptedModel, call
from support.apps import app_of, figure, user_of
from support.live_server import serving

DISCONNECTS = 500


def leave_after(origin: str, chat_id: str, many_bytes: int) -> None:
    """Post a turn, read so many bytes of the response, and vanish."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "pay"}]}
    body = json.dumps({"id": chat_id, "messages": [message]}).encode()
    head = (
        f"POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    target = urlsplit(origin)
    with socket.create_connection((target.hostname, target.port)) as connection:
        connection.sendall(head.encode() + body)
        left = many_bytes
        while left > 0 and (data := connection.recv(left)):
            left -= len(data)


@pytest.mark.figures
def test_a_tool_finishes_whoever_leaves_and_its_result_is_kept() -> None:
    started: list[str] = []
    finished: list[str] = []

    async def pay(to: str) -> dict[str, str]:
        """Pays."""
        started.append(to)
        for _ in range(20):  # long enough that most clients are gone before it is done
            await asyncio.sleep(0.001)
        finished.append(to)
        return {"paid": to}

    count = figure(DISCONNECTS)
    script: list[Reply] = [lambda _: [call("pay", to=f"p{len(started)}")], "Paid, and that is that."] * count
    agent = LlmAgent(name="helper", model=ScriptedModel(script), tools=[pay])
    random = Random(7)

    with serving(app_of(ChatBridge(agent, user_id=user_of))) as origin, httpx.Client(base_url=origin) as http:
        for number in range(count):
            chat = f"/api/chat/c{number}"
            # The response is about 1,100 bytes: some leave before its head, some in mid-chunk, some with the last one.
            leave_after(origin, f"c{number}", random.randint(0, 1200))
            while http.get(f"{chat}/messages").status_code == 404:
                pass  # the request is still on its way
            http.get(f"{chat}/stream")  # to its end, if it has not come
            parts: list[Any] = http.get(f"{chat}/messages").json()[-1]["parts"]
            tool = next(part for part in parts if part["type"] == "tool-pay")
            assert (tool["state"], tool["output"]) == ("output-available", {"paid": f"p{number}"})
            assert parts[-1]["text"] == "Paid, and that is that."
    assert started == finished == [f"p{number}" for number in range(count)]
