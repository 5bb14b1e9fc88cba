"""The tag of a history changes whenever the history would; an unchanged one is 304, and its session is not loaded."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.artifacts import InMemoryArtifactService
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, DatabaseSessionService, InMemorySessionService
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ChatBridge, client_tool
from adk_stream_protocol.adk.revision import RECENT
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.store.sql import SqlStore
from adk_stream_protocol.testing import ScriptedModel, call
from support.apps import app_of, user_of
from support.conversations import Conversation, Store, conversation, end_soon, every_store, hanging
from support.pages import Clock, Page, Till, page
from support.workers import workers

PAY = [call("pay", amount=5)]


async def get(chat: Conversation, tag: str | None = None, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return await chat.request("GET", "/messages", headers={**given, **({"if-none-match": tag} if tag else {})})


async def tag_of(chat: Conversation, **headers: str) -> str:
    return (await get(chat, **headers)).headers["etag"]


class Loads:
    """Counts how a session is read. The method still says that it is ADK's own, or the history would have no tag."""

    def __init__(self, service: BaseSessionService) -> None:
        self.whole = self.recent = 0
        get_session = service.get_session

        @wraps(get_session)
        async def counted(*, config: Any = None, **key: Any) -> Any:
            if config is not None and config.num_recent_events == RECENT:
                self.recent += 1
            else:
                self.whole += 1
            return await get_session(config=config, **key)

        service.get_session = counted  # type: ignore[method-assign]


def said(words: str, **fields: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=words)])
    return Event(author="user", invocation_id="i1", content=content, **fields)


# -- what an unchanged history costs ----------------------------------------------------------------------------------


@every_store
async def test_an_unchanged_history_is_304_and_its_session_is_not_loaded(store: Store) -> None:
    async with page(*["Hello."] * 5, PAY, store=store, tools=(Till().gated,)) as at:
        for _ in range(6):
            await at.say("Hi.")
        first = await get(at.chat)
        loads = Loads(at.chat.runner.session_service)
        again = await get(at.chat, first.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        assert (loads.whole, loads.recent) == (0, 1)
        assert again.headers["etag"] == first.headers["etag"]


async def test_a_client_that_has_nothing_costs_one_load_and_no_look_before() -> None:
    async with conversation("Hello.") as chat:
        await chat.say("Hi.")
        loads = Loads(chat.runner.session_service)
        assert (await get(chat)).status_code == 200
        assert (loads.whole, loads.recent) == (1, 0)


class OfMyOwn(InMemorySessionService):
    """Its date never changes, and it always gives all events."""

    async def get_session(self, **key: Any) -> Any:
        key.pop("config", None)
        session = await super().get_session(**key)
        if session is not None:
            session.last_update_time = 1.0
        return session


async def test_with_a_session_service_of_ones_own_the_history_is_loaded_and_compared() -> None:
    async with conversation("Hello.", "Well.", session_service=OfMyOwn()) as chat:
        await chat.say("Hi.")
        first = await get(chat)
        assert (await get(chat, first.headers["etag"])).status_code == 304
        await chat.say("And?")
        second = await get(chat, first.headers["etag"])
        assert second.status_code == 200
        assert len(second.json()) == 4
        assert second.headers["etag"] != first.headers["etag"]


async def test_where_a_new_event_could_be_missed_the_history_is_loaded_and_compared() -> None:
    """An event that is dated back stands somewhere among the others."""
    async with conversation() as chat:
        words = [said(f"{number}", timestamp=100.0 + number) for number in range(20)]
        await chat.append(*words, said("Old", timestamp=5))
        service: Any = chat.runner.session_service
        service.sessions["helper"]["ann"]["c1"].events.sort(key=lambda event: event.timestamp)  # as databases do
        first = await get(chat)
        loads = Loads(service)
        assert (await get(chat, first.headers["etag"])).status_code == 304
        assert loads.whole == 1
        await chat.append(said("Older", timestamp=5))
        service.sessions["helper"]["ann"]["c1"].events.sort(key=lambda event: event.timestamp)
        assert (await get(chat, first.headers["etag"])).status_code == 200


async def test_a_file_that_was_not_found_is_looked_up_again() -> None:
    class Flaky(InMemoryArtifactService):
        is_down: bool = False

        async def get_artifact_version(self, **about: Any) -> Any:
            if self.is_down:
                raise ConnectionError
            return await super().get_artifact_version(**about)

    async def draw(tool_context: ToolContext) -> dict[str, bool]:
        """Draws."""
        await tool_context.save_artifact("map.png", types.Part.from_bytes(data=b"x", mime_type="image/png"))
        return {"drawn": True}

    files = Flaky()
    async with conversation([call("draw")], "Drawn.", tools=(draw,), artifact_service=files) as chat:
        await chat.say("Draw.")
        files.is_down = True
        first = await get(chat)
        assert "image/png" not in first.text
        assert (await get(chat, first.headers["etag"])).status_code == 304
        files.is_down = False
        assert "image/png" in (await get(chat, first.headers["etag"])).text


# -- what changes it --------------------------------------------------------------------------------------------------


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


Change = Callable[[Page, Clock], Awaitable[Any]]


async def a_new_turn(at: Page, _: Clock) -> None:
    await at.say("More.")


async def an_edit(at: Page, _: Clock) -> None:
    await at.chat.edit("u0", "Something else.")


async def a_new_answer(at: Page, _: Clock) -> None:
    await at.chat.regenerate("u0")


async def an_approval(at: Page, _: Clock) -> None:
    at.decide("pay")
    await at.answer()


async def a_denial(at: Page, _: Clock) -> None:
    at.decide("pay", approved=False, reason="too much")
    await at.answer()


async def a_passed_deadline(_: Page, clock: Clock) -> None:
    clock.now += 601


async def an_event_of_another_client(at: Page, _: Clock) -> None:
    await at.chat.append(said("From elsewhere."))


async def a_deletion_and_the_same_words_again(at: Page, _: Clock) -> None:
    await at.chat.request("DELETE")
    at.chat.model.requests.clear()
    await at.say("Pay.")


CHANGES = [value for name, value in list(globals().items()) if name.startswith(("a_", "an_"))]


@every_store
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_after_every_kind_of_change_the_tag_is_another_one(store: Store, change: Change) -> None:
    clock = Clock()
    record = MemoryStore(clock=clock)
    async with page(PAY, *["Well."] * 5, store=store, tools=(Till().gated,), record=record) as at:
        await at.say("Pay.")
        before = await get(at.chat)
        assert (await get(at.chat, before.headers["etag"])).status_code == 304
        await change(at, clock)
        after = await get(at.chat, before.headers["etag"])
        assert after.status_code == 200
        assert after.headers["etag"] != before.headers["etag"]
        assert (await get(at.chat, after.headers["etag"])).status_code == 304


async def test_an_answer_that_begins_and_one_that_ends_change_the_tag() -> None:
    model, agent = hanging("One ", "two.")
    async with conversation(agent=agent) as chat:
        await chat.append(said("Before."))
        before = await get(chat)
        saying = asyncio.create_task(chat.say("Count."))
        await model.hangs.wait()
        during = await get(chat, before.headers["etag"])
        assert during.status_code == 200
        running = during.headers["x-adk-running"]
        same = await get(chat, during.headers["etag"])
        assert (same.status_code, same.headers["x-adk-running"]) == (304, running)
        model.go_on.set()
        await saying
        after = await get(chat, during.headers["etag"])
        assert after.status_code == 200
        assert "x-adk-running" not in after.headers
        assert len({each.headers["etag"] for each in (before, during, after)}) == 3


async def test_how_it_is_shown_is_part_of_the_tag() -> None:
    async with workers(PAY, tools=(Till().gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        styled = staff.page(approval_style="confirmation-tool").chat
        newer = staff.page(sdk_version=7).chat
        tags = [await tag_of(at.chat), await tag_of(at.chat, x_ai_sdk_version="7"), await tag_of(styled)]
        assert len(set(tags)) == 3
        assert await tag_of(newer) == tags[1]
        assert await tag_of(at.chat, x_ai_sdk_version="6") == tags[0]
        elsewhere = Conversation(app_of(staff.bridge()), at.chat.bridge)
        assert await tag_of(elsewhere) == tags[0]


async def test_users_who_said_the_same_in_chats_of_one_name_have_tags_of_their_own() -> None:
    async with conversation("Hello.", "Hello.") as chat:
        bobs = chat.of(user="bob")
        await chat.say("Hi.")
        await bobs.say("Hi.")
        anns_tag = await tag_of(chat)
        assert (await get(bobs, anns_tag)).status_code == 200
        assert (await get(chat.of(user="eve"), anns_tag)).status_code == 404


# -- several workers --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def two_workers(folder: Path, *replies: Any, **options: Any) -> AsyncGenerator[list[Page]]:
    """Each with its own connections to one SQLite file for the sessions and the records."""
    url = f"sqlite+aiosqlite:///{folder / 'chats.db'}"
    model = ScriptedModel(replies)
    pages: list[Page] = []
    opened: list[tuple[ChatBridge, DatabaseSessionService, SqlStore]] = []
    for _ in range(2):
        sessions, store = DatabaseSessionService(url), SqlStore(url)
        agent = LlmAgent(name="helper", model=model, tools=[Till().gated, client_tool(where)])
        bridge = ChatBridge(agent, user_id=user_of, session_service=sessions, store=store, **options)
        opened.append((bridge, sessions, store))
        pages.append(Page(Conversation(app_of(bridge), bridge)))
    yield pages
    for bridge, sessions, store in opened:
        end_soon(bridge)
        await bridge.aclose()
        await store.aclose()
        await sessions.close()


async def test_a_worker_sees_what_another_one_has_changed(tmp_path: Path) -> None:
    async with two_workers(tmp_path, PAY, "Paid.", "Well.") as (at, other):
        await at.say("Pay.")
        before = await tag_of(at.chat)
        assert await tag_of(other.chat) == before
        assert (await get(other.chat, before)).status_code == 304
        at.decide("pay")
        await at.answer()
        decided = await get(other.chat, before)
        assert decided.status_code == 200
        assert (await get(at.chat, decided.headers["etag"])).status_code == 304
        await at.say("And?")
        assert (await get(other.chat, decided.headers["etag"])).status_code == 200
        last = await tag_of(at.chat)
        await at.chat.request("DELETE")
        assert (await get(other.chat, last)).status_code == 404


async def test_a_deadline_passes_for_every_worker(tmp_path: Path) -> None:
    async with two_workers(tmp_path, PAY, approvals=ApprovalPolicy(deadline_s=0.2)) as (at, other):
        await at.say("Pay.")
        first = await tag_of(at.chat)
        while (await get(other.chat, first)).status_code == 304:
            await asyncio.sleep(0.01)
        assert await tag_of(other.chat) == await tag_of(at.chat) != first


async def act(at: Page, other: Page, dice: random.Random) -> None:
    """Something that may happen to a chat."""
    open_parts = [part for part in at.parts("pay") if part["state"] == "approval-requested"]
    what = dice.choice(["say", "decide", "decide", "append", "edit", "nothing"])
    if what == "decide" and open_parts:
        at.decide("pay", at.parts("pay").index(open_parts[-1]), approved=dice.random() < 0.7)
        await at.answer()
    elif what == "append":
        await other.chat.append(said("From elsewhere."))
    elif what == "edit" and at.messages:
        await at.chat.edit("u0", f"Other words {dice.random()}.")
        at.messages = await at.chat.messages()
    elif what != "nothing":
        await at.say("Go on.")


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happens_one_tag_stands_for_one_history(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    replies = [dice.choice([PAY, "Well.", "Paid."]) for _ in range(40)]
    known: dict[str, tuple[bytes, str | None]] = {}
    async with two_workers(tmp_path, *replies) as (at, other):
        await at.say("Pay.")
        for _ in range(6):
            for chat in (at.chat, other.chat):
                found = await get(chat)
                shown = found.content, found.headers.get("x-adk-running")
                assert known.setdefault(found.headers["etag"], shown) == shown
                assert (await get(chat, found.headers["etag"])).status_code == 304
                for tag, had in known.items():
                    assert had == shown or (await get(chat, tag)).status_code == 200
            await act(at, other, dice)
