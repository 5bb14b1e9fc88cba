"""The routes beside the turn: list, history, stop, resume, delete, files. Whose they are, and what strangers learn."""

import asyncio
import time
from datetime import datetime
from typing import Any

import httpx
import pytest
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types
from starlette.requests import HTTPConnection

from adk_stream_protocol import Limits
from adk_stream_protocol.chat import service
from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.base import Acquired
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.conversations import Store, conversation, every_store, hanging

NOT_FOUND = {"error": {"code": "not-found", "message": NotFound.public_text}}


def signed_in(connection: HTTPConnection) -> str | None:
    """Everybody but `anonymous`."""
    user = connection.headers["x-user"]
    return None if user == "anonymous" else user


async def draw(tool_context: ToolContext) -> dict[str, bool]:
    """Draws."""
    await tool_context.save_artifact("map.png", types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png"))
    return {"drawn": True}


def observed(response: httpx.Response) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
    """All that somebody outside can tell one answer from another by."""
    return response.status_code, response.content, sorted(response.headers.raw)


# method, path below the chat's address, and the status for: its owner; another user, and also for a chat that is not
ROUTES = [
    pytest.param("GET", "/messages", 200, 404, id="messages"),
    pytest.param("GET", "/files/map.png", 200, 404, id="file"),
    pytest.param("GET", "/files/map.png?version=0", 200, 404, id="file version"),
    pytest.param("GET", "/audit", 200, 404, id="audit"),
    pytest.param("GET", "/stream", 204, 204, id="resume"),
    pytest.param("POST", "/stop", 204, 204, id="stop"),
    pytest.param("DELETE", "", 204, 404, id="delete"),
]


@pytest.mark.parametrize(("method", "path", "own", "strange"), ROUTES)
async def test_a_foreign_chat_and_one_that_never_was_answer_alike(
    method: str, path: str, own: int, strange: int
) -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,)) as chat:
        await chat.say("Draw.")
        kept = await chat.messages()
        foreign = await chat.of(user="bob").request(method, path)
        unknown = await chat.of(user="bob", chat_id="c9").request(method, path)
        assert observed(foreign) == observed(unknown)
        assert foreign.status_code == strange
        assert observed(await chat.of(chat_id="c9").request(method, path)) == observed(unknown)
        if strange == 404:
            assert foreign.json() == NOT_FOUND
        assert await chat.messages() == kept
        assert (await chat.request(method, path)).status_code == own


@pytest.mark.parametrize(("method", "path"), [("GET", None), *(p.values[:2] for p in ROUTES)])
async def test_nobody_learns_nothing(method: str, path: str | None) -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,), user_id=signed_in) as chat:
        await chat.say("Draw.")
        kept = await chat.messages()
        answers = []
        for chat_id in ("c1", "c9"):
            nobody = chat.of(user="anonymous", chat_id=chat_id)
            answers.append(await (nobody.request_root(method) if path is None else nobody.request(method, path)))
        assert [answer.status_code for answer in answers] == [401, 401]
        assert answers[0].json()["error"]["code"] == "no-user"
        assert observed(answers[0]) == observed(answers[1])
        assert await chat.messages() == kept


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("HEAD", "/c1/stop"),
        ("POST", "/c1/messages"),
        ("GET", "/c1/stop"),
        ("POST", "/c1/stream"),
        ("GET", "/c1"),
        ("PUT", "/c1"),
        ("POST", "/c1/files/map.png"),
        ("DELETE", ""),
        ("PUT", ""),
        ("HEAD", "/c1"),
    ],
)
async def test_any_other_method_is_not_allowed(method: str, path: str) -> None:
    async with conversation() as chat:
        assert (await chat.request_root(method, path)).status_code == 405


# -- the list ---------------------------------------------------------------------------------------------------------


@every_store
async def test_the_list_has_the_caller_s_chats_the_newest_first(store: Store) -> None:
    async with conversation(*["Hello."] * 5, store=store) as chat:
        assert await chat.chats() == []
        await chat.of(chat_id="old").say("  The first\n chat ")
        await chat.of(chat_id="new").say("The second chat")
        await chat.of(chat_id="foreign", user="bob").say("Not yours")
        listed = await chat.chats()
        assert [(entry["id"], entry["title"], entry["waiting"]) for entry in listed] == [
            ("new", "The second chat", False),
            ("old", "The first chat", False),
        ]
        assert all(entry.keys() == {"id", "title", "updatedAt", "waiting"} for entry in listed)
        again = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "And again"}]}
        await chat.post({"id": "old", "messages": [again]})
        assert [entry["id"] for entry in await chat.chats()] == ["old", "new"]
        assert [entry["id"] for entry in await chat.of(user="bob").chats()] == ["foreign"]


@every_store
async def test_a_chat_was_updated_when_its_last_event_came_wherever_the_server_stands(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            async with conversation("Hello.", store=store) as chat:
                await chat.say("hi")
                session = await chat.session()
                assert session
                (listed,) = await chat.chats()
                assert listed["updatedAt"].endswith("Z")
                updated = datetime.fromisoformat(listed["updatedAt"])
                assert abs(updated.timestamp() - session.events[-1].timestamp) < 1
        finally:
            patched.undo()
            time.tzset()


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("one\n\ttwo   three", "one two three"),
        ("夏の旅行の計画を立てましょう", "夏の旅行の計画を立てましょう"),
    ],
)
async def test_a_title_is_what_the_user_began_with_in_one_short_line(said: str, title: str) -> None:
    async with conversation("Hello.", "Bye.") as chat:
        await chat.say(said)
        await chat.say("Something else")
        assert [entry["title"] for entry in await chat.chats()] == [title]


def pay() -> dict[str, str]:
    """Pays."""
    return {}


def ask_location() -> None:
    """Runs in the browser."""


def start_export() -> dict[str, str]:
    """Takes hours."""
    return {"status": "pending"}


@pytest.mark.parametrize(
    ("tool", "waiting"),
    [
        pytest.param(FunctionTool(pay, require_confirmation=True), True, id="approval"),
        pytest.param(LongRunningFunctionTool(ask_location), True, id="client tool"),
        pytest.param(LongRunningFunctionTool(start_export), False, id="work elsewhere"),
        pytest.param(FunctionTool(pay), False, id="plain"),
    ],
)
async def test_a_chat_waits_while_a_person_or_the_browser_has_to_answer(tool: Any, waiting: bool) -> None:
    async with conversation([call(tool.name)], "Done.", "Well.", tools=(tool,)) as chat:
        await chat.say("Go.")
        assert [entry["waiting"] for entry in await chat.chats()] == [waiting]
        assert (await chat.request("GET", "/stream")).status_code == 204
        assert await chat.stop() == 204
        assert [entry["waiting"] for entry in await chat.chats()] == [waiting]


async def test_the_list_is_as_long_as_the_limit() -> None:
    async with conversation(*["Hello."] * 3, limits=Limits(max_listed_chats=2)) as chat:
        for name in ("c1", "c2", "c3"):
            await chat.of(chat_id=name).say("hi")
        assert [entry["id"] for entry in await chat.chats()] == ["c3", "c2"]


async def test_a_chat_that_never_had_a_turn_has_no_messages_and_no_title() -> None:
    async with conversation() as chat:
        await chat.append()
        assert await chat.messages() == []
        assert [entry["title"] for entry in await chat.chats()] == [""]


# -- while a turn runs ------------------------------------------------------------------------------------------------


@every_store
async def test_while_a_turn_runs_the_messages_have_the_question_and_not_the_answer(store: Store) -> None:
    model, agent = hanging("Once ", "upon a time", script=("The end.",))
    async with conversation(agent=agent, store=store) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        assert [message["id"] for message in await chat.messages()] == ["u1"]
        model.go_on.set()
        ids = ["u1", (await answer).chunks[0]["messageId"]]
        assert [message["id"] for message in await chat.messages()] == ids


async def test_a_finished_step_of_a_running_answer_is_left_out_too() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def look() -> dict[str, str]:
        """Looks."""
        started.set()
        await go_on.wait()
        return {}

    async with conversation("Hello.", [call("look")], "Done.", tools=(look,)) as chat:
        await chat.say("hi")
        before = await chat.messages()
        answer = asyncio.create_task(chat.say("Look."))
        await started.wait()
        assert (await chat.messages())[:-1] == before
        assert (await chat.messages())[-1]["id"] == "u2"
        assert [entry["waiting"] for entry in await chat.chats()] == [False]
        go_on.set()
        await answer
        assert len(await chat.messages()) == 4


async def test_only_the_owner_reads_a_running_turn() -> None:
    model, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        foreign = await chat.of(user="bob").request("GET", "/stream")
        unknown = await chat.of(user="bob", chat_id="c9").request("GET", "/stream")
        assert observed(foreign) == observed(unknown)
        assert foreign.status_code == 204
        own = asyncio.create_task(chat.request("GET", "/stream"))
        model.go_on.set()
        assert (await own).text == (await answer).raw


async def test_stop_ends_one_s_own_turn_and_no_other_one() -> None:
    model, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        assert await chat.of(user="bob").stop() == 204
        assert await chat.of(chat_id="c2").stop() == 204
        assert chat.is_running
        assert not answer.done()
        assert await chat.stop() == 204
        assert not chat.is_running
        assert (await answer).chunks[-1] == {"type": "abort"}
        assert await chat.stop() == 204


async def test_two_stops_at_the_same_time_are_two_good_answers() -> None:
    model, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        assert await asyncio.gather(chat.stop(), chat.stop()) == [204, 204]
        assert (await answer).chunks[-1] == {"type": "abort"}


async def test_stop_says_that_it_cannot_reach_the_answer_of_another_worker() -> None:
    store = MemoryStore()
    async with conversation("Fine.", record=store) as chat:
        lease, _ = await store.acquire(ChatKey("helper", "ann", "c1"), 1000)
        assert lease is not None
        refused = await chat.request("POST", "/stop")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "run-elsewhere")
        assert refused.headers["retry-after"] == "1"
        assert await chat.of(user="bob").stop() == 204
        await store.release(lease)
        assert await chat.stop() == 204


class SlowLeases(MemoryStore):
    """It takes a while to take a lease, as a database may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def acquire(self, chat: ChatKey, lasts_s: float, changes: Any = ()) -> Acquired:
        self.is_asked.set()
        await self.go_on.wait()
        return await super().acquire(chat, lasts_s, changes)


async def test_stop_also_ends_an_answer_that_is_about_to_start() -> None:
    store = SlowLeases()
    _, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent, record=store) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await store.is_asked.wait()
        stop = asyncio.create_task(chat.stop())
        for _ in range(50):  # until it has come to the bridge
            await asyncio.sleep(0)
        store.go_on.set()
        assert await stop == 204
        assert not chat.is_running
        assert (await answer).chunks[-1] == {"type": "abort"}


async def test_a_stop_that_does_not_see_the_answer_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_START_S", 0.01)
    store = SlowLeases()
    _, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent, record=store) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await store.is_asked.wait()
        refused = await chat.request("POST", "/stop")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        store.go_on.set()
        while not chat.is_running:
            await asyncio.sleep(0)
        assert await chat.stop() == 204
        assert (await answer).chunks[-1] == {"type": "abort"}


# -- delete -----------------------------------------------------------------------------------------------------------


@every_store
async def test_a_deleted_chat_is_gone(store: Store) -> None:
    async with conversation("Hello.", "Hello, stranger.", store=store) as chat:
        await chat.say("hi")
        assert (await chat.request("DELETE")).status_code == 204
        gone, never = await chat.request("DELETE"), await chat.of(chat_id="c9").request("DELETE")
        assert observed(gone) == observed(never)
        assert gone.status_code == 404
        assert (await chat.request("GET", "/messages")).json() == NOT_FOUND
        assert await chat.chats() == []
        await chat.say("hi again")
        assert [message["id"] for message in (await chat.messages())[::2]] == ["u2"]


async def test_the_files_of_a_deleted_chat_are_gone_with_it() -> None:
    async with conversation([call("draw")], "Done.", tools=(draw,)) as chat:
        await chat.say("Draw.")
        assert (await chat.request("GET", "/files/map.png")).status_code == 200
        await chat.request("DELETE")
        assert (await chat.request("GET", "/files/map.png")).status_code == 404


@every_store
async def test_deleting_a_chat_stops_what_runs_in_it(store: Store) -> None:
    model, agent = hanging("Once ", "upon a time")
    async with conversation(agent=agent, store=store) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        assert (await chat.of(user="bob").request("DELETE")).status_code == 404
        assert chat.is_running
        assert (await chat.request("DELETE")).status_code == 204
        assert (await answer).chunks[-1] == {"type": "abort"}
        assert model.is_closed
        assert (await chat.request("GET", "/messages")).status_code == 404
        assert await chat.chats() == []


@every_store
async def test_a_turn_whose_chat_another_server_deletes_is_not_run_again(store: Store) -> None:
    async def delete_chat() -> dict[str, str]:
        """As another server of the same application would, in the middle of our turn."""
        await chat.runner.session_service.delete_session(app_name="helper", user_id="ann", session_id="c1")
        return {}

    script = [[call("delete_chat")], "Done.", "Done again."]
    async with conversation(*script, store=store, tools=(delete_chat,)) as chat:
        answer = await chat.say("Go.")
        assert len(chat.model.requests) == 1
        assert answer.chunks[-1]["type"] == "error"
        assert (await chat.request("GET", "/messages")).status_code == 404
