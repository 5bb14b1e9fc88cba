"""The page as the server hands it out. A small one stands in for the built one, whose names change with every build."""

import asyncio
import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from starlette.applications import Starlette
from starlette.routing import Mount

from adk_stream_protocol import client_tool
from adk_stream_protocol.demo.identity import COOKIE, LoopbackIdentity
from adk_stream_protocol.demo.server import build_server, build_server_of_several
from adk_stream_protocol.demo.web_page import PAGE, content_security_policy, is_built
from support.apps import bridge_with

INDEX = """<!doctype html><html><head><meta name="adk-api" content="api/chat" />
<meta name="adk-agent" content="" /><meta name="adk-agents" content="" /><meta name="adk-people" content="" />
<meta name="adk-browser-tools" content="" />
<script type="module" src="./assets/index-1.js"></script></head></html>"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    directory = tmp_path / "page"
    (directory / "assets").mkdir(parents=True)
    (directory / "index.html").write_text(INDEX)
    (directory / "assets" / "index-1.js").write_text("export {}")
    (directory / "assets" / "style.css").write_text("")
    (directory / ".vite").mkdir()
    (directory / ".vite" / "manifest.json").write_text("{}")
    (directory / "THIRD_PARTY_NOTICES.txt").write_text("Thanks.")
    (tmp_path / "secret.txt").write_text("secret")
    return directory


def server(page: Path, agent_name: str = "helper") -> FastAPI:
    identity = LoopbackIdentity()
    bridge = bridge_with("Hello.", user_id=identity)
    return build_server(bridge, identity, loopback_only=True, agent_name=agent_name, page=page)


def ask(app: Any, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async def asking() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as browser:
            return await browser.request(method, path, headers=headers)

    return asyncio.run(asking())


def policy_of(answer: httpx.Response) -> dict[str, str]:
    return dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))


def test_the_page_is_at_the_root_and_may_only_use_what_comes_from_here(page: Path) -> None:
    answer = ask(server(page), "/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert policy_of(answer) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "media-src": "'self' blob: data:",
        "worker-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "connect-src": "'self' ws://127.0.0.1:8000 wss://127.0.0.1:8000",
    }
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "microphone=(self)" in answer.headers["permissions-policy"]
    assert "geolocation=(self)" in answer.headers["permissions-policy"]
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("host", ["a.example; script-src *", "a b", "a,b", "", "[::1", "'self'", "a.example\n"])
def test_a_host_that_is_none_says_nothing_in_the_policy(host: str) -> None:
    assert content_security_policy(host).endswith("connect-src 'self'")


@pytest.mark.parametrize("host", ["localhost", "chat.example:8443", "[::1]:8000"])
def test_sockets_of_the_same_host_are_allowed(host: str) -> None:
    assert content_security_policy(host).endswith(f"connect-src 'self' ws://{host} wss://{host}")


def test_the_page_is_told_the_agent_s_name_and_takes_it_for_text(page: Path) -> None:
    text = ask(server(page, '"><script>alert(1)</script>'), "/").text
    assert '<meta name="adk-agent" content="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;" />' in text
    assert '<meta name="adk-api" content="api/chat" />' in text


@pytest.mark.parametrize(
    ("asked", "chosen"), [("", "cook"), ("?agent=waiter", "waiter"), ("?agent=cook", "cook"), ("?agent=%22", "cook")]
)
def test_of_several_agents_the_page_shows_the_one_that_is_asked_for(page: Path, asked: str, chosen: str) -> None:
    identity = LoopbackIdentity()
    bridges = {name: bridge_with("Hello.", user_id=identity) for name in ("cook", "waiter")}
    text = ask(build_server_of_several(bridges, identity, loopback_only=True, page=page), f"/{asked}").text
    assert f'<meta name="adk-api" content="api/{chosen}/chat" />' in text
    assert f'<meta name="adk-agent" content="{chosen}" />' in text
    assert '<meta name="adk-agents" content="[&quot;cook&quot;, &quot;waiter&quot;]" />' in text


@pytest.mark.parametrize(
    ("people", "told"), [({"max": "a manager"}, "{&quot;max&quot;: &quot;a manager&quot;}"), ({}, "")]
)
def test_the_page_lets_one_be_the_people_of_the_demo_and_nobody_else(
    page: Path, people: dict[str, str], told: str
) -> None:
    identity = LoopbackIdentity(people=people)
    app = build_server(bridge_with("Hello.", user_id=identity), identity, loopback_only=True, page=page)
    assert f'<meta name="adk-people" content="{told}" />' in ask(app, "/").text


def measure(wall: str) -> int:
    """Measure a <wall>."""
    raise AssertionError("never called")


def browser_tools_on(page_of_agent: httpx.Response) -> Any:
    found = re.search(r'<meta name="adk-browser-tools" content="(.*?)" />', page_of_agent.text)
    assert found is not None
    return json.loads(html.unescape(found[1])) if found[1] else None


def test_the_page_is_told_the_browser_tools_of_the_agent_that_is_open_and_of_those_below_it(page: Path) -> None:
    identity = LoopbackIdentity()
    helper = LlmAgent(name="helper", tools=[client_tool("scroll", "Scroll up.")])
    roots = {
        "builder": LlmAgent(name="builder", tools=[client_tool(measure), str.upper], sub_agents=[helper]),
        "cook": LlmAgent(name="cook"),
    }
    bridges = {name: bridge_with("Hello.", user_id=identity) for name in (*roots, "stranger")}
    app = build_server_of_several(bridges, identity, loopback_only=True, root_agents=roots, page=page)
    assert browser_tools_on(ask(app, "/?agent=builder")) == [
        {"name": "measure", "description": "Measure a <wall>.", "output": {"type": "integer"}},
        {"name": "scroll", "description": "Scroll up.", "output": None},
    ]
    assert browser_tools_on(ask(app, "/?agent=cook")) == []
    assert browser_tools_on(ask(app, "/?agent=stranger")) is None, "nothing is known of its tools"


def test_one_agent_s_page_is_told_its_browser_tools(page: Path) -> None:
    root = LlmAgent(name="builder", tools=[client_tool(measure)])
    bridge, identity = bridge_with("Hello."), LoopbackIdentity()
    app = build_server(bridge, identity, loopback_only=True, root_agent=root, page=page)
    assert [tool["name"] for tool in browser_tools_on(ask(app, "/"))] == ["measure"]


def test_one_agent_is_no_choice(page: Path) -> None:
    assert '<meta name="adk-agents" content="" />' in ask(server(page), "/?agent=cook").text


def test_the_page_s_visitor_gets_the_cookie_once(page: Path) -> None:
    app = server(page)
    first = ask(app, "/")
    (cookie,) = first.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} == set(cookie.split("; ")[1:])
    assert "set-cookie" not in ask(app, "/", cookie=f"{COOKIE}={first.cookies[COOKIE]}").headers


def test_assets_may_be_kept_for_ever(page: Path) -> None:
    answer = ask(server(page), "/assets/index-1.js")
    assert (answer.status_code, answer.text) == (200, "export {}")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = ask(server(page), "/assets/index-1.js", **{"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, answer.headers["cache-control"])


@pytest.mark.parametrize("path", ["/", "/assets/index-1.js", "/THIRD_PARTY_NOTICES.txt"])
def test_a_head_is_answered_like_a_get_without_its_body(page: Path, path: str) -> None:
    answer, whole = ask(server(page), path, "HEAD"), ask(server(page), path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == str(len(whole.content))


@pytest.mark.parametrize(
    "path",
    [
        "/index.html",
        "/nothing",
        "/assets/",
        "/assets/nothing.js",
        "/.vite/manifest.json",
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2findex.html",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets//etc/passwd",
        "/assets/%00",
    ],
)
def test_nothing_else_is_there(page: Path, path: str) -> None:
    answer = ask(server(page), path)
    assert answer.status_code == 404
    assert "secret" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_the_page_is_only_read(page: Path, method: str) -> None:
    assert ask(server(page), "/", method).status_code == 405
    assert ask(server(page), "/assets/index-1.js", method).status_code == 405


def test_under_a_path_prefix_the_page_and_its_assets_are_there_too(page: Path) -> None:
    app = Starlette(routes=[Mount("/my/agent", server(page))])
    answer = ask(app, "/my/agent/")
    assert answer.status_code == 200
    addresses = re.findall(r'(?:src|href|content)="([^"]*/[^"]*)"', answer.text)
    assert addresses == ["api/chat", "./assets/index-1.js"]
    for address in addresses:
        assert ask(app, str(httpx.URL("http://127.0.0.1/my/agent/").join(address).path)).status_code == 200
    assert ask(app, "/my/agent").headers["location"].endswith("/my/agent/")


def test_behind_a_proxy_that_takes_its_prefix_off_the_page_is_the_same(page: Path) -> None:
    app = server(page)
    app.root_path = "/my/agent"
    assert ask(app, "/").text == ask(server(page), "/").text
    assert ask(app, "/assets/index-1.js").status_code == 200


def test_the_notices_can_be_read(page: Path) -> None:
    answer = ask(server(page), "/THIRD_PARTY_NOTICES.txt")
    assert (answer.text, answer.headers["content-type"]) == ("Thanks.", "text/plain; charset=utf-8")


# -- the page that was built ------------------------------------------------------------------------------------------

built = pytest.mark.skipif(not is_built(PAGE), reason="the page is not built: make page")


@built
def test_the_built_page_asks_for_nothing_that_the_server_does_not_have() -> None:
    app = server(PAGE)
    html = ask(app, "/").text
    assert 'name="adk-agent" content="helper"' in html
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?://", html), "against the policy"
    wanted = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(wanted) >= 2
    for address in wanted:
        assert address.startswith("./"), "not relative"
        assert ask(app, address.removeprefix(".")).status_code == 200


@built
def test_the_notices_name_what_the_built_page_is_made_of() -> None:
    notices = (PAGE / "THIRD_PARTY_NOTICES.txt").read_text()
    for name in ("react-dom", "@ai-sdk/react", "marked", "@fontsource-variable/geist-mono", "SIL OPEN FONT LICENSE"):
        assert name in notices
