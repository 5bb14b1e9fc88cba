"""Long chats: what they cost grows with them and no faster, and none of it keeps everybody else waiting.

Nothing here is held against a clock: a chat of eight times as many turns is held against the shorter one.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.sessions import BaseSessionService
from google.genai import types

from adk_stream_protocol.adk.session import MessageIds
from support.conversations import Conversation, conversation
from support.loop_watch import Held, LoadedForNothing, watched

SHORT, LONG = 250, 2000  # much longer than one slice of work even where a turn costs next to nothing
GROWS = LONG / SHORT


@cache
def events_of(turns: int) -> list[Event]:
    return [event for number in range(turns) for event in _turn(number)]


def _turn(number: int) -> list[Event]:
    ids = MessageIds(user_message_id=f"u{number}", message_id=f"m{number}").metadata()
    call = types.FunctionCall(id=f"c{number}", name="look_up", args={"topic": number})
    result = types.FunctionResponse(id=f"c{number}", name="look_up", response={"found": "something"})
    parts = (
        ("user", types.Part(text=f"Question {number}?")),
        ("helper", types.Part(function_call=call)),
        ("helper", types.Part(function_response=result)),
        ("helper", types.Part(text=f"Answer {number}.")),
    )
    return [
        Event(author=author, invocation_id=f"i{number}", content=types.Content(parts=[part]), custom_metadata=ids)
        for author, part in parts
    ]


@asynccontextmanager
async def chat_of(events: list[Event], *replies: str) -> AsyncGenerator[Conversation]:
    @asynccontextmanager
    async def store() -> AsyncGenerator[BaseSessionService]:
        yield LoadedForNothing(events)

    async with conversation(*replies, store=store) as chat:
        yield chat


async def read_history(chat: Conversation) -> None:
    response = await chat.request("GET", "/messages")
    assert response.status_code == 200


async def regenerate_something_unknown(chat: Conversation) -> None:
    answer = await chat.post({"id": "c1", "trigger": "regenerate-message", "messageId": "nobody-knows"})
    assert answer.status == 404


async def answer_something_unknown(chat: Conversation) -> None:
    part = {"type": "tool-pay", "toolCallId": "nobody-knows", "state": "output-available", "output": 1}
    message = {"id": "m0", "role": "assistant", "parts": [part]}
    assert (await chat.post({"id": "c1", "messages": [message]})).status == 404


Request = Callable[[Conversation], Coroutine[Any, Any, None]]
REQUESTS: list[Request] = [read_history, regenerate_something_unknown, answer_something_unknown]


async def held_by(request: Request, events: list[Event]) -> Held:
    """The least of five: what else the machine does only adds to it."""
    async with chat_of(events) as chat:
        held = [await watched(lambda: request(chat)) for _ in range(5)]
    return Held(longest=min(each.longest for each in held), total=min(each.total for each in held))


@pytest.mark.parametrize("request_", REQUESTS)
async def test_what_a_request_costs_grows_with_its_chat_but_it_holds_the_loop_no_longer(request_: Request) -> None:
    short, long = await held_by(request_, events_of(SHORT)), await held_by(request_, events_of(LONG))
    assert long.total < 2 * GROWS * short.total
    assert long.longest < GROWS / 2 * short.longest


async def test_what_a_message_costs_grows_with_its_calls_and_no_faster() -> None:
    def one_message(calls: int) -> list[Event]:
        ids = MessageIds(user_message_id="u1", message_id="m1").metadata()
        in_one_turn = {"invocation_id": "i1", "custom_metadata": ids}
        return [event.model_copy(update=in_one_turn) for event in events_of(calls) if event.author != "user"]

    short, long = await held_by(read_history, one_message(250)), await held_by(read_history, one_message(2000))
    assert long.total < 2 * 8 * short.total


async def test_what_an_edit_costs_grows_with_its_chat_and_no_faster() -> None:
    held: list[Held] = []
    for turns in (SHORT, LONG):
        async with chat_of(events_of(turns), *["Anew."] * 4) as chat:

            async def edit(chat: Conversation = chat) -> None:
                message = {"id": "new", "role": "user", "parts": [{"type": "text", "text": "Something else?"}]}
                answer = await chat.post({"id": "c1", "messageId": "u1", "messages": [message]})
                assert answer.text == "Anew."

            held.append(await watched(edit))
    short, long = held
    assert long.total < 2 * GROWS * short.total
