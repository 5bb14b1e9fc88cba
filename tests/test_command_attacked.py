"""`adk-stream serve` under clients that mean it ill: real processes, raw sockets."""

import json
import socket
import threading
import zlib
from collections.abc import Generator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from support.apps import figure
from support.commands import Server, serving
from support.raw_sockets import (
    connect,
    frame,
    get,
    open_descriptors,
    post,
    read_to_end,
    resident_bytes,
    send_until_cut_off,
    turn,
    until,
    upgrade,
)

MIB = 1024 * 1024
AGENT = """
import asyncio

from google.adk.agents import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.testing import ScriptedModel


class Talkative(ScriptedModel):
    async def generate_content_async(self, llm_request, stream=False):
        said = llm_request.contents[-1].parts[0].text
        for number in range(int(said)):
            if number % 100 == 0:
                await asyncio.sleep(0)
            content = types.Content(role="model", parts=[types.Part(text=f"word{number} ")])
            yield LlmResponse(content=content, partial=True)
        if said != "1":
            await asyncio.sleep(3600)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="word0 ")]), partial=False)


agent = LlmAgent(name="helper", model=Talkative())
"""
MALLORY = "x-demo-user: mallory"


class Attacked:
    def __init__(self, server: Server) -> None:
        self.pid = server.process.pid
        self.origin = f"http://127.0.0.1:{server.port}"
        self._chats = 0
        self.chat()  # what is loaded with the first turn is no attack's doing
        until(lambda: open_descriptors(self.pid) == self.idle_descriptors())
        self.descriptors = open_descriptors(self.pid)
        self.memory = resident_bytes(self.pid)

    def idle_descriptors(self) -> int:
        """As many as there are when nobody is connected."""
        with open(f"/proc/{self.pid}/net/tcp") as table:
            port = f":{int(self.origin.rpartition(':')[2]):04X}"
            connected = sum(line.split()[1].endswith(port) and line.split()[3] == "01" for line in table)
        return open_descriptors(self.pid) - connected

    def chat(self) -> None:
        """Somebody else is answered, whatever is going on."""
        self._chats += 1
        body = turn(f"chat-{self._chats}", "1")
        with connect(self.origin, post("/api/chat", body, "x-demo-user: ann", "connection: close")) as connection:
            told = read_to_end(connection)
        assert b"word0" in told, told
        assert told.rstrip().endswith(b"0"), told  # the last piece of the body

    @property
    def grown_mib(self) -> float:
        return (resident_bytes(self.pid) - self.memory) / MIB

    def is_rid_of_all(self) -> bool:
        return open_descriptors(self.pid) <= self.descriptors


@pytest.fixture(name="attacked", scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Attacked]:
    folder: Path = tmp_path_factory.mktemp("agent")
    (folder / "talkative.py").write_text(AGENT)
    with serving("serve", "talkative:agent", cwd=folder) as server:
        yield Attacked(server)


def test_a_huge_header_costs_nothing(attacked: Attacked) -> None:
    with ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(connect(attacked.origin, b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: "))
            send_until_cut_off(connection, b"a" * MIB, most=50)
        attacked.chat()
    assert attacked.grown_mib < 32
    until(attacked.is_rid_of_all)


def test_compression_is_not_negotiated_and_a_frame_that_claims_it_ends_the_socket(attacked: Attacked) -> None:
    message = {"type": "send", "requestId": "r", "id": "c", "messages": [], "body": {"x": "a" * 3 * MIB}}
    packer = zlib.compressobj(9, zlib.DEFLATED, -12)
    packed = packer.compress(json.dumps(message).encode()) + packer.flush(zlib.Z_SYNC_FLUSH)
    offered = upgrade("/api/chat/live?user=mallory", "sec-websocket-extensions: permessage-deflate")
    with connect(attacked.origin, offered) as connection:
        answer = connection.recv(4096).lower()
        assert answer.startswith(b"http/1.1 101")
        assert b"sec-websocket-extensions" not in answer
        connection.sendall(frame(packed[:-4], first_byte=0xC1) * 10)
        assert b"\x03\xea" in read_to_end(connection)  # 1002: not the protocol
    attacked.chat()
    assert attacked.grown_mib < 32
    until(attacked.is_rid_of_all)


def test_a_frame_that_is_too_large_is_refused_by_its_first_bytes(attacked: Attacked) -> None:
    with connect(attacked.origin, upgrade("/api/chat/live?user=mallory")) as connection:
        connection.recv(4096)
        connection.sendall(frame(bytes(33 * MIB))[:100])
        assert b"\x03\xf1" in read_to_end(connection)  # 1009: too big
    until(attacked.is_rid_of_all)


def test_unfinished_uploads_of_one_user_cost_little_and_are_gone_with_it(attacked: Attacked) -> None:
    began = b'{"id": "c", "messages": [{"role": "user", "parts": [{"type": "file", "url": "data:image/png;base64,'
    announced = post("/api/chat", began, MALLORY, length=30 * MIB)

    def upload(connection: socket.socket) -> None:
        try:
            for _ in range(26):
                connection.sendall(b"A" * MIB)
        except OSError:
            pass

    with ExitStack() as stack:
        connections = [stack.enter_context(connect(attacked.origin, announced)) for _ in range(10)]
        uploads = [threading.Thread(target=upload, args=(connection,)) for connection in connections]
        for thread in uploads:
            thread.start()
        for thread in uploads:
            thread.join()
        attacked.chat()
        assert attacked.grown_mib < 128  # two of them, and one that is being read
        refused = 0
        for connection in connections:
            connection.settimeout(0.2)
            with suppress(TimeoutError):
                refused += b'"code":"too-many"' in connection.recv(4096)
        assert refused == 8
    until(attacked.is_rid_of_all)
    until(lambda: attacked.grown_mib < 64)
    attacked.chat()


@pytest.mark.figures
def test_dead_readers_of_a_long_answer_cost_little(attacked: Attacked) -> None:
    count, words = 200, figure(60_000)
    with connect(attacked.origin, post("/api/chat", turn("long", str(words)), MALLORY)) as first:
        told = b""
        while f"word{words - 1} ".encode() not in told:
            piece = first.recv(2**16)
            assert piece
            told = told[-1000:] + piece
        attacked.memory = resident_bytes(attacked.pid)
        stream = get("/api/chat/long/stream", MALLORY)
        with ExitStack() as stack:
            readers = [stack.enter_context(connect(attacked.origin, stream, receive_buffer=4096)) for _ in range(count)]
            answers = [reader.recv(12)[-3:] for reader in readers]
            assert answers.count(b"200") == 19  # and the first one
            assert answers.count(b"429") == count - 19
            attacked.chat()
            assert attacked.grown_mib < 32
    with connect(attacked.origin, post("/api/chat/long/stop", b"", MALLORY, "connection: close")) as stopping:
        assert read_to_end(stopping).startswith(b"HTTP/1.1 204")
    until(attacked.is_rid_of_all)
