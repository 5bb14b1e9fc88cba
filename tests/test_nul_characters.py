"""Values that a database does not take: refused before anything is stored, and the chat goes on."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool

from adk_stream_protocol import ChatBridge, client_tool
from adk_stream_protocol.testing import Answer, ChatClient, Reply, ScriptedModel, call
from support.apps import app_of, user_of
from support.databases import postgres_url

databases = pytest.mark.parametrize("database", [nullcontext, postgres_url])


def locate() -> dict[str, Any]:
    """Where the user is."""
    return {}


async def pay(to: str) -> dict[str, Any]:
    """Pays."""
    return {"paid": to}


async def fetch() -> dict[str, Any]:
    """Reads a file of somebody's."""
    return {"te\0xt": "a\0b"}


class Obedient(ScriptedModel):
    """Calls the tool that it is told to."""

    def next_reply(self, request: LlmRequest) -> Reply:
        parts = request.contents[-1].parts or []
        if any(part.function_response for part in parts):
            return "Done."
        match " ".join(part.text or "" for part in parts):
            case "locate":
                return [call("locate")]
            case "pay":
                return [call("pay", to="Bob")]
            case "pay NUL":
                return [call("pay", to="B\0b")]
            case "fetch":
                return [call("fetch")]
            case _:
                return "Hello."


Talk = Callable[[ChatClient], Any]


@asynccontextmanager
async def chat_on(database: Callable[[], AbstractContextManager[str | None]]) -> AsyncGenerator[ChatClient]:
    """The chat is as good as before, whatever happens in it."""
    with database() as url:
        tools = [client_tool(locate), *(FunctionTool(tool, require_confirmation=True) for tool in (pay, fetch))]
        agent = LlmAgent(name="helper", model=Obedient([]), tools=tools)
        sessions = DatabaseSessionService(url) if url else InMemorySessionService()
        bridge = ChatBridge(agent, user_id=user_of, session_service=sessions, store=url or "memory")
        app = app_of(bridge)
        chat = ChatClient(app, chat_id="c1")
        yield chat
        assert (await chat.send("hello")).text == "Hello."
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            assert (await http.get("/api/chat/c1/messages")).status_code == 200
            assert (await http.get("/api/chat")).status_code == 200
        await bridge.aclose()
        if isinstance(sessions, DatabaseSessionService):
            await sessions.close()


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, (answer.error or {}).get("code", "")


@databases
async def test_a_text_with_a_nul_is_refused(database: Any) -> None:
    async with chat_on(database) as chat:
        assert refused(await chat.send("a\0b")) == (400, "malformed")


@databases
@pytest.mark.parametrize("output", [{"x": "a\0b"}, {"a\0b": 1}, [{"x": ["\0"]}], "\0"])
async def test_an_output_with_a_nul_is_refused_and_its_call_stays_open(database: Any, output: Any) -> None:
    async with chat_on(database) as chat:
        asked = await chat.send("locate")
        assert refused(await chat.output(asked, output)) == (422, "output-does-not-fit")
        assert (await chat.output(asked, {"x": "here"})).text == "Done."


@databases
async def test_so_is_the_text_of_a_failed_one(database: Any) -> None:
    async with chat_on(database) as chat:
        asked = await chat.send("locate")
        failed = [{**part, "state": "output-error", "errorText": "a\0b"} for part in asked.browser_calls]
        assert refused(await chat.reply(asked, failed)) == (422, "output-does-not-fit")
        assert (await chat.output(asked, {})).text == "Done."


@databases
async def test_so_are_the_words_of_a_decision(database: Any) -> None:
    async with chat_on(database) as chat:
        asked = await chat.send("pay")
        assert refused(await chat.deny(asked, "no\0")) == (400, "malformed")
        assert (await chat.approve(asked)).text == "Done."


@databases
@pytest.mark.parametrize("output", [{"x": 10**400}, {"x": -(10**4000)}, {"x": 1e308}, {"x": "\\u0000"}])
async def test_large_numbers_and_words_about_nul_are_taken(database: Any, output: Any) -> None:
    async with chat_on(database) as chat:
        assert (await chat.output(await chat.send("locate"), output)).text == "Done."


@databases
async def test_a_nul_of_the_model_s_ends_its_turn_at_most(database: Any) -> None:
    async with chat_on(database) as chat:
        asked = await chat.send("pay NUL")
        assert asked.status == 200
        if asked.approvals:
            assert (await chat.approve(asked)).status == 200


@databases
async def test_a_nul_in_the_result_of_an_approved_call_is_replaced(database: Any) -> None:
    async with chat_on(database) as chat:
        done = await chat.approve(await chat.send("fetch"))
        assert done.text == "Done."
        assert [chunk["output"] for chunk in done.of_type("tool-output-available")] == [{"te\ufffdxt": "a\ufffdb"}]
