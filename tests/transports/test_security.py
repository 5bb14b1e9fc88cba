"""Which pages may call and read, which host names a bridge serves, and what forms of other sites may not do."""

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

import pytest
from starlette.datastructures import Headers

from adk_stream_protocol import ChatBridge, ConfigurationError
from adk_stream_protocol.errors import CrossSite, UnknownHost
from adk_stream_protocol.transports.security import Access
from support.apps import app_of, bridge_with
from support.asgi import Exchange, exchange
from transports.live_apps import Reader, answers_for_ever, live_app, ping

pytestmark = pytest.mark.virtual_time

HERE = "http://app.example"
FRIEND = "https://friend.example"
PAGE = "http://localhost:3000"


def headers(**named: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in named.items()})


def ask(bridge: ChatBridge, method: str, path: str, **given: str) -> Exchange:
    sent = {"host": "app.example", **{name.replace("_", "-"): value for name, value in given.items()}}
    return asyncio.run(exchange(app_of(bridge), method=method, path=f"/api/chat{path}", headers=sent, body=b"{}"))


# -- other origins ----------------------------------------------------------------------------------------------------


def ask_from(method: str, origin: str | None, allowed: tuple[str, ...] = (PAGE,)) -> Exchange:
    headers = {"origin": origin} if origin else {}
    app = app_of(bridge_with("x", allowed_origins=allowed))
    return asyncio.run(exchange(app, method=method, headers=headers, body=b"{}"))


def test_a_named_origin_may_ask_and_read() -> None:
    preflight = ask_from("OPTIONS", PAGE)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert "POST" in preflight.headers["access-control-allow-methods"]
    for name in ("content-type", "user-agent", "authorization", "x-ai-sdk-version"):
        assert name in preflight.headers["access-control-allow-headers"]
    answer = ask_from("POST", PAGE)  # a refusal, which the page must be able to read too
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
    answer = ask_from(method, origin)
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["vary"] == "Origin"  # or a cache would hand one page's answer to another


def test_by_default_there_is_only_the_same_origin() -> None:
    answer = ask_from("OPTIONS", PAGE, allowed=())
    assert not any(name.startswith("access-control") for name in answer.headers)


# -- hosts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["app.example", "APP.example", "app.example:8000", "[::1]", "[::1]:8000", "10.0.0.1:1"]
)
def test_a_host_is_known_by_its_name_on_any_port(host: str) -> None:
    Access(hosts=["app.example", "::1", "10.0.0.1"]).refuse_unknown_host(headers(host=host))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "app.example.evil.example", "evil.app.example", "app.example.", "", "[::1", "::1", "[::2]"),
        *("app.example:80:80", "app.example:x", "app.example:", "user@app.example", "app.example/x", "app.example?x"),
        *("app.example#x", " app.example", "app.example ", "app.example, evil.example", "*", "app\\.example"),
    ],
)
def test_any_other_host_is_not(host: str) -> None:
    with pytest.raises(UnknownHost):
        Access(hosts=["app.example", "::1"]).refuse_unknown_host(headers(host=host))


@pytest.mark.parametrize("hosts", [[], ["app.example", "app.example"], ["app.example", "evil.example"]])
def test_a_host_must_be_named_once(hosts: list[str]) -> None:
    named = Headers(raw=[(b"host", host.encode()) for host in hosts])
    with pytest.raises(UnknownHost):
        Access(hosts=["app.example"]).refuse_unknown_host(named)


def test_without_a_list_every_host_is_answered() -> None:
    Access().refuse_unknown_host(headers(host="anything.example"))
    Access().refuse_unknown_host(headers())


ROUTES = [
    *(("POST", ""), ("GET", ""), ("HEAD", ""), ("GET", "/c1/stream"), ("POST", "/c1/stop"), ("GET", "/c1/messages")),
    *(("DELETE", "/c1"), ("GET", "/c1/files/a.png"), ("HEAD", "/c1/files/a.png")),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_another_host_before_the_application_is_asked_for_the_user(method: str, path: str) -> None:
    asked: list[Any] = []
    bridge = bridge_with("x", allowed_hosts=["app.example"], user_id=lambda connection: asked.append(connection))
    refused = ask(bridge, method, path, host="rebound.evil.example:8000")
    assert refused.status == 400
    if method != "HEAD":
        assert b'"code":"unknown-host"' in refused.body
    assert asked == []
    assert ask(bridge, method, path, host="app.example:8000").status == 401


async def test_a_socket_under_another_host_is_refused_and_under_ours_opened() -> None:
    async with live_app(answers_for_ever, allowed_hosts=["app.example"]) as live:
        for host in ("rebound.evil.example", "app.example.evil.example"):
            client = Reader()
            async with live.socket(client=client, headers={"host": host, "origin": f"http://{host}"}):
                await client.until(lambda c=client: c.close_code)
            assert (client.accepted, client.close_code) == (False, 1008)
        async with live.socket(headers={"host": "app.example:8000"}) as client:
            await ping(client)


# -- forms of other sites ---------------------------------------------------------------------------------------------

CROSS_SITE = [
    pytest.param({"sec_fetch_site": "cross-site", "origin": "https://evil.example"}, id="cross-site"),
    pytest.param({"sec_fetch_site": "same-site", "origin": "http://other.app.example"}, id="same-site"),
    pytest.param({"sec_fetch_site": "cross-site"}, id="cross-site-without-origin"),
    pytest.param({"sec_fetch_site": "cross-site", "origin": HERE}, id="cross-site-whatever-the-origin"),
    pytest.param({"sec_fetch_site": "same-origin, none"}, id="two-at-once"),
    pytest.param({"sec_fetch_site": ""}, id="empty"),
    pytest.param({"origin": "https://evil.example"}, id="an-older-browser"),
    pytest.param({"origin": "null"}, id="a-sandbox"),
    pytest.param({"origin": "http://app.example:81"}, id="another-port"),
]
WELCOME = [
    pytest.param({}, id="no-browser"),
    pytest.param({"origin": HERE}, id="our-origin"),
    pytest.param({"sec_fetch_site": "same-origin", "origin": HERE}, id="same-origin"),
    pytest.param(
        {"sec_fetch_site": "same-origin", "origin": "http://localhost:3000"}, id="behind-a-proxy-that-renames"
    ),
    pytest.param({"sec_fetch_site": "none"}, id="typed-by-the-user"),
    pytest.param({"sec_fetch_site": "cross-site", "origin": FRIEND}, id="a-friend"),
    pytest.param({"origin": FRIEND}, id="a-friend-in-an-older-browser"),
]


@pytest.mark.parametrize(("method", "path"), [("POST", "/c1/stop"), ("DELETE", "/c1")])
@pytest.mark.parametrize("given", CROSS_SITE)
def test_stop_and_delete_refuse_pages_of_other_sites(method: str, path: str, given: dict[str, str]) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    refused = ask(bridge_with("x", allowed_origins=[FRIEND]), method, path, **form, **given)
    assert (refused.status, b'"code":"cross-site"' in refused.body) == (403, True)


@pytest.mark.parametrize(("method", "path", "status"), [("POST", "/c1/stop", 204), ("DELETE", "/c1", 404)])
@pytest.mark.parametrize("given", WELCOME)
def test_stop_and_delete_serve_our_pages_friends_and_programs(
    method: str, path: str, status: int, given: dict[str, str]
) -> None:
    assert ask(bridge_with("x", allowed_origins=[FRIEND]), method, path, **given).status == status


def test_two_origins_are_refused() -> None:
    two = Headers(raw=[(b"host", b"app.example"), (b"origin", HERE.encode()), (b"origin", HERE.encode())])
    with pytest.raises(CrossSite):
        Access().refuse_cross_site(two)


# -- headers of preflights --------------------------------------------------------------------------------------------


def test_further_headers_may_be_allowed_beside_the_usual_ones() -> None:
    bridge = bridge_with("x", allowed_origins=[FRIEND], allowed_headers=["X-CSRF-Token", "content-type"])
    allowed = ask(bridge, "OPTIONS", "", origin=FRIEND).headers["access-control-allow-headers"].split(", ")
    assert allowed == [
        *("content-type", "user-agent", "authorization", "x-ai-sdk-version", "last-event-id"),
        *("if-none-match", "x-csrf-token"),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"allowed_headers": ["x csrf"]}, "An allowed header looks like"),
        ({"allowed_headers": ["*"]}, "An allowed header looks like"),
        ({"allowed_headers": [""]}, "An allowed header looks like"),
        ({"allowed_headers": "x-csrf"}, r"allowed_headers must be a list: allowed_headers=\['x-csrf'\]"),
        ({"allowed_hosts": ["http://app.example"]}, "An allowed host is a name"),
        ({"allowed_hosts": ["app.example:80"]}, "An allowed host is a name"),
        ({"allowed_hosts": ["APP.example"]}, "An allowed host is a name"),
        ({"allowed_hosts": ["*"]}, "An allowed host is a name"),
        ({"allowed_hosts": [""]}, "An allowed host is a name"),
        ({"allowed_hosts": "localhost"}, "allowed_hosts must be a list"),
        ({"allowed_origins": FRIEND}, "allowed_origins must be a list"),
    ],
)
def test_what_cannot_work_is_refused_at_start_up(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        bridge_with("x", **options)


# -- what the log says ------------------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if record.name == "adk_stream_protocol.transports.security"
    ]


def test_an_origin_that_is_not_allowed_is_logged_once_with_what_to_add(caplog: pytest.LogCaptureFixture) -> None:
    bridge = bridge_with("x", allowed_origins=[FRIEND])
    for method in ("OPTIONS", "POST", "GET"):
        ask(bridge, method, "", origin="http://localhost:3000")
    ask(bridge, "POST", "", origin=FRIEND)
    ask(bridge, "POST", "", origin=HERE)
    ask(bridge, "GET", "", origin="http://localhost:3000", sec_fetch_site="same-origin")
    (said,) = logged(caplog)
    assert said.startswith(
        "a page of http://localhost:3000 is not allowed; if it is yours: "
        "ChatBridge(allowed_origins=['http://localhost:3000'])"
    )


def test_a_turn_that_runs_is_not_logged_as_refused(caplog: pytest.LogCaptureFixture) -> None:
    """A page of another origin cannot send JSON without being allowed to. Whatever has sent it is no page."""
    body = {"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}
    sent = {"host": "app.example", "origin": "http://localhost:3000", "content-type": "application/json"}
    answer = asyncio.run(exchange(app_of(bridge_with("x")), headers=sent, body=json.dumps(body).encode()))
    assert answer.status == 200
    (said,) = logged(caplog)
    assert "refused" not in said


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"host": "backend:8000"}, "for the host backend:8000: if a proxy has changed that"),
        ({"host": "backend:8000", "sec_fetch_site": "cross-site"}, None),
        ({"host": "a\nb"}, None),
        ({"host": "x" * 300}, None),
    ],
)
def test_a_host_that_a_proxy_may_have_changed_is_logged(
    caplog: pytest.LogCaptureFixture, sent: dict[str, str], says: str | None
) -> None:
    assert not Access().may_open_socket(headers(origin="https://app.example", **sent))
    (said,) = logged(caplog)
    assert says in said if says else said.endswith("ChatBridge(allowed_origins=['https://app.example'])")


def test_a_refused_page_is_told_that_a_proxy_may_be_the_reason_but_no_names() -> None:
    refused = ask(bridge_with("x"), "POST", "/c1/stop", origin="https://elsewhere.example")
    assert refused.status == 403
    assert b"a proxy has changed the Host header" in refused.body
    assert b"elsewhere" not in refused.body


def test_the_refused_origin_of_a_socket_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    access = Access()
    for _ in range(2):
        assert not access.may_open_socket(headers(origin="http://localhost:3000", host="app.example"))
    assert len(logged(caplog)) == 1


def test_the_socket_of_a_page_that_is_not_of_the_web_is_logged_without_what_it_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    access = Access()
    for origin in ("null", "file://", "http://a\nb", "null"):
        assert not access.may_open_socket(headers(origin=origin, host="app.example"))
    assert logged(caplog) == [
        "a page that is not of the web (a file, a sandboxed frame) was refused: serve it over HTTP"
    ]


def test_a_refused_host_is_logged_once_with_what_to_add(caplog: pytest.LogCaptureFixture) -> None:
    access = Access(hosts=["app.example"])
    for host in ("www.app.example:8000", "WWW.app.example", "a\nb", "x" * 300, "app.example"):
        with suppress(UnknownHost):
            access.refuse_unknown_host(headers(host=host))
    assert logged(caplog) == [
        "a request to the host www.app.example was refused; if it is yours: "
        "ChatBridge(allowed_hosts=['www.app.example'])"
    ]


def test_unknown_hosts_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    access = Access(hosts=["app.example"])
    for number in range(1000):
        with suppress(UnknownHost):
            access.refuse_unknown_host(headers(host=f"evil{number}.example"))
    assert len(logged(caplog)) == 100


def test_unknown_origins_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    access = Access()
    for number in range(1000):
        access.cors_headers(headers(origin=f"http://evil{number}.example", host="app.example"))
    assert len(logged(caplog)) == 100
    fresh = Access()
    for origin in ("null", "", "http://a\nb", "http://" + "x" * 300, "evil", "http://x y"):
        fresh.cors_headers(headers(origin=origin, host="app.example"))
    assert len(logged(caplog)) == 100
