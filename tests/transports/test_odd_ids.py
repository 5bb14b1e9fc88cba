"""Ids and names as odd as a client may choose them: they mean the same on every route, or they are not found."""

from urllib.parse import quote

import pytest
from fastapi import FastAPI
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol.testing import call
from support.conversations import Store, conversation, every_store


async def draw(tool_context: ToolContext) -> dict[str, bool]:
    """Draws."""
    await tool_context.save_artifact("map.png", types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png"))
    return {"drawn": True}


ODD_IDS = ["チャット-1", "👩", "a?b", "a#b", "a%20b", "50%", "a+b&c=d;e", "a@b", "~'\"<>", "messages"]


@pytest.mark.parametrize("chat_id", ODD_IDS)
async def test_a_chat_with_an_odd_id_is_the_same_on_every_route(chat_id: str) -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,), chat_id=chat_id) as chat:
        answer = await chat.say("Draw.")
        assert answer.chunks[-1]["type"] == "finish"
        assert [entry["id"] for entry in await chat.chats()] == [chat_id]
        url = answer.of_type("file")[0]["url"]
        assert [part["url"] for part in (await chat.messages())[1]["parts"] if part["type"] == "file"] == [url]
        assert (await chat.fetch("GET", url)).content == b"\x89PNG"
        assert (await chat.request("GET", "/stream")).status_code == 204
        assert await chat.stop() == 204
        assert (await chat.request("DELETE")).status_code == 204
        assert await chat.chats() == []


@pytest.mark.parametrize("chat_id", ["a:b", "user"])
async def test_an_id_under_which_adk_keeps_no_files_is_refused_before_a_tool_fails_over_it(chat_id: str) -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,), chat_id=chat_id) as chat:
        answer = await chat.say("Draw.")
        assert answer.status == 400 or answer.chunks[-1]["type"] == "finish"


@every_store
@pytest.mark.parametrize("chat_id", ["a b", "\x00", "..", "%", "\u202e", "x" * 2000, "' OR 1=1 --"])
async def test_an_id_that_no_chat_can_have_is_not_found(store: Store, chat_id: str) -> None:
    async with conversation(store=store) as chat:
        address = f"/{quote(chat_id, safe='').replace('.', '%2E')}"
        for method, path, status in (
            ("GET", "/messages", 404),
            ("GET", "/stream", 204),
            ("POST", "/stop", 204),
            ("DELETE", "", 404),
            ("GET", "/files/map.png", 404),
        ):
            response = await chat.request_root(method, f"{address}{path}")
            assert response.status_code == status, (method, path)


@pytest.mark.parametrize("name", ["..", "../map.png", "\x00", "C:map.png", "user:map.png", "a\\b", "%", " "])
async def test_a_name_that_no_file_can_have_is_not_found(name: str) -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,)) as chat:
        await chat.say("Draw.")
        address = quote(name, safe="").replace(".", "%2E")
        for version in ("", "?version=0"):
            assert (await chat.request("GET", f"/files/{address}{version}")).status_code == 404


async def test_the_files_of_a_mounted_application_are_found_too() -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,)) as chat:
        outer = FastAPI()
        outer.mount("/inner", chat.app)
        chat.app = outer
        chat.prefix = "/inner/api/chat"
        answer = await chat.say("Draw.")
        url = answer.of_type("file")[0]["url"]
        assert url == "/inner/api/chat/c1/files/map.png?version=0"
        assert [part["url"] for part in (await chat.messages())[1]["parts"] if part["type"] == "file"] == [url]
        assert (await chat.fetch("GET", url)).content == b"\x89PNG"
