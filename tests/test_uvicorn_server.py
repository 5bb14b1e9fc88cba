"""What the command's server takes of connections: heads that are too large or never end, bodies that nobody wants."""

import time
from collections.abc import Generator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from adk_stream_protocol import uvicorn_server
from adk_stream_protocol.uvicorn_server import BoundedHttp
from support.live_server import serving
from support.raw_sockets import (
    connect,
    dead_readers,
    get,
    open_descriptors,
    post,
    read_to_end,
    send_until_cut_off,
    until,
)

KIB = 1024
SOON_S = 0.5
HUGE = 4 * KIB * KIB


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


async def refuse(request: Request) -> Response:
    return PlainTextResponse("no", 403)


async def huge(request: Request) -> Response:
    return PlainTextResponse("x" * HUGE)


@pytest.fixture(name="origin")
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    monkeypatch.setattr(uvicorn_server, "_HEAD_S", SOON_S)
    monkeypatch.setattr(uvicorn_server, "_UNREAD_S", SOON_S)
    routes: list[Any] = [
        Route("/echo", echo, methods=["POST"]),
        Route("/refuse", refuse, methods=["POST"]),
        Route("/huge", huge),
    ]
    with serving(Starlette(routes=routes), http=BoundedHttp) as origin:
        yield origin


@pytest.mark.parametrize(
    "began", [b"", b"G", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: "], ids=["nothing", "a letter", "some"]
)
def test_a_head_that_never_ends_is_given_up(origin: str, began: bytes) -> None:
    with connect(origin, began) as connection:
        assert read_to_end(connection) == b""


def test_a_second_head_that_never_ends_is_given_up(origin: str) -> None:
    with connect(origin, post("/echo", b"one") + b"GET / HTTP/1.1\r\nx-a: ") as connection:
        assert read_to_end(connection).endswith(b"one")


def test_a_head_that_comes_byte_by_byte_has_no_more_time(origin: str) -> None:
    with connect(origin, b"GET / HTTP/1.1\r\nx-a: ") as connection:
        send_until_cut_off(connection, b"a", pause_s=0.01)


@pytest.mark.parametrize("path", ["/refuse", "/nowhere"])
def test_the_rest_of_a_body_that_was_refused_has_little_time(origin: str, path: str) -> None:
    with connect(origin, post(path, b"x", length=HUGE)) as connection:
        send_until_cut_off(connection, b"x", pause_s=0.01)


def test_a_head_that_is_too_large_is_refused_before_its_end(origin: str) -> None:
    with connect(origin, b"GET / HTTP/1.1\r\nhost: x\r\nx-a: ") as connection:
        send_until_cut_off(connection, b"a" * KIB * KIB, most=50)


@pytest.mark.parametrize("size", [100 * KIB, 200 * KIB])
@pytest.mark.parametrize("where", ["path", "header", "headers"])
def test_a_head_that_is_too_large_is_refused_also_when_it_comes_at_once(origin: str, where: str, size: int) -> None:
    long = "a" * size
    many = [f"x-{number}: {'a' * 100}" for number in range(size // 100)]
    request = {"path": get(f"/{long}"), "header": get("/", f"x-a: {long}"), "headers": get("/", *many)}[where]
    with connect(origin, request) as connection:
        assert read_to_end(connection)[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400")


def test_clients_that_take_their_turns_are_served_as_long_as_they_like(origin: str) -> None:
    with connect(origin) as connection:
        for size in (1, 300 * KIB, 10, 3 * KIB * KIB):
            body = b"x" * size
            request = post("/echo", body, "connection: keep-alive", f"cookie: {'c' * 30 * KIB}")
            connection.sendall(request[: len(request) // 2])
            time.sleep(0.1)
            connection.sendall(request[len(request) // 2 :])
            told = b""
            while not told.endswith(b"\r\n\r\n" + body):
                told += connection.recv(2**16)
            assert told.startswith(b"HTTP/1.1 200")
            time.sleep(0.2)


def test_requests_that_come_together_are_answered_in_their_order(origin: str) -> None:
    requests = [post("/echo", f"<{number}>".encode() + b"x" * 100 * KIB) for number in range(5)]
    with connect(origin, b"".join(requests)) as connection:
        told = read_to_end(connection)  # until nothing more comes for a while
    assert [told.count(f"<{number}>".encode()) for number in range(5)] == [1] * 5
    assert told.index(b"<0>") < told.index(b"<4>")


def test_clients_that_never_read_are_dropped(origin: str) -> None:
    before = open_descriptors()
    with dead_readers(origin, 5, get("/huge"), get("/huge")):
        until(lambda: open_descriptors() <= before + 5)
