"""The list of chats: what it costs, what it calls a chat, and that no chat can spoil it for the others."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.conversations import Conversation, Store, conversation, every_store
from test_round_trips import CountedSessions, CountedStore

CHATS = 5


def said(words: str | types.Part, author: str = "user", invocation_id: str = "i1", **fields: Any) -> Event:
    part = types.Part(text=words) if isinstance(words, str) else words
    content = types.Content(role="user" if author == "user" else "model", parts=[part])
    return Event(author=author, invocation_id=invocation_id, content=content, **fields)


async def old_chats(chat: Conversation, count: int) -> None:
    """As another client leaves them, or a store that was lost."""
    for number in range(count):
        await chat.of(chat_id=f"old-{number}").append(said(f"Old {number}"), said("Well.", "helper"))


async def titles(chat: Conversation) -> dict[str, str]:
    return {entry["id"]: entry["title"] for entry in await chat.chats()}


async def title_in_history(chat: Conversation) -> str:
    """What the whole history would say."""
    first = next((message for message in await chat.messages() if message["role"] == "user"), {"parts": []})
    line = " ".join(" ".join(part["text"] for part in first["parts"] if part["type"] == "text").split())
    return line if len(line) <= 80 else f"{line[:79]}…"


# -- what it costs ----------------------------------------------------------------------------------------------------


async def test_a_list_loads_no_session_asks_the_store_once_and_looks_at_no_file() -> None:
    looked_up: list[str] = []

    class Artifacts(InMemoryArtifactService):
        async def get_artifact_version(self, **about: Any) -> Any:
            looked_up.append(about["filename"])
            return await super().get_artifact_version(**about)

    async def draw(tool_context: ToolContext) -> dict[str, bool]:
        """Draws."""
        await tool_context.save_artifact("map.png", types.Part.from_bytes(data=b"x", mime_type="image/png"))
        return {"drawn": True}

    sessions, store = CountedSessions(), CountedStore()
    replies = [reply for _ in range(CHATS) for reply in ([call("draw")], "Drawn.", [call("where")])]
    tools = (draw, client_tool(where))
    services: dict[str, Any] = {"session_service": sessions, "artifact_service": Artifacts(), "record": store}
    async with conversation(*replies, tools=tools, **services) as chat:
        for number in range(CHATS):
            one = chat.of(chat_id=f"c{number}")
            await one.say(f"Draw {number}.")
            await one.say("Where?")
        sessions.loads = 0
        store.asked.clear()
        looked_up.clear()
        listed = await chat.chats()
        assert [entry["title"] for entry in listed] == [f"Draw {number}." for number in reversed(range(CHATS))]
        assert all(entry["waiting"] for entry in listed)
        assert (sessions.loads, store.asked, looked_up) == (0, {"overview": 1}, [])


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


async def test_a_chat_without_a_title_is_looked_at_once() -> None:
    sessions, store = CountedSessions(), CountedStore()
    async with conversation("Hello.", session_service=sessions, record=store) as chat:
        await old_chats(chat, CHATS)
        await chat.say("New")
        sessions.loads = 0
        expected = {"c1": "New", **{f"old-{number}": f"Old {number}" for number in range(CHATS)}}
        assert await titles(chat) == expected
        assert sessions.loads == CHATS
        store.asked.clear()
        assert await titles(chat) == expected
        assert (sessions.loads, store.asked) == (CHATS, {"overview": 1})


class SlowSessions(InMemorySessionService):
    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self.broken = broken
        self.loads = self.at_once = self.most_at_once = 0

    async def get_session(self, **about: Any) -> Any:
        self.loads += 1
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        if about["session_id"] == self.broken:
            raise ValueError("an event that cannot be read")
        return await super().get_session(**about)


async def test_many_lists_at_once_load_each_chat_once_and_few_at_a_time() -> None:
    sessions = SlowSessions()
    async with conversation(session_service=sessions) as chat:
        await old_chats(chat, 12)
        sessions.loads = sessions.most_at_once = 0
        listed = await asyncio.gather(*(titles(chat) for _ in range(20)))
        assert all(each == {f"old-{number}": f"Old {number}" for number in range(12)} for each in listed)
        assert sessions.loads == 12
        assert sessions.most_at_once == 4


async def test_a_chat_that_cannot_be_read_is_listed_with_the_others() -> None:
    async with conversation(session_service=SlowSessions()) as chat:
        await old_chats(chat, 3)
        chat.runner.session_service.broken = "old-1"  # pyright: ignore[reportAttributeAccessIssue]
        assert await titles(chat) == {"old-0": "Old 0", "old-1": "", "old-2": "Old 2"}
        chat.runner.session_service.broken = ""  # pyright: ignore[reportAttributeAccessIssue]
        assert (await titles(chat))["old-1"] == "Old 1"


async def test_the_list_is_as_long_as_its_limit_and_asks_for_no_more() -> None:
    sessions = SlowSessions()
    async with conversation(session_service=sessions, limits=Limits(max_listed_chats=2)) as chat:
        await old_chats(chat, 5)
        sessions.loads = 0
        assert len(await titles(chat)) == 2
        assert sessions.loads == 2


# -- what it calls a chat ---------------------------------------------------------------------------------------------


@every_store
async def test_a_title_follows_its_first_message(store: Store) -> None:
    async with conversation(*["Well."] * 9, store=store) as chat:
        await chat.say("  The first\n message ")
        assert await titles(chat) == {"c1": "The first message"}
        await chat.say("The second")
        await chat.edit("u2", "The second, edited")
        await chat.regenerate("u1")
        assert await titles(chat) == {"c1": "The first message"}
        await chat.edit("u1", "x" * 100)
        assert await titles(chat) == {"c1": "x" * 79 + "…"}
        await chat.say("And on")
        assert await titles(chat) == {"c1": await title_in_history(chat)}


async def test_a_deleted_chat_leaves_no_title_for_the_next_one_of_its_id() -> None:
    store = MemoryStore()
    async with conversation("One.", "Two.", record=store) as chat:
        await chat.say("Secret")
        assert await titles(chat) == {"c1": "Secret"}
        assert (await chat.request("DELETE")).status_code == 204
        assert await titles(chat) == {}
        assert "Secret" not in str(vars(store))
        await chat.of().say("Begun anew")
        assert await titles(chat) == {"c1": "Begun anew"}


def heard(words: str, message_id: str) -> Event:
    ids = MessageIds(user_message_id=None, message_id=message_id)
    transcript = types.Transcription(text=words, finished=True)
    return Event(author="user", invocation_id="i1", input_transcription=transcript, custom_metadata=ids.metadata())


def answer(words: str, message_id: str, **fields: Any) -> Event:
    ids = MessageIds(user_message_id=None, message_id=message_id)
    return said(words, "helper", custom_metadata=ids.metadata(), **fields)


def rewound(invocation_id: str) -> Event:
    event = Event(author="user", invocation_id="rewind")
    event.actions.rewind_before_invocation_id = invocation_id
    return event


IMAGE = types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png"))
RESULT = types.Part(function_response=types.FunctionResponse(id="1", name="where", response={}))
SESSIONS: dict[str, list[Event]] = {
    "nothing": [],
    "nothing but the agent": [said("Welcome.", "helper")],
    "the agent first": [said("Welcome.", "helper"), said("Hello", invocation_id="i2")],
    "a file alone": [said(IMAGE), said("And words", invocation_id="i2")],
    "words after a result": [said(RESULT), said("Hello", invocation_id="i2")],
    "what was taken back": [said("No"), said("Well.", "helper"), rewound("i1"), said("Yes", invocation_id="i2")],
    "all of it taken back": [said("No"), said("Well.", "helper"), rewound("i1")],
    "what was heard after its answer began": [answer("Hi.", "m1"), said("B"), heard("A", "m1"), heard("C", "m1")],
    "what was heard of two answers": [
        answer("1", "m1"), answer("2", "m2"), said("C"), heard("B", "m2"), heard("A", "m1"), heard("D", "m2"),
    ],
    "what was heard of an answer that said nothing": [
        answer("", "m1", turn_complete=True), said("B"), heard("A", "m1"),
    ],
    "a long line": [said("word " * 40)],
}  # fmt: skip


@pytest.mark.parametrize("kind", SESSIONS)
async def test_a_title_is_what_the_history_begins_with(kind: str) -> None:
    async with conversation("Well.") as chat:
        await chat.append(*SESSIONS[kind])
        before = await title_in_history(chat)
        assert await titles(chat) == {"c1": before}
        await chat.say("Now then")
        assert await titles(chat) == {"c1": before or await title_in_history(chat)}


async def test_a_run_that_sees_only_the_newest_events_renames_no_chat() -> None:
    config = RunConfig(get_session_config=GetSessionConfig(num_recent_events=1))

    async with conversation(*["Well."] * 3, run_config=config) as chat:
        for words in ("One", "Two", "Three"):
            await chat.say(words)
        assert await titles(chat) == {"c1": "One"}


# -- files ------------------------------------------------------------------------------------------------------------


async def test_artifacts_of_a_history_are_looked_up_together_and_one_that_fails_hides_no_other() -> None:
    class Artifacts(InMemoryArtifactService):
        async def get_artifact_version(self, **about: Any) -> Any:
            nonlocal at_once, most_at_once
            at_once += 1
            most_at_once = max(at_once, most_at_once)
            await asyncio.sleep(0.01)
            at_once -= 1
            if about["filename"] == "3.png":
                raise ConnectionError("bucket")
            return await super().get_artifact_version(**about)

    at_once = most_at_once = 0

    artifacts = Artifacts()
    async with conversation(artifact_service=artifacts) as chat:
        for number in range(20):
            event = said("Here.", "helper", f"i{number}")
            event.actions.artifact_delta = {f"{number}.png": 0}
            await chat.append(said("Draw.", invocation_id=f"i{number}"), event)
            await artifacts.save_artifact(
                app_name="helper",
                user_id="ann",
                session_id="c1",
                filename=f"{number}.png",
                artifact=types.Part.from_bytes(data=b"x", mime_type="image/png"),
            )
        parts = [part for message in await chat.messages() for part in message["parts"]]
        kinds = [part["mediaType"] for part in parts if part["type"] == "file"]
        assert kinds == ["image/png"] * 3 + ["application/octet-stream"] + ["image/png"] * 16
        assert most_at_once == 8
