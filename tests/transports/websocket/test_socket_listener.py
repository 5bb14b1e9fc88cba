"""The chats that a socket listens to: it attaches, it detaches, and it does not keep more than a few of them."""

import asyncio
from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import LiveSession
from support.live_client import LiveClient
from transports.live_apps import (
    SMALL_GRACE,
    LiveApp,
    answers_after,
    answers_for_ever,
    chunks,
    live_app,
    own,
    ping,
    said,
    sound,
    speak,
    talks_for_ever,
)

pytestmark = pytest.mark.virtual_time


def chats_of(live: LiveApp) -> list[str]:
    """With a live session."""
    return [run.leased.key.chat_id for run in live.bridge._service._leases]  # pyright: ignore


async def attach(client: LiveClient, chat_id: str) -> None:
    client.tell("attach", id=chat_id)
    await ping(client)


async def detach(client: LiveClient, chat_id: str) -> None:
    count = len(own(client, "detached"))
    client.tell("detach", id=chat_id)
    assert await client.own("detached", count + 1) == {"type": "detached", "requestId": "-", "id": chat_id}


# -- detach -----------------------------------------------------------------------------------------------------------


async def test_a_session_ends_after_the_grace_when_its_client_has_detached() -> None:
    async with live_app(answers_for_ever) as live, live.attached() as client:
        await client.say("Hello")
        await asyncio.sleep(100)
        assert live.runs == 1
        await detach(client, "chat-1")
        await asyncio.sleep(29)
        assert live.runs == 1
        await asyncio.sleep(2)
        assert live.runs == 0
        await ping(client)  # the socket is still there


async def test_a_client_that_comes_back_within_the_grace_keeps_its_session() -> None:
    async with live_app(answers_for_ever) as live, live.attached() as client:
        await client.say("Hello")
        await detach(client, "chat-1")
        await asyncio.sleep(20)
        await attach(client, "chat-1")
        await asyncio.sleep(100)
        assert live.runs == 1
        assert len(live.model.sessions) == 1


async def test_a_session_goes_on_for_the_other_clients_of_its_chat() -> None:
    async with live_app(answers_for_ever) as live, live.attached() as leaving, live.attached() as staying:
        await leaving.say("Hello")
        await detach(leaving, "chat-1")
        await asyncio.sleep(100)
        assert live.runs == 1
        await staying.say("Still there?")
        assert own(leaving, "turn") == []


async def test_who_has_detached_reads_no_more_of_the_chat_and_its_message_goes_on() -> None:
    go_on = asyncio.Event()
    async with live_app(answers_after(go_on)) as live, live.attached() as client:
        request_id = client.start_send(said("Go on"))
        await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
        await detach(client, "chat-1")
        seen = len(client.frames[request_id])
        go_on.set()
        await asyncio.sleep(1)
        assert len(client.frames[request_id]) == seen
        assert (await live.messages())[-1]["parts"][-1]["text"] == "Well, fine."
        again = await client.resume(requestId=request_id, lastSequence=seen - 1)
        assert again.chunks[-1]["type"] == "finish"


@pytest.mark.parametrize("is_opening", [False, True], ids=["not begun", "being opened"])
async def test_a_request_that_is_under_way_does_not_listen_again(is_opening: bool) -> None:
    async def prepare(*_: Any) -> None:
        asked.set()
        await answered.wait()

    asked, answered = asyncio.Event(), asyncio.Event()
    async with live_app(talks_for_ever, prepare=prepare, limits=SMALL_GRACE) as live, live.socket() as client:
        client.start_send(said("Hello"))
        if is_opening:
            await asked.wait()
        client.tell("detach", id="chat-1")
        await ping(client)
        answered.set()
        await asyncio.sleep(10)
        assert live.runs == 0


async def test_voice_goes_to_the_chat_that_was_attached_before() -> None:
    async with live_app(answers_for_ever, speaks=True) as live, live.attached() as client:
        await attach(client, "chat-2")
        await detach(client, "chat-2")
        speak(client, sound(20))
        await asyncio.sleep(1)
        assert chats_of(live) == ["chat-1"]
        await detach(client, "chat-1")
        speak(client, sound(20))
        assert (await client.own("error"))["message"] == "Attach to a chat first: send `attach` with its `id`."


@pytest.mark.parametrize("chat_id", ["chat-9", "", "a/b"])
async def test_a_chat_that_was_not_named_can_be_left(chat_id: str) -> None:
    async with live_app(answers_for_ever) as live, live.attached() as client:
        await detach(client, chat_id)
        assert not own(client, "error")
        assert live.runs == 0


async def test_the_rate_of_binary_voice_is_told_anew_for_another_chat() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.audio(bytes(480), 24_000)
        await session.turn_complete()
        await session.expect("close")

    async with live_app(server, speaks=True) as live, live.attached() as client:
        await client.say("Speak")
        await attach(client, "chat-2")
        await client.say("Speak", id="chat-2")
        assert [frame["id"] for frame in own(client, "audio")] == ["chat-1", "chat-2"]


# -- how many ---------------------------------------------------------------------------------------------------------


async def test_a_socket_attaches_to_five_chats_and_to_another_one_in_place_of_one_of_them() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        for number in range(1000):
            client.tell("attach", id=f"chat-{number}")
            await asyncio.sleep(0.1)
        await ping(client)
        assert len(own(client, "attached")) == 5
        refusals = own(client, "error")
        assert len(refusals) == 995
        assert (refusals[0]["code"], refusals[0]["message"]) == (
            "too-many",
            "This socket has too many chats. Detach from one that you no longer read, then try again.",
        )
        answer = await client.say("Hello", id="chat-7")
        assert answer.error is not None
        assert (answer.error["code"], answer.error["errorText"]) == ("too-many", refusals[0]["message"])
        assert len(live.bridge._service._live._listeners) == 5  # pyright: ignore
        await detach(client, "chat-3")
        assert (await client.say("Hello", id="chat-7")).text == "Yes."


async def test_a_stock_client_leaves_the_chat_that_it_has_not_used_for_the_longest_time() -> None:
    async with live_app(answers_for_ever, limits=Limits(max_chats_per_socket=2)) as live, live.socket() as client:
        for chat_id in ("one", "two", "one", "three"):
            assert (await client.say("Hello", id=chat_id)).text == "Yes."
        await asyncio.sleep(31)
        assert chats_of(live) == ["one", "three"]


async def test_a_chat_whose_message_is_being_read_is_not_left_for_another_one() -> None:
    async with live_app(talks_for_ever, limits=Limits(max_chats_per_socket=1)) as live, live.socket() as client:
        request_id = client.start_send(said("Go on"))
        await client.until(lambda: len(chunks(client, request_id)) >= 3)
        answer = await client.say("Hello", id="chat-2")
        assert answer.error is not None
        assert answer.error["code"] == "too-many"
        assert live.runs == 1


async def test_a_user_has_ten_live_sessions() -> None:
    async with (
        live_app(answers_for_ever) as live,
        live.socket() as first,
        live.socket() as second,
        live.socket() as third,
    ):
        for number, client in enumerate([first] * 5 + [second] * 5):
            assert (await client.say("Hello", id=f"chat-{number}")).text == "Yes."
        answer = await third.say("Hello", id="chat-10")
        assert answer.error is not None
        assert (answer.error["code"], answer.error["errorText"]) == (
            "too-many",
            "You have 10 live sessions, as many as one user may have. Leave one, then try again.",
        )
        assert live.runs == 10
        third.tell("attach", id="chat-11")
        speak(third, sound(20), form="base64")
        assert (await third.own("error"))["code"] == "too-many"
        async with live.socket("bob") as bob:
            assert (await bob.say("Hello")).text == "Yes."


async def test_sessions_that_are_opened_at_the_same_time_fill_the_limit_and_no_more() -> None:
    async with live_app(answers_for_ever, limits=Limits(max_live_sessions_per_user=2)) as live, live.socket() as client:
        requests = [client.start_send(said("Hello"), id=f"chat-{number}") for number in range(4)]
        answers = [await client.answer(request_id) for request_id in requests]
        assert sum(answer.error is not None for answer in answers) == 2
        assert live.runs == 2


async def test_a_session_that_nobody_listens_to_makes_room_for_another_one() -> None:
    async with live_app(answers_for_ever, limits=Limits(max_live_sessions_per_user=2)) as live, live.socket() as client:
        for number in range(6):
            assert (await client.say("Hello", id=f"chat-{number}")).text == "Yes."
            await detach(client, f"chat-{number}")
        assert chats_of(live) == ["chat-4", "chat-5"]
