"""A network that fails: connections through it are cut, for real, after so many bytes of their response."""

import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit


@contextmanager
def cutting(origin: str, *cuts: int | None) -> Generator[str]:
    """An origin that leads to `origin`. The n-th connection is cut after `cuts[n]` bytes; None and later ones never."""
    target = (urlsplit(origin).hostname, urlsplit(origin).port)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            number = 0
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    server = socket.create_connection(target)
                    cut = cuts[number] if number < len(cuts) else None
                    number += 1
                    Thread(target=_pump, args=(client, server, None), daemon=True).start()
                    Thread(target=_pump, args=(server, client, cut), daemon=True).start()

        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def _pump(source: socket.socket, sink: socket.socket, cut: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            if cut is not None and passed + len(data) > cut:
                sink.sendall(data[: cut - passed])
                # No orderly goodbye: with this set, closing tells the peer that the connection broke.
                sink.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
            sink.sendall(data)
            passed += len(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RD)  # wakes whoever waits for it
        one.close()
