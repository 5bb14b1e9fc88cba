"""All live sockets of a bridge: who may open one, and how many."""

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from adk_stream_protocol import Limits
from support.live_client import Closed
from transports.live_apps import (
    LiveApp,
    Reader,
    answers_for_ever,
    live_app,
    ping,
)

pytestmark = pytest.mark.virtual_time


async def refusal(live: LiveApp, user: str = "ann", **options: Any) -> int:
    """The code of a socket that is closed without having been open."""
    client = Reader()
    async with live.socket(user, client=client, **options):
        client.tell("ping")
        with pytest.raises(Closed) as closed:
            await client.own("pong")
    assert not client.accepted
    return closed.value.code


async def no_such_user(_: HTTPConnection) -> str | None:
    return None


def login_is_down(_: HTTPConnection) -> str | None:
    raise RuntimeError


@pytest.mark.parametrize("user_id", [lambda _: None, lambda _: "", no_such_user, login_is_down])
async def test_a_user_whom_the_application_does_not_know_gets_no_socket(user_id: Any) -> None:
    async with live_app(answers_for_ever, user_id=user_id) as live:
        assert await refusal(live) == 1008


async def test_a_page_of_another_origin_is_refused_before_the_application_is_asked_for_the_user() -> None:
    asked: list[str | None] = []

    def user_id(connection: HTTPConnection) -> str:
        asked.append(connection.headers.get("origin"))
        return "ann"

    here, friend = "http://testserver", "https://friend.example"
    async with live_app(answers_for_ever, user_id=user_id, allowed_origins=[friend]) as live:
        assert await refusal(live, headers={"origin": "https://evil.example"}) == 1008
        assert asked == []
        for origin in (here, friend):
            async with live.socket(headers={"origin": origin}) as client:
                await ping(client)
        assert asked == [here, friend]


async def test_a_user_has_five_sockets_and_gets_the_place_of_a_closed_one() -> None:
    async with live_app(answers_for_ever) as live:
        first = live.socket()
        await ping(await first.__aenter__())
        async with live.socket() as second, live.socket(), live.socket(), live.socket():
            assert await refusal(live) == 1008
            async with live.socket("bob") as other:
                await ping(other)
            await ping(second)
            await first.__aexit__(None, None, None)
            async with live.socket() as sixth:
                await ping(sixth)
                assert await refusal(live) == 1008


async def test_the_number_of_sockets_is_a_limit_that_can_be_set() -> None:
    async with live_app(answers_for_ever, limits=Limits(max_sockets_per_user=1)) as live, live.socket() as client:
        await ping(client)
        assert await refusal(live) == 1008
