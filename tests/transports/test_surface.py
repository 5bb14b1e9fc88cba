"""What all transports share: who is asking is found out in one place."""

import asyncio
from typing import Any, cast

import pytest
from starlette.requests import HTTPConnection

from adk_stream_protocol import Limits
from adk_stream_protocol.chat.service import ChatService
from adk_stream_protocol.errors import UnknownHost
from adk_stream_protocol.transports.security import Access
from adk_stream_protocol.transports.surface import Surface
from adk_stream_protocol.transports.unfinished import UnfinishedRequests


class Service:
    limits = Limits()

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def identify(self, connection: HTTPConnection) -> str:
        self.asked.append(connection)
        return "ann"


def surface_of(service: Service) -> Surface:
    access = Access(hosts=["app.example"])
    return Surface(cast(ChatService, service), access, UnfinishedRequests(service.limits))


def connection(host: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "headers": [(b"host", host.encode())]})


def test_the_application_is_asked_for_the_user() -> None:
    service = Service()
    asking = connection("app.example:8000")
    assert asyncio.run(surface_of(service).identify(asking)) == "ann"
    assert service.asked == [asking]


def test_an_unknown_host_is_refused_before_the_application_is_asked() -> None:
    service = Service()
    with pytest.raises(UnknownHost):
        asyncio.run(surface_of(service).identify(connection("evil.example")))
    assert service.asked == []


def test_its_limits_are_those_of_the_service() -> None:
    service = Service()
    assert surface_of(service).limits is service.limits
