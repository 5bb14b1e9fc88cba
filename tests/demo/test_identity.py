"""Who a connection belongs to where nobody logs in, and where a proxy says it."""

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from adk_stream_protocol.demo.identity import COOKIE, GUEST, HeaderIdentity, LoopbackIdentity


def connection(kind: str = "http", query: str = "", **headers: str) -> HTTPConnection:
    scope: dict[str, Any] = {
        "type": kind,
        "path": "/api/chat",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()],
    }
    return HTTPConnection(scope)


def with_cookie(cookie: str, kind: str = "http", **more: str) -> HTTPConnection:
    return connection(kind, cookie=f"{COOKIE}={cookie}", **more)


def user_in(cookie: str) -> str:
    return cookie.rpartition(".")[0]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_stranger_is_the_guest(kind: str) -> None:
    assert LoopbackIdentity()(connection(kind)) == GUEST == "guest"


def test_http_names_its_user_in_a_header_and_a_websocket_in_the_query() -> None:
    identity = LoopbackIdentity()
    assert identity(connection("http", x_demo_user="ann")) == "ann"
    assert identity(connection("websocket", "user=ann")) == "ann"


def test_the_query_of_http_and_the_header_of_a_websocket_say_nothing() -> None:
    identity = LoopbackIdentity()
    assert identity(connection("http", "user=ann")) == GUEST
    assert identity(connection("websocket", x_demo_user="ann")) == GUEST


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_the_signed_cookie_is_a_user_of_its_own(kind: str) -> None:
    identity = LoopbackIdentity()
    ours, another = identity.new_cookie(), identity.new_cookie()
    users = [identity(with_cookie(cookie, kind)) for cookie in (ours, another)]
    assert users == [user_in(ours), user_in(another)]
    assert len({*users, GUEST, ""}) == 4


def test_a_name_outranks_the_cookie_unless_it_is_empty() -> None:
    identity = LoopbackIdentity()
    cookie = identity.new_cookie()
    header = f"{COOKIE}={cookie}"
    assert identity(connection("http", x_demo_user="ann", cookie=header)) == "ann"
    assert identity(connection("websocket", "user=ann", cookie=header)) == "ann"
    assert identity(connection("http", x_demo_user="", cookie=header)) == user_in(cookie)
    assert identity(connection("websocket", "user=", cookie=header)) == user_in(cookie)


def _tampered_user(cookie: str) -> str:
    return f"visitor-{'0' * 16}.{cookie.rpartition('.')[2]}"


def _tampered_signature(cookie: str) -> str:
    return cookie[:-1] + ("0" if cookie[-1] != "0" else "1")


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(_tampered_user, id="another user under the signature of one"),
        pytest.param(_tampered_signature, id="a signature with a wrong digit"),
        pytest.param(lambda cookie: cookie[:-1], id="a signature that is too short"),
        pytest.param(lambda cookie: f"{cookie}.{cookie.rpartition('.')[2]}", id="a user with something behind"),
        pytest.param(user_in, id="no signature"),
        pytest.param(lambda cookie: f"{user_in(cookie)}.", id="an empty signature"),
        pytest.param(lambda cookie: f".{cookie.rpartition('.')[2]}", id="no user"),
        pytest.param(lambda _: "", id="nothing"),
        pytest.param(lambda _: ".", id="a dot"),
        pytest.param(lambda cookie: f"{user_in(cookie)}.é", id="a letter that is no digit"),
        pytest.param(lambda _: LoopbackIdentity().new_cookie(), id="signed by another server"),
    ],
)
def test_a_cookie_that_this_server_did_not_sign_is_the_guests(forge: Any) -> None:
    identity = LoopbackIdentity()
    genuine = identity.new_cookie()
    forged = forge(genuine)
    assert identity.is_valid(genuine)
    assert not identity.is_valid(forged)
    assert identity(with_cookie(forged)) == GUEST
    assert identity(with_cookie(forged, "websocket")) == GUEST


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_behind_a_proxy_the_user_is_what_its_header_says_and_nothing_else(kind: str) -> None:
    identity = HeaderIdentity("X-Forwarded-User")
    assert identity(connection(kind, x_forwarded_user="ann")) == "ann"
    elsewhere = with_cookie(LoopbackIdentity().new_cookie(), kind, x_demo_user="eve", x_user="eve")
    assert identity(elsewhere) is None
    assert identity(connection(kind, "user=eve")) is None
