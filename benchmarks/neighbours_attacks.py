"""What the users of benchmarks/neighbours.py do who mean ill. Raw sockets: no client library would help them."""

import base64
import json
import os
import socket
import struct
import time
import zlib
from contextlib import suppress

UPLOADS, HEADERS, SOCKETS, READERS = 10, 4, 4, 200


def request_head(method: str, path: str, user: str, length: int | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"x-demo-user: {user}", "Connection: close"]
    if length is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def slow_uploads(port: int, end_at: float) -> None:
    """Uploads of 26 MiB that never end, a byte a second."""
    head = request_head("POST", "/api/chat", "uploader", 33_000_000)
    head += b'{"id":"c","messages":[{"role":"user","id":"m","parts":[{"type":"file","mediaType":"image/png",'
    head += b'"url":"data:image/png;base64,'
    sockets: list[socket.socket] = []
    for _ in range(UPLOADS):
        with suppress(OSError):
            upload = _connect(port)
            sockets.append(upload)
            upload.sendall(head)
            for _ in range(26):
                upload.sendall(b"A" * 2**20)
    cut = 0
    while time.time() < end_at:
        for upload in list(sockets):
            try:
                upload.sendall(b"A")
            except OSError:
                sockets.remove(upload)
                cut += 1
        time.sleep(1)
    print(f"{'':14} {cut} of {UPLOADS} uploads were cut off", flush=True)


def giant_headers(port: int, end_at: float) -> None:
    """Headers of up to 50 MiB that never end."""
    sent = 0
    while time.time() < end_at:
        sockets = [_connect(port) for _ in range(HEADERS)]
        for number, attack in enumerate(sockets):
            with suppress(OSError):
                attack.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
                for _ in range(50):
                    attack.sendall(b"a" * 2**20)
                    sent += 1
                    if time.time() > end_at:
                        break
            sockets[number].close()
        time.sleep(1)
    print(f"{'':14} {sent} MiB of headers were taken", flush=True)


def bombs(port: int, end_at: float) -> None:
    """Frames of a few kilobytes that unpack to megabytes."""
    text = json.dumps({"type": "send", "requestId": "r", "id": "c", "messages": [{"text": "a" * (3 * 2**20)}]})
    packing = zlib.compressobj(9, zlib.DEFLATED, -12)
    packed = (packing.compress(text.encode()) + packing.flush(zlib.Z_SYNC_FLUSH))[:-4]
    frame = bytes([0xC1, 0x80 | 126]) + struct.pack(">H", len(packed)) + b"\0\0\0\0" + packed
    sent = cut = 0
    sockets: list[socket.socket] = []
    while time.time() < end_at:
        while len(sockets) < SOCKETS:
            key = base64.b64encode(os.urandom(16)).decode()
            attack = _connect(port)
            attack.sendall(
                f"GET /api/chat/live?user=bomber HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n".encode()
            )
            with suppress(OSError):
                attack.recv(4096)
            sockets.append(attack)
        for attack in list(sockets):
            try:
                attack.sendall(frame)
                sent += 1
            except OSError:
                sockets.remove(attack)
                cut += 1
        time.sleep(0.05)
    print(f"{'':14} {sent} bombs were sent, {cut} sockets cut off", flush=True)


def dead_readers(port: int, end_at: float) -> None:
    """Of the answer that `flood` has got: 200 who ask for it and never read."""
    readers: list[socket.socket] = []
    for _ in range(READERS):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with suppress(OSError):
            reader.settimeout(10)
            reader.connect(("127.0.0.1", port))
            reader.sendall(request_head("GET", "/api/chat/flood/stream", "flooder"))
            readers.append(reader)
    while time.time() < end_at:
        time.sleep(0.5)
    time.sleep(20)  # clients that are gone without a word stay as long as the server lets them
    print(f"{'':14} {len(readers)} readers have asked", flush=True)


def flood(port: int) -> socket.socket:
    """An answer of 60,000 chunks that is still running. Its own work is the model's and ADK's."""
    message = {"id": "flood", "role": "user", "parts": [{"type": "text", "text": "flood"}]}
    body = json.dumps({"id": "flood", "messages": [message]}).encode()
    asking = _connect(port)
    asking.sendall(request_head("POST", "/api/chat", "flooder", len(body)) + body)
    asking.settimeout(5)
    with suppress(TimeoutError):
        while asking.recv(2**20):
            pass
    return asking
