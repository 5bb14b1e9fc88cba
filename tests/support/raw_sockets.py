"""Clients that do with their sockets as they like, and what is open because of them."""

import base64
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

PATIENCE_S = 60  # only for what never comes


def connect(origin: str, data: bytes = b"", *, receive_buffer: int | None = None) -> socket.socket:
    target = urlsplit(origin)
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(PATIENCE_S)
    connection.connect((target.hostname, target.port))
    connection.sendall(data)
    return connection


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "host: 127.0.0.1", *headers, "", ""]).encode()


def post(path: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    """`length`: what is announced, if it is not what comes."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {length or len(body)}", "", ""]).encode() + body


def turn(chat_id: str, said: str) -> bytes:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": said}]}
    return json.dumps({"id": chat_id, "messages": [message]}).encode()


def upgrade(path: str, *headers: str) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", "host: 127.0.0.1", "connection: Upgrade", "upgrade: websocket"]
    return "\r\n".join([*lines, "sec-websocket-version: 13", f"sec-websocket-key: {key}", *headers, "", ""]).encode()


def frame(payload: bytes | dict[str, Any], first_byte: int = 0x81) -> bytes:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    length = struct.pack(">BH", 0xFE, len(data)) if len(data) < 2**16 else struct.pack(">BQ", 0xFF, len(data))
    return bytes([first_byte]) + length + bytes(4) + data


def read_to_end(connection: socket.socket) -> bytes:
    """Until the server has closed, in whatever way."""
    data = b""
    try:
        while piece := connection.recv(2**16):
            data += piece
    except ConnectionError:
        pass
    return data


def send_until_cut_off(connection: socket.socket, data: bytes, *, pause_s: float = 0, most: int = 10_000) -> None:
    for _ in range(most):
        try:
            connection.sendall(data)
        except ConnectionError:
            return
        time.sleep(pause_s)
    raise AssertionError("all of it was taken")


def open_descriptors(process_id: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{process_id}/fd"))


def resident_bytes(process_id: int | str = "self") -> int:
    with open(f"/proc/{process_id}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def until(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


@contextmanager
def dead_readers(origin: str, count: int, request: bytes, *more: bytes) -> Generator[list[socket.socket]]:
    """Clients that ask, and do not read what they are told. They send `more` when the server has begun to answer."""
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(origin, request, receive_buffer=4096)) for _ in range(count)]
        for reader in readers:
            assert reader.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 101")
            reader.sendall(b"".join(more))
        yield readers
