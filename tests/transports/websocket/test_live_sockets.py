"""All live sockets of a bridge: who may open one, and how many."""

from typing import Any

import pytest
from starlette.exceptions import HTTPException
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


SECRET = "canary-7d21"


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


# -- what the log says ------------------------------------------------------------------------------------------------


def refused_by_application(_: HTTPConnection) -> str:
    raise HTTPException(402, SECRET)


@pytest.mark.parametrize(
    ("options", "headers", "said"),
    [
        (
            {"user_id": lambda _: None},
            {},
            "a live socket was refused: user_id found no user. Browsers send cookies with a WebSocket, but no headers "
            "of a page such as Authorization: let user_id look at a cookie or at a query parameter, too",
        ),
        ({"user_id": refused_by_application}, {}, "a live socket was refused: user_id refused it with status 402"),
        (
            {"limits": Limits(max_sockets_per_user=0)},
            {},
            "a live socket was refused: its user has too many of them. If one user may have more: "
            "Limits(max_sockets_per_user=...)",
        ),
        (
            {},
            {"origin": "http://localhost:3000"},
            "a page of http://localhost:3000 is not allowed; if it is yours: "
            "ChatBridge(allowed_origins=['http://localhost:3000']). Its request is for the host testserver: if a proxy "
            "has changed that, let it pass the Host header on",
        ),
        (
            {"allowed_hosts": ["app.example"]},
            {},
            "a request to the host testserver was refused; if it is yours: ChatBridge(allowed_hosts=['testserver'])",
        ),
    ],
    ids=["no user", "application", "too many", "origin", "host"],
)
async def test_why_a_handshake_was_refused_is_logged_once_with_what_to_change(
    options: dict[str, Any], headers: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with live_app(answers_for_ever, **options) as live:
        for _ in range(3):
            assert await refusal(live, headers={"authorization": SECRET, "cookie": SECRET, **headers}) == 1008
    ours = [record for record in caplog.records if record.name.startswith("adk_stream_protocol")]
    assert [record.getMessage() for record in ours] == [said]
    assert SECRET not in caplog.text
