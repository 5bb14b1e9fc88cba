"""Credentials: the page opens the consent address, the application gets the answer, and nobody else sees a token."""

import asyncio
import json
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.openapi.models import APIKey, APIKeyIn, OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset

from adk_stream_protocol import NotFound, client_tool
from adk_stream_protocol.testing import Answer, call
from chat.test_completions import at_rest, is_told, parts
from live.live_pages import both_families, live_page
from support.canary import CANARY
from support.pages import Page, page, results_told

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning")  # ADK's own

SECRET = f"secret-{CANARY}"
CODE, TOKEN, KEY = f"code-{CANARY}", f"token-{CANARY}", f"key-{CANARY}"
CALLBACK = "https://app.example/oauth/callback"


class TokenEndpoint(BaseHTTPRequestHandler):
    codes: list[str]

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.codes.append(body["code"][0])
        answer = json.dumps({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Provider:
    """Who gives tokens for codes."""

    def __init__(self, address: str, codes: list[str]) -> None:
        self.address = address
        self.codes = codes

    def config(self) -> AuthConfig:
        endpoints = {
            "authorizationUrl": "https://id.example/consent",
            "tokenUrl": self.address,
            "scopes": {"read": ""},
        }
        flows = OAuthFlows(authorizationCode=OAuthFlowAuthorizationCode.model_validate(endpoints))
        oauth2 = OAuth2Auth(client_id="us", client_secret=SECRET, redirect_uri=CALLBACK)
        credential = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=oauth2)
        return AuthConfig(auth_scheme=OAuth2(flows=flows), raw_auth_credential=credential, credential_key="calendar")


@pytest.fixture
def provider() -> Iterator[Provider]:
    codes: list[str] = []
    handler = type("Endpoint", (TokenEndpoint,), {"codes": codes})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Provider(f"http://127.0.0.1:{server.server_port}/token", codes)
        server.shutdown()


class Calendar:
    def __init__(self, config: AuthConfig) -> None:
        self.config = config
        self.tokens: list[str | None] = []

    async def read_calendar(self, tool_context: ToolContext) -> dict[str, str]:
        """Needs consent."""
        credential = await asyncio.to_thread(tool_context.get_auth_response, self.config)
        if credential is None:
            tool_context.request_credential(self.config)
            return {"status": "waits for consent"}
        self.tokens.append(credential.oauth2.access_token if credential.oauth2 else credential.api_key)
        return {"events": "none"}


def callback_of(answer: Answer) -> str:
    address = answer.of_type("data-adk-auth-request")[0]["data"]["authUri"]
    [state] = parse_qs(urlsplit(address).query)["state"]
    return f"{CALLBACK}?state={state}&code={CODE}"


async def nothing_leaks(at: Page, caplog: pytest.LogCaptureFixture, *answers: Answer) -> None:
    records = (await at.chat.bridge._service._store.read(("helper", "ann", "c1"))).records  # pyright: ignore
    seen = [
        await at.chat.messages(),
        [answer.raw for answer in answers],
        list(await at.chat.bridge.audit("ann", "c1")),
        records,
        await at.chat.bridge.chats("ann"),
        [record.getMessage() for record in caplog.records if not record.name.startswith(("google_adk", "authlib"))],
    ]
    assert CANARY not in repr(seen)


async def test_consent_runs_the_tool_again_and_tells_nobody_the_token(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    calendar = Calendar(provider.config())
    async with page([call("read_calendar")], "You are free.", tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        assert request["data"]["toolCallId"] == at.part("read_calendar")["toolCallId"]
        assert request["data"]["authUri"].startswith("https://id.example/consent?")
        assert at.part("read_calendar")["preliminary"] is True  # it waits for consent: it is not done
        assert [chat["waiting"] for chat in await at.chat.bridge.chats("ann")] == [True]
        await at.is_what_a_reload_shows()
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        [part] = parts(await is_told(at, "You are free."), "read_calendar")
        assert (part["output"], part.get("preliminary")) == ({"events": "none"}, None)
        assert (calendar.tokens, provider.codes) == ([TOKEN], [CODE])
        assert results_told(at.chat.model)[-1] == {"events": "none"}
        assert len(await at.chat.messages()) == 2
        await at_rest(at)
        assert [chat["waiting"] for chat in await at.chat.bridge.chats("ann")] == [False]
        await nothing_leaks(at, caplog, asked)


@pytest.mark.parametrize(
    ("user", "query"),
    [("eve", None), ("ann", "state=other&code=x"), ("ann", "code=x"), ("ann", ""), ("ann", "state=&code=x")],
)
async def test_only_the_owner_s_own_state_counts(provider: Provider, user: str, query: str | None) -> None:
    calendar = Calendar(provider.config())
    async with page([call("read_calendar")], tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth(user, callback_of(asked) if query is None else f"{CALLBACK}?{query}")
        assert calendar.tokens == []


async def test_a_callback_counts_once(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page([call("read_calendar")], "Free.", tools=(FunctionTool(calendar.read_calendar),)) as at:
        callback = callback_of(await at.say("Am I free?"))
        attempts = [at.chat.bridge.complete_auth("ann", callback) for _ in range(3)]
        outcomes = await asyncio.gather(*attempts, return_exceptions=True)
        assert all(outcome is None or isinstance(outcome, NotFound) for outcome in outcomes)
        await is_told(at, "Free.")
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth("ann", callback)
        await at_rest(at)
        assert calendar.tokens == [TOKEN]


async def test_a_page_cannot_post_a_credential(provider: Provider) -> None:
    calendar = Calendar(provider.config())
    async with page([call("read_calendar")], tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        claimed = {
            "type": "tool-adk_request_credential",
            "toolCallId": request["id"],
            "state": "output-available",
            "output": {"accessToken": "forged"},
        }
        at.messages[-1]["parts"].append(claimed)
        assert (await at.answer()).status == 404
        assert calendar.tokens == []


async def test_an_api_key_comes_from_the_application(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scheme = APIKey.model_validate({"type": "apiKey", "in": APIKeyIn.header, "name": "x-key"})
    raw = AuthCredential(auth_type=AuthCredentialTypes.API_KEY)
    calendar = Calendar(AuthConfig(auth_scheme=scheme, raw_auth_credential=raw, credential_key="calendar"))
    async with page([call("read_calendar")], "Free.", tools=(FunctionTool(calendar.read_calendar),)) as at:
        asked = await at.say("Am I free?")
        [request] = asked.of_type("data-adk-auth-request")
        with pytest.raises(NotFound):
            await at.chat.bridge.complete_auth("eve", request_id=request["id"], api_key=KEY)
        await at.chat.bridge.complete_auth("ann", request_id=request["id"], api_key=KEY)
        await is_told(at, "Free.")
        await at_rest(at)
        assert calendar.tokens == [KEY]
        await nothing_leaks(at, caplog, asked)


class Toolset(BaseToolset):
    def __init__(self, config: AuthConfig) -> None:
        super().__init__()
        self._config = config

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return []

    def get_auth_config(self) -> AuthConfig:
        return self._config


async def test_a_toolset_that_needs_consent_goes_on_after_it(provider: Provider) -> None:
    async with page("Ready.", tools=(Toolset(provider.config()),)) as at:
        asked = await at.say("Hello.")
        [request] = asked.of_type("data-adk-auth-request")
        assert "toolCallId" not in request["data"]
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await is_told(at, "Ready.")
        assert provider.codes == [CODE]


async def test_consent_leaves_what_else_waits(provider: Provider) -> None:
    def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    calendar = Calendar(provider.config())
    tools = FunctionTool(calendar.read_calendar), client_tool(where)
    async with page([call("read_calendar"), call("where")], "Free there.", tools=tools) as at:
        asked = await at.say("Am I free here?")
        await at.chat.bridge.complete_auth("ann", callback_of(asked))
        await at_rest(at)
        assert calendar.tokens == [TOKEN]
        assert parts(await at.chat.messages(), "where")[0]["state"] == "input-available"


@both_families
@pytest.mark.virtual_time
async def test_a_live_session_whose_toolset_needs_consent_says_so(provider: Provider, family: str) -> None:
    async with live_page("Ready.", family=family, tools=(Toolset(provider.config()),)) as at:
        told = await at.say("Hello.")
        assert told.types[-1] == "error"
        assert told.chunks[-1]["errorText"].startswith("This agent needs your consent for its tools")
        assert "data-adk-auth-request" not in str(await at.chat.messages())


async def test_half_an_answer_is_refused() -> None:
    async with page() as at:
        for options in ({}, {"callback_url": "x", "api_key": "y"}, {"request_id": "x"}):
            with pytest.raises(ValueError, match="Give either callback_url, or request_id and api_key"):
                await at.chat.bridge.complete_auth("ann", **options)
