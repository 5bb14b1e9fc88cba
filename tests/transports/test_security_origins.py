"""Which pages may open a live socket: those of our own origin, and those that are allowed by name."""

import pytest
from starlette.datastructures import Headers

from adk_stream_protocol.transports.security import Access
from transports.live_apps import Reader, answers_for_ever, live_app, ping

pytestmark = pytest.mark.virtual_time

HERE = "app.example.com"
FRIENDS = Access(origins=["https://friend.example", "http://localhost:3000"])


def headers(origins: list[str], hosts: list[str]) -> Headers:
    named = [(b"origin", origin.encode("latin-1")) for origin in origins]
    return Headers(raw=[*named, *((b"host", host.encode("latin-1")) for host in hosts)])


def may(origin: str, host: str = HERE) -> bool:
    return FRIENDS.may_open_socket(headers([origin], [host]))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        pytest.param("https://app.example.com", HERE, id="the-same"),
        pytest.param("http://app.example.com", HERE, id="the-same-without-tls"),
        pytest.param("https://app.example.com:443", HERE, id="the-port-of-https-named-there"),
        pytest.param("https://app.example.com", "app.example.com:443", id="the-port-of-https-named-here"),
        pytest.param("http://app.example.com:80", HERE, id="the-port-of-http-named-there"),
        pytest.param("http://app.example.com", "app.example.com:80", id="the-port-of-http-named-here"),
        pytest.param("http://app.example.com:8000", "app.example.com:8000", id="the-same-port"),
        pytest.param("https://app.example.com:8443", "app.example.com:8443", id="the-same-port-with-tls"),
        pytest.param("https://APP.example.com", HERE, id="a-name-in-capitals-there"),
        pytest.param("https://app.example.com", "App.Example.COM", id="a-name-in-capitals-here"),
        pytest.param("http://127.0.0.1:8000", "127.0.0.1:8000", id="an-address"),
        pytest.param("http://[::1]:8000", "[::1]:8000", id="an-ipv6-address"),
        pytest.param("http://[::1]", "[::1]", id="an-ipv6-address-without-port"),
        pytest.param("http://[2001:DB8::A]:80", "[2001:db8::a]", id="an-ipv6-address-in-capitals"),
        pytest.param("https://xn--bcher-kva.example", "xn--bcher-kva.example", id="punycode"),
        pytest.param("https://app.example.com.", "app.example.com.", id="a-dot-behind-both"),
        pytest.param("https://friend.example", HERE, id="a-friend"),
        pytest.param("http://localhost:3000", HERE, id="a-friend-with-a-port"),
        pytest.param("http://localhost:3000", "127.0.0.1:8000", id="a-friend-on-this-machine"),
    ],
)
def test_these_pages_may(origin: str, host: str) -> None:
    assert may(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        pytest.param("https://evil.example", HERE, id="another-name"),
        pytest.param("https://example.com", HERE, id="the-domain-above"),
        pytest.param("https://www.example.com", HERE, id="a-sibling"),
        pytest.param("https://evil.app.example.com", HERE, id="a-subdomain"),
        pytest.param("https://app.example.com.evil.example", HERE, id="our-name-in-front"),
        pytest.param("https://app.example.com-evil.example", HERE, id="our-name-in-front-of-a-dash"),
        pytest.param("https://evilapp.example.com", HERE, id="our-name-at-the-end"),
        pytest.param("https://evil-app.example.com", HERE, id="our-name-behind-a-dash"),
        pytest.param("https://app.example.co", HERE, id="half-our-name"),
        pytest.param("https://app.example.com:8443", HERE, id="another-port"),
        pytest.param("http://app.example.com:443", HERE, id="the-port-of-the-other-scheme"),
        pytest.param("https://app.example.com", "app.example.com:80", id="we-on-the-port-of-http"),
        pytest.param("https://app.example.com", "app.example.com:8443", id="we-on-another-port"),
        pytest.param("https://app.example.com:", "app.example.com:8443", id="an-empty-port"),
        pytest.param("https://app.example.com:x", HERE, id="a-port-that-is-none"),
        pytest.param("https://app.example.com:99999", HERE, id="a-port-too-high"),
        pytest.param("https://app.example.com:-443", HERE, id="a-port-too-low"),
        pytest.param("null", HERE, id="null"),
        pytest.param("null", "null", id="null-on-a-host-of-that-name"),
        pytest.param("", HERE, id="nothing"),
        pytest.param("", "", id="nothing-on-nothing"),
        pytest.param("https://", "", id="no-name"),
        pytest.param("app.example.com", HERE, id="no-scheme"),
        pytest.param("//app.example.com", HERE, id="an-empty-scheme"),
        pytest.param("ws://app.example.com", HERE, id="the-scheme-of-sockets"),
        pytest.param("wss://app.example.com", HERE, id="the-scheme-of-safe-sockets"),
        pytest.param("file://app.example.com", HERE, id="a-file"),
        pytest.param("chrome-extension://app.example.com", HERE, id="an-extension"),
        pytest.param("HTTPS://app.example.com", HERE, id="a-scheme-in-capitals"),
        pytest.param("https://app.example.com/", HERE, id="a-slash"),
        pytest.param("https://app.example.com/path", HERE, id="a-path"),
        pytest.param("https://app.example.com?q", HERE, id="a-query"),
        pytest.param("https://app.example.com#f", HERE, id="a-fragment"),
        pytest.param("https://evil.example/https://app.example.com", HERE, id="our-name-in-the-path"),
        pytest.param("https://evil.example#app.example.com", HERE, id="our-name-in-the-fragment"),
        pytest.param("https://evil.example\\app.example.com", HERE, id="a-backslash"),
        pytest.param("https://app.example.com@evil.example", HERE, id="our-name-as-a-user"),
        pytest.param("https://user@app.example.com", HERE, id="a-user"),
        pytest.param("https://user:pass@app.example.com", HERE, id="a-user-with-a-password"),
        pytest.param("https://@app.example.com", HERE, id="an-empty-user"),
        pytest.param("https://app.example.com.", HERE, id="a-dot-behind-it"),
        pytest.param("https://app.example.com", "app.example.com.", id="a-dot-behind-us"),
        pytest.param(" https://app.example.com", HERE, id="a-space-before"),
        pytest.param("https://app.example.com ", HERE, id="a-space-behind"),
        pytest.param("https://app.exam\tple.com", HERE, id="a-tab-inside"),
        pytest.param("https://app.example.com\r", HERE, id="a-carriage-return"),
        pytest.param("https://app%2eexample.com", HERE, id="an-escaped-dot"),
        pytest.param("https://app.example.com%00.evil.example", HERE, id="an-escaped-nul"),
        pytest.param("https://app.example.com, https://evil.example", HERE, id="two-in-one"),
        pytest.param("https://app.example.com https://evil.example", HERE, id="two-with-a-space"),
        pytest.param("https://bücher.example", "xn--bcher-kva.example", id="the-name-that-punycode-means"),
        pytest.param("https://\xe4pp.example.com", HERE, id="a-letter-like-ours"),
        pytest.param("http://127.0.0.1", "localhost", id="an-address-for-a-name"),
        pytest.param("http://2130706433", "127.0.0.1", id="an-address-as-a-number"),
        pytest.param("http://127.1", "127.0.0.1", id="a-short-address"),
        pytest.param("http://[::ffff:127.0.0.1]", "127.0.0.1", id="an-address-inside-ipv6"),
        pytest.param("http://[::1]:8000", "[::1]:8001", id="another-port-of-ipv6"),
        pytest.param("http://[::2]", "[::1]", id="another-ipv6-address"),
        pytest.param("http://[::1", "[::1]", id="half-a-bracket"),
        pytest.param("http://[::1]", "[::1", id="half-a-bracket-here"),
        pytest.param("http://::1", "[::1]", id="ipv6-without-brackets"),
        pytest.param("https://friend.example:444", HERE, id="a-friend-on-another-port"),
        pytest.param("http://friend.example", HERE, id="a-friend-without-tls"),
        pytest.param("https://sub.friend.example", HERE, id="below-a-friend"),
        pytest.param("https://FRIEND.example", HERE, id="a-friend-in-capitals"),
        pytest.param("https://friend.example.", HERE, id="a-friend-with-a-dot"),
        pytest.param("https://friend.example/", HERE, id="a-friend-with-a-slash"),
    ],
)
def test_these_pages_may_not(origin: str, host: str) -> None:
    assert not may(origin, host)


def test_a_program_that_sends_no_origin_may() -> None:
    assert FRIENDS.may_open_socket(headers([], [HERE]))


@pytest.mark.parametrize(
    "origins",
    [
        ["https://app.example.com", "https://evil.example"],
        ["https://evil.example", "https://app.example.com"],
        ["https://app.example.com", "https://app.example.com"],
        ["https://friend.example", "https://friend.example"],
    ],
)
def test_a_request_with_two_origins_may_not(origins: list[str]) -> None:
    assert not FRIENDS.may_open_socket(headers(origins, [HERE]))


@pytest.mark.parametrize("hosts", [[], [HERE, "evil.example"], ["evil.example", HERE], [HERE, HERE]])
def test_where_we_are_must_be_clear_unless_the_page_is_allowed_by_name(hosts: list[str]) -> None:
    assert not FRIENDS.may_open_socket(headers(["https://app.example.com"], hosts))
    assert FRIENDS.may_open_socket(headers(["https://friend.example"], hosts))


def test_without_friends_there_is_only_our_own_origin() -> None:
    assert Access().may_open_socket(headers(["https://app.example.com"], [HERE]))
    assert not Access().may_open_socket(headers(["https://friend.example"], [HERE]))


async def test_the_socket_asks_these_questions() -> None:
    async with live_app(answers_for_ever, allowed_origins=["https://friend.example"]) as live:
        for origin in ("http://testserver", "http://testserver:80", "https://friend.example"):
            async with live.socket(headers={"origin": origin}) as client:
                await ping(client)
        for origin in ("null", "", "http://testserver:81", "http://testserver.", "https://friend.example/"):
            client = Reader()
            async with live.socket(client=client, headers={"origin": origin}):
                await client.until(lambda c=client: c.close_code)
            assert (client.accepted, client.close_code) == (False, 1008)
