"""One live socket: its subprotocol, and the chats that it carries."""

import asyncio

import pytest

from adk_stream_protocol.testing import LiveSession
from transports.live_apps import (
    answers_for_ever,
    chunks,
    live_app,
    ping,
    said,
    talks_for_ever,
)

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize(
    ("offered", "selected"),
    [
        ((), None),
        (("graphql-ws",), None),
        (("adk-stream.v2", "ADK-STREAM.V1"), None),
        (("adk-stream.v1",), "adk-stream.v1"),
        (("graphql-ws", "adk-stream.v1"), "adk-stream.v1"),
    ],
)
async def test_the_subprotocol_is_selected_if_it_was_offered(offered: tuple[str, ...], selected: str | None) -> None:
    async with live_app(answers_for_ever) as live, live.socket(subprotocols=offered) as client:
        await ping(client)
        assert client.subprotocol == selected


# -- several chats ----------------------------------------------------------------------------------------------------


async def test_a_ping_is_answered_by_a_pong() -> None:
    async with live_app() as live, live.socket() as client:
        client.tell("ping")
        assert await client.own("pong") == {"type": "pong", "requestId": "-"}
        assert live.runs == 0


async def test_one_socket_carries_several_chats_at_once() -> None:
    async def server(session: LiveSession) -> None:
        asked.append(await session.expect_text())
        await session.say("You said ")
        if len(asked) == 3:
            all_asked.set()
        await all_asked.wait()
        await session.answer(asked[session.number - 1])
        await session.expect("close")

    asked: list[str] = []
    all_asked = asyncio.Event()
    async with live_app(server) as live, live.socket() as client:
        requests = {
            word: client.start_send(said(word, f"u-{word}"), id=f"chat-{word}", messages=[said(word)])
            for word in ("one", "two", "three")
        }
        for word, request_id in requests.items():
            assert (await client.answer(request_id)).text == f"You said {word}"
        for word in requests:
            history = await live.messages(chat_id=f"chat-{word}")
            assert [message["parts"][-1]["text"] for message in history] == [word, f"You said {word}"]


async def test_the_chat_of_another_user_does_not_exist() -> None:
    async with live_app(talks_for_ever) as live, live.socket("ann") as ann, live.attached("bob") as bob:
        request_id = ann.start_send(said("My secret"))
        await ann.until(lambda: len(chunks(ann, request_id)) >= 3)
        bob_request = {"type": "resume", "requestId": request_id, "id": "chat-1"}
        bob.send_frame({**bob_request, "lastSequence": 0})
        assert (await bob.answer(request_id)).status == 204
        bob.send_frame({"type": "abort", "requestId": request_id})
        bob.tell("stop")
        await ping(bob)
        assert live.runs == 1
        ann.send_frame({"type": "abort", "requestId": request_id})
        assert (await ann.answer(request_id)).chunks[-1]["type"] == "abort"
        assert {frame["type"] for frame in bob.everything} == {"attached", "no-active", "pong"}


async def test_the_same_chat_id_of_two_users_means_two_chats() -> None:
    async with live_app(answers_for_ever) as live, live.socket("ann") as ann, live.socket("bob") as bob:
        await ann.say("I am Ann")
        await bob.say("I am Bob")
        for user, words in (("ann", "I am Ann"), ("bob", "I am Bob")):
            history = await live.messages(user)
            assert [message["parts"][-1]["text"] for message in history] == [words, "Yes."]


@pytest.mark.parametrize("chat_id", ["", "a b", "a/b", "..", "user", "c:x", "x" * 129])
async def test_what_cannot_be_the_id_of_a_chat_is_refused(chat_id: str) -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        answer = await client.say("Hello", id=chat_id)
        assert answer.error is not None
        assert answer.error["code"] == "malformed"
        client.tell("attach", id=chat_id)
        assert (await client.own("error"))["code"] == "malformed"
        client.send_frame({"type": "resume", "requestId": "r9", "id": chat_id})
        await client.until(lambda: client.frames.get("r9"))
        assert client.frames["r9"][0]["type"] in ("no-active", "error")
        assert live.runs == 0
