"""The application's own functions: what they refuse with, and what becomes of what they raise."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import HTTPException
from starlette.requests import HTTPConnection

from adk_stream_protocol import ChatBridge, NotFound
from adk_stream_protocol.testing import Answer, ChatClient
from support.apps import app_of, bridge_with, model_of
from support.asgi import exchange
from transports.live_apps import Reader, answers_for_ever, live_app

pytestmark = pytest.mark.virtual_time

SECRET = "token-4711"
INTERNAL = {"code": "internal", "message": "The server failed. Try again."}
NO_USER = {"code": "no-user", "message": "Sign in first."}


def turn(bridge: ChatBridge) -> Answer:
    return asyncio.run(ChatClient(app_of(bridge)).send("hi"))


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name.startswith("adk_stream_protocol") and record.levelno >= level
    ]


def raising(error: BaseException) -> Callable[..., Any]:
    def hook(*_: Any) -> Any:
        raise error

    return hook


def raising_later(error: BaseException) -> Callable[..., Any]:
    async def hook(*_: Any) -> Any:
        await asyncio.sleep(0)
        raise error

    return hook


both = pytest.mark.parametrize("hook", [raising, raising_later])


# -- who is asking ----------------------------------------------------------------------------------------------------


@both
def test_an_exception_of_user_id_is_a_warning_with_its_place_and_nothing_of_its_text(
    hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    refused = turn(bridge_with("x", user_id=hook(ConnectionError(SECRET))))
    assert (refused.status, refused.error) == (401, NO_USER)
    ((level, message),) = logged(caplog, logging.WARNING)
    assert level == "WARNING"
    assert message.startswith(f"user_id failed, so nobody is signed in: ConnectionError in {__file__}, line ")
    assert SECRET not in caplog.text


def test_the_place_is_the_line_of_the_application_s_own_function(caplog: pytest.LogCaptureFixture) -> None:
    def deep() -> str:
        return str(int(SECRET))

    def user_id(_: HTTPConnection) -> str:
        return deep()

    turn(bridge_with("x", user_id=user_id))
    assert logged(caplog)[0][1].endswith(f"ValueError in {__file__}, line {user_id.__code__.co_firstlineno + 1}")


def test_a_function_that_cannot_even_be_called_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    assert turn(bridge_with("x", user_id=int)).status == 401  # a builtin does not tell its parameters at the start
    assert "TypeError in " in logged(caplog)[0][1]


@pytest.mark.parametrize("user", [7, 0, b"ann", ["ann"], {"id": SECRET}, True, False])
def test_a_user_id_that_is_no_string_is_a_mistake_of_the_application_s(
    user: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = bridge_with("x", user_id=lambda _: user)
    refused = turn(bridge)
    assert (refused.status, refused.error) == (500, INTERNAL)
    kind = type(user).__name__
    assert logged(caplog) == [("ERROR", f"user_id must return a str or None, not {kind}: nobody is served")]
    assert asyncio.run(exchange(app_of(bridge), method="GET")).status == 500
    assert model_of(bridge).requests == []


@pytest.mark.parametrize("user", [None, ""])
def test_nobody_is_nobody_without_a_word_in_the_log(user: str | None, caplog: pytest.LogCaptureFixture) -> None:
    refused = turn(bridge_with("x", user_id=lambda _: user))
    assert (refused.status, refused.error) == (401, NO_USER)
    assert logged(caplog) == []


@both
def test_user_id_may_refuse_with_a_status_and_words_of_its_own(hook: Any, caplog: pytest.LogCaptureFixture) -> None:
    refused = turn(bridge_with("x", user_id=hook(HTTPException(403, "Your account is suspended."))))
    assert (refused.status, refused.error) == (403, {"code": "refused", "message": "Your account is suspended."})
    assert logged(caplog) == []


@pytest.mark.parametrize("user_id", [lambda _: 7, raising(HTTPException(403)), raising(ValueError(SECRET))])
async def test_a_socket_is_not_opened_for_any_of_them(user_id: Any) -> None:
    async with live_app(answers_for_ever, user_id=user_id) as live:
        client = Reader()
        async with live.socket(client=client):
            await client.until(lambda: client.close_code)
        assert (client.accepted, client.close_code) == (False, 1008)


# -- what a turn runs with --------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        (HTTPException(403, "This tenant is suspended."), 403, "This tenant is suspended."),
        (HTTPException(402), 402, "Payment Required"),
        (HTTPException(429, {"secret": SECRET}), 429, "The request was refused."),
        (HTTPException(503, "Later."), 503, "Later."),
        (HTTPException(302, "Elsewhere."), 500, "Elsewhere."),
    ],
)
def test_prepare_may_refuse_with_a_status_and_words_of_its_own(
    hook: Any, raised: HTTPException, status: int, message: str
) -> None:
    bridge = bridge_with("x", prepare=hook(raised))
    refused = turn(bridge)
    assert (refused.status, refused.error) == (status, {"code": "refused", "message": message})
    assert model_of(bridge).requests == []


def test_prepare_may_raise_a_refusal_of_ours() -> None:
    assert turn(bridge_with("x", prepare=raising(NotFound()))).status == 404


@both
def test_anything_else_that_prepare_raises_is_our_fault_and_no_leak(
    hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = turn(bridge_with("x", prepare=hook(KeyError(SECRET))))
    assert (refused.status, refused.error) == (500, INTERNAL)
    ((level, message),) = logged(caplog, logging.WARNING)
    assert (level, message.startswith(f"prepare failed: KeyError in {__file__}, line ")) == ("ERROR", True)
    assert SECRET not in message
