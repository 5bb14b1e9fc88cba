"""Other origins: named ones may read, all others may not."""

import asyncio

import pytest

from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange

PAGE = "http://localhost:3000"


def ask(method: str, origin: str | None, allowed: tuple[str, ...] = (PAGE,)) -> Exchange:
    headers = {"origin": origin} if origin else {}
    app = app_of(bridge_with("x", allowed_origins=allowed))
    return asyncio.run(exchange(app, method=method, headers=headers, body=b"{}"))


def test_a_named_origin_may_ask_and_read() -> None:
    preflight = ask("OPTIONS", PAGE)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert "POST" in preflight.headers["access-control-allow-methods"]
    for name in ("content-type", "user-agent", "authorization", "x-ai-sdk-version"):
        assert name in preflight.headers["access-control-allow-headers"]
    answer = ask("POST", PAGE)  # a refusal, which the page must be able to read too
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (400, PAGE)


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3001",
        "https://localhost:3000",
        "http://localhost:3000.evil.example",
        "http://evil.example",
        "HTTP://LOCALHOST:3000",
        "null",
        None,
    ],
)
@pytest.mark.parametrize("method", ["OPTIONS", "POST"])
def test_any_other_origin_may_not(origin: str | None, method: str) -> None:
    answer = ask(method, origin)
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"  # or a cache would hand one page's answer to another


def test_by_default_there_is_only_the_same_origin() -> None:
    answer = ask("OPTIONS", PAGE, allowed=())
    assert not any(name.startswith("access-control") for name in answer.headers)
