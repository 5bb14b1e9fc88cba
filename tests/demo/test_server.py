"""The application behind the command: what it says where the page is not built, its cookie, the names it answers to."""

import asyncio
import html
import re
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.identity import COOKIE, HeaderIdentity, LoopbackIdentity
from adk_stream_protocol.demo.server import PREFIX, build_server, build_server_of_several
from adk_stream_protocol.testing import ChatClient
from support.apps import bridge_with, model_of

NOT_BUILT = Path("nowhere")
Browser = Callable[[httpx.AsyncClient], Awaitable[Any]]


def server(bridge: ChatBridge | None = None, *, user_header: str | None = None, loopback_only: bool = True) -> FastAPI:
    identity = HeaderIdentity(user_header) if user_header else LoopbackIdentity()
    return build_server(
        bridge or bridge_with("Hello.", user_id=identity),
        identity,
        loopback_only=loopback_only,
        page=NOT_BUILT,
    )


def visit(app: FastAPI, what: Browser, origin: str = "http://127.0.0.1:8000") -> Any:
    """A browser at that origin; it keeps its cookies."""

    async def browsing() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=origin) as browser:
            return await what(browser)

    return asyncio.run(browsing())


def get_page(app: FastAPI, **headers: str) -> httpx.Response:
    return visit(app, lambda browser: browser.get("/", headers=headers))


def test_where_the_page_is_not_built_a_page_without_scripts_says_what_to_do() -> None:
    page = get_page(server())
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(rule.strip().split(" ", 1) for rule in page.headers["content-security-policy"].split(";"))
    assert policy == {"default-src": "'none'", "style-src": "'unsafe-inline'"}
    assert "<script" not in page.text


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "http://localhost:9"])
def test_that_page_names_the_address_at_which_it_is_served(origin: str) -> None:
    page = visit(server(), lambda browser: browser.get("/"), origin)
    assert set(re.findall(r"http://[\w.:]+/api/chat", page.text)) == {f"{origin}/api/chat"}


def test_the_curl_line_of_the_page_is_a_turn_that_works() -> None:
    app = server()
    example = re.search(r"<pre>(curl .*?)</pre>", get_page(app).text, re.DOTALL)
    assert example is not None
    line = html.unescape(example[1]).replace("\\\n", " ")
    curl, unbuffered, url, header_flag, header, data_flag, data = shlex.split(line)
    assert (curl, unbuffered, header_flag, data_flag) == ("curl", "-N", "-H", "-d")
    name, _, value = header.partition(": ")
    answer = visit(app, lambda browser: browser.post(url, headers={name: value}, content=data))
    assert answer.status_code == 200
    assert '"delta":"Hello."' in answer.text


def test_each_of_several_agents_answers_at_its_own_address() -> None:
    identity = LoopbackIdentity()
    bridges = {name: bridge_with(name, user_id=identity) for name in ("cook", "waiter")}
    app = build_server_of_several(bridges, identity, loopback_only=True, page=NOT_BUILT)
    turn = {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Who are you?"}]}]}
    for name in bridges:
        answer = visit(app, lambda browser, url=f"/api/{name}/chat": browser.post(url, json=turn))
        assert f'"delta":"{name}"' in answer.text
    assert visit(app, lambda browser: browser.post("/api/chat", json=turn)).status_code == 404
    assert visit(app, lambda browser: browser.get("/"), "http://cook.example").status_code == 400
    assert "/api/cook/chat" in get_page(app).text


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites() -> None:
    (cookie,) = get_page(server()).headers.get_list("set-cookie")
    value, *attributes = cookie.split("; ")
    assert value.startswith(f"{COOKIE}=visitor-")
    assert {attribute.lower() for attribute in attributes} == {"httponly", "samesite=strict", "path=/"}


def test_the_cookie_is_set_once_and_anew_where_it_is_not_ours() -> None:
    app = server()

    async def thrice(browser: httpx.AsyncClient) -> list[bool]:
        pages = [await browser.get("/"), await browser.get("/")]
        browser.cookies.clear()
        pages.append(await browser.get("/", headers={"cookie": f"{COOKIE}={LoopbackIdentity().new_cookie()}"}))
        return ["set-cookie" in page.headers for page in pages]

    assert visit(app, thrice) == [True, False, True]


async def test_visitors_of_the_page_each_have_chats_of_their_own() -> None:
    identity = LoopbackIdentity()
    bridge = bridge_with("For one.", "For the same.", "For another.", user_id=identity)
    app = build_server(bridge, identity, loopback_only=True)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as browser:
        cookies = []
        for _ in range(2):
            cookies.append((await browser.get("/")).cookies[COOKIE])
            browser.cookies.clear()
    one, another = ({"cookie": f"{COOKIE}={cookie}"} for cookie in cookies)
    await ChatClient(app, chat_id="shared", headers=one).send("first")
    await ChatClient(app, chat_id="shared", headers=one).send("second")
    await ChatClient(app, chat_id="shared", headers=another).send("third")
    seen = [
        [part.text for content in request.contents for part in content.parts or ()]
        for request in model_of(bridge).requests
    ]
    assert seen == [["first"], ["first", "For one.", "second"], ["third"]]


def test_behind_a_proxy_there_is_no_cookie_and_without_its_header_no_chat() -> None:
    app = server(user_header="x-remote-user", loopback_only=False)
    assert "set-cookie" not in get_page(app).headers
    refused = asyncio.run(ChatClient(app, headers={"x-demo-user": "eve"}).send("hi"))
    assert (refused.status, refused.error and refused.error["code"]) == (401, "no-user")
    served = asyncio.run(ChatClient(app, headers={"x-remote-user": "ann"}).send("hi"))
    assert (served.status, served.text) == (200, "Hello.")


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:8000"])
def test_on_loopback_every_name_of_this_machine_is_answered(host: str) -> None:
    assert get_page(server(), host=host).status_code == 200


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:8000", "127.0.0.1.attacker.example", "0.0.0.0"])
def test_on_loopback_a_foreign_name_is_refused_for_page_and_chat(host: str) -> None:
    bridge = bridge_with("Never said.")
    app = server(bridge)
    page = get_page(app, host=host)
    assert page.status_code == 400
    assert page.json()["error"]["code"] == "unknown-host"
    assert "start adk-stream with --host and --user-header" in page.json()["error"]["message"]
    assert "set-cookie" not in page.headers
    turn = {"id": "c", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}
    chat = visit(app, lambda browser: browser.post(PREFIX, json=turn, headers={"host": host}))
    assert chat.status_code == 400
    assert model_of(bridge).requests == []


def test_elsewhere_the_proxy_decides_which_names_are_ours() -> None:
    app = server(user_header="x-remote-user", loopback_only=False)
    assert get_page(app, host="chat.example").status_code == 200
