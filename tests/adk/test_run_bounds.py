"""The bounds of a run: its time, its size, and how long it goes on when nobody reads."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import call
from support.asgi import exchange
from support.conversations import Conversation, Endless, checked, conversation, hanging, other_tasks, until


async def leave(chat: Conversation, when: Callable[[bytes], bool]) -> None:
    """One turn whose only reader goes away."""
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    body = json.dumps({"id": chat.chat_id, "messages": [message]}).encode()
    await exchange(chat.app, body=body, headers=chat.headers, leave_after=when)


def length(limit: str) -> dict[str, Any]:
    return {"type": "finish", "finishReason": "length", "messageMetadata": {"limit": limit}}


async def test_a_run_that_takes_too_long_ends_and_says_why() -> None:
    model, agent = hanging("Once", script=("Next.",))
    async with conversation(agent=agent, limits=Limits(max_run_s=0.2)) as chat:
        tasks = other_tasks()
        told = await chat.say("A story.")
        checked(told)
        assert told.chunks[-1] == length("time")
        assert model.is_closed or not model.requests
        await until(lambda: other_tasks() == tasks)


async def test_a_tool_that_takes_too_long_is_ended_too() -> None:
    tool = Endless()
    async with conversation([call("endless")], tools=(tool.endless,), limits=Limits(max_run_s=0.2)) as chat:
        told = await chat.say("Work.")
        checked(told)
        assert told.chunks[-1] == length("time")
        assert tool.was_cancelled == tool.started.is_set()


async def test_a_run_that_writes_too_much_ends_and_says_why() -> None:
    model, agent = hanging("Once ", *["a" * 100] * 50, script=("Next.",))
    async with conversation(agent=agent, limits=Limits(max_log_bytes=1000)) as chat:
        tasks = other_tasks()
        told = await chat.say("A story.")
        checked(told)
        assert told.chunks[-1] == length("size")
        assert told.text.startswith("Once aaa")
        assert model.is_closed
        await until(lambda: other_tasks() == tasks)
        assert (await chat.say("And now?")).text == "Next."


async def test_an_answer_below_the_limit_is_not_touched() -> None:
    async with conversation("Short.", limits=Limits(max_log_bytes=1000)) as chat:
        assert (await chat.say("hi")).chunks[-1] == {"type": "finish", "finishReason": "stop"}


# -- nobody reads -----------------------------------------------------------------------------------------------------


async def test_a_run_that_nobody_reads_is_stopped_after_a_while() -> None:
    model, agent = hanging("Once", script=("Next.",))
    async with conversation(agent=agent, limits=Limits(unread_run_s=0.05)) as chat:
        tasks = other_tasks()
        await leave(chat, lambda data: b"Once" in data)
        assert chat.is_running
        await until(lambda: not chat.is_running)
        assert model.is_closed
        await until(lambda: other_tasks() == tasks)
        (_, kept) = await chat.messages()
        assert kept["parts"][-1]["text"] == "Once"
        assert "metadata" not in kept


async def test_with_no_patience_a_run_is_stopped_with_its_last_reader() -> None:
    model, agent = hanging("Once")
    async with conversation(agent=agent, limits=Limits(unread_run_s=0)) as chat:
        await leave(chat, lambda data: b"Once" in data)
        await until(lambda: not chat.is_running)
        assert model.is_closed


async def test_with_no_patience_a_run_that_is_read_comes_to_its_end() -> None:
    async with conversation("Hello there.", limits=Limits(unread_run_s=0)) as chat:
        assert (await chat.say("hi")).text == "Hello there."


async def test_with_no_patience_a_run_waits_for_its_first_reader() -> None:
    """A route of the application's own may have something to do before it hands the answer on."""

    async def own_route(request: Request) -> Response:
        response = await chat.bridge.respond(request)
        for _ in range(5):
            await asyncio.sleep(0)
        return response

    async with conversation("Hello there.", limits=Limits(unread_run_s=0)) as chat:
        chat.app = Starlette(routes=[Route("/api/chat", own_route, methods=["POST"])])
        assert (await chat.say("hi")).text == "Hello there."


async def test_a_tool_at_work_is_not_stopped_because_nobody_reads() -> None:
    tool = Endless()
    # Silence is filled with pings, so the reader that stays away is the only thing that ticks.
    async with conversation([call("endless")], "Paid.", tools=(tool.endless,), limits=Limits(unread_run_s=0)) as chat:
        await leave(chat, lambda data: b"tool-input-available" in data)
        await tool.started.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert chat.is_running
        assert not tool.was_cancelled
        tool.release.set()
        await until(lambda: not chat.is_running)
        (_, answered) = await chat.messages()
        results = [part["output"] for part in answered["parts"] if part["type"] == "tool-endless"]
        assert results == [{"ok": "yes"}]


async def test_a_reader_that_comes_back_in_time_keeps_the_run_alive() -> None:
    limits = Limits(unread_run_s=0.3)
    model, agent = hanging("Once")
    _, other_agent = hanging("Once")
    async with (
        conversation(agent=agent, limits=limits) as chat,
        conversation(agent=other_agent, limits=limits) as left_later,
    ):
        await leave(chat, lambda data: b"Once" in data)
        back = asyncio.create_task(chat.request("GET", "/stream"))
        await until(lambda: reads(chat))
        await leave(left_later, lambda data: b"Once" in data)
        await until(lambda: not left_later.is_running)  # so the time of the first one has passed as well
        assert chat.is_running
        model.go_on.set()
        assert '"finishReason":"stop"' in (await back).text


def reads(chat: Conversation) -> bool:
    log = chat.bridge._service.running("ann", chat.chat_id)
    return log is not None and log.is_read
