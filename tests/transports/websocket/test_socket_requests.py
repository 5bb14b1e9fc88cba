"""Requests outlive their sockets: they are begun once, and go on where their client has left off."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from adk_stream_protocol.testing import LiveSession, call
from support.live_client import LiveClient, decisions
from support.pages import Till
from transports.live_apps import answers_for_ever, chunks, live_app, ping, resume, said, sequences

pytestmark = pytest.mark.virtual_time

# -- a client that leaves at once -------------------------------------------------------------------------------------


LEAVES: dict[str, Callable[[LiveClient], None]] = {
    "detaches": lambda client: client.tell("detach", id="chat-1"),
    "closes the page": LiveClient.disconnect,
}


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("is_slow", [False, True], ids=["", "while its login is looked up"])
async def test_an_approval_counts_whose_client_has_left_behind_it(leave: str, is_slow: bool) -> None:
    async def user_of(connection: HTTPConnection) -> str:
        if is_slow:
            await asyncio.sleep(0.1)
        return "ann"

    till = Till()
    script: list[Any] = [[call("pay", amount=5)], "Paid."]
    async with live_app(script, tools=(till.gated,), user_id=user_of) as live:
        async with live.socket() as client:
            asked = await client.say("Pay five")
            client.start_reply(asked.chunks[0]["messageId"], *decisions(asked, approved=True))
            LEAVES[leave](client)
            await asyncio.sleep(60)
        assert till.paid == [5]
        assert "Paid." in str(await live.messages())


async def test_a_message_whose_client_has_closed_the_page_is_kept_from_those_who_have_signed_out() -> None:
    users: list[str | None] = ["ann"]
    async with live_app(answers_for_ever, user_id=lambda _: users[-1]) as live:
        async with live.socket() as client:
            client.start_send(said("Hello"))
            users.append(None)
            client.disconnect()
            await asyncio.sleep(1)
        assert live.model.sessions == []


# -- a request that goes on -------------------------------------------------------------------------------------------


async def test_a_request_goes_on_after_its_last_chunk_on_another_socket() -> None:
    async with live_app(["One two three four."]) as live:
        async with live.socket() as client:
            request_id = client.start_send(said("Count"))
            await client.answer(request_id)
            whole = client.frames[request_id]
        async with live.socket() as other:
            for last in range(len(whole) - 1):
                got = await resume(other, request_id, lastSequence=last)
                assert got == [{"type": "start", "requestId": request_id}, *whole[last + 1 :]]
        assert len(live.model.requests) == 1


@pytest.mark.parametrize("last", [None, -1, "left out"])
async def test_without_a_last_sequence_it_comes_from_its_beginning(last: Any) -> None:
    async with live_app(["One two."]) as live:
        async with live.socket() as client:
            request_id = client.start_send(said("Count"))
            await client.answer(request_id)
        async with live.socket() as other:
            fields = {} if last == "left out" else {"lastSequence": last}
            got = await resume(other, request_id, **fields)
            assert got[1:] == client.frames[request_id]


async def test_a_request_that_is_resumed_in_its_middle_has_no_gap_and_no_chunk_twice() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("One ")
        await lost.wait()
        await session.say("two ")
        await session.taken()
        missed.set()
        await back.wait()
        await session.answer("three.")
        await session.expect("close")

    lost, missed, back = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with live_app(server) as live:
        async with live.socket() as client:
            request_id = client.start_send(said("Count"))
            await client.until(lambda: len(chunks(client, request_id)) == 4)
        lost.set()
        await missed.wait()
        async with live.socket() as other:
            fields = {"requestId": request_id, "id": "chat-1", "lastSequence": 3}
            other.send_frame({"type": "resume", **fields})
            await other.until(lambda: len(chunks(other, request_id)) == 1)
            back.set()
            await other.answer(request_id)
            got = [*client.frames[request_id], *other.frames[request_id]]
            assert sequences(got) == list(range(len(sequences(got))))
            deltas = [frame["chunk"].get("delta") for frame in got if frame["type"] == "chunk"]
            assert [delta for delta in deltas if delta] == ["One ", "two ", "three."]


async def test_two_sockets_may_read_one_request() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("One ")
        await both.wait()
        await session.answer("two.")
        await session.expect("close")

    both = asyncio.Event()
    async with live_app(server) as live, live.socket() as first, live.socket() as second:
        request_id = first.start_send(said("Count"))
        await first.until(lambda: len(chunks(first, request_id)) == 4)
        second.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1"})
        await second.until(lambda: len(chunks(second, request_id)) == 4)
        both.set()
        await first.answer(request_id)
        await second.answer(request_id)
        assert chunks(first, request_id) == chunks(second, request_id)


@pytest.mark.parametrize("ahead", [0, 1, 1000, 10**25])
async def test_nobody_can_be_ahead_of_the_stream(ahead: int) -> None:
    async with live_app(["One."]) as live, live.socket() as client:
        request_id = client.start_send(said("Count"))
        await client.answer(request_id)
        count = len(chunks(client, request_id))
        async with live.socket() as other:
            got = await resume(other, request_id, lastSequence=count + ahead)
            assert [(frame["type"], frame["code"]) for frame in got] == [("error", "malformed")]
            got = await resume(other, request_id, lastSequence=count - 1)  # it has all: only the end is missing
            assert [frame["type"] for frame in got] == ["start", "end"]


@pytest.mark.parametrize("last", [-2, -(10**25)])
async def test_nothing_comes_before_the_first_chunk(last: int) -> None:
    async with live_app(["One."]) as live, live.socket() as client:
        request_id = client.start_send(said("Count"))
        await client.answer(request_id)
        got = await resume(client, request_id, lastSequence=last)
        assert [(frame["type"], frame["code"]) for frame in got] == [("error", "malformed")]


# -- a request that comes twice ---------------------------------------------------------------------------------------


async def test_the_same_send_on_another_socket_is_begun_once_and_streamed_from_its_beginning() -> None:
    async def server(session: LiveSession) -> None:
        await session.expect_text()
        await session.say("One ")
        await lost.wait()
        await session.answer("two.")
        received = await session.expect("close")
        assert received.kind == "close"

    lost = asyncio.Event()
    async with live_app(server) as live:
        async with live.socket() as client:
            request_id = client.start_send(said("Count"))
            await client.until(lambda: len(chunks(client, request_id)) == 4)
        async with live.socket() as other:
            other.start_send(said("Count"), request_id=request_id)
            lost.set()
            answer = await other.answer(request_id)
            assert answer.text == "One two."
            other.messages.clear()
            seen = len(other.frames[request_id])
            other.start_send(said("Count"), request_id=request_id)  # after its end, too
            await other.until(lambda: len(other.frames[request_id]) == 2 * seen)
            assert other.frames[request_id][seen:] == other.frames[request_id][:seen]
        history = await live.messages()
        assert [message["role"] for message in history] == ["user", "assistant"]
    await live.model.finished()


async def test_the_same_send_at_the_same_time_on_two_sockets_is_begun_once() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as first, live.socket() as second:
        for client in (first, second):
            client.start_send(said("Hello"), request_id="same")
        answers = [await client.answer("same") for client in (first, second)]
        assert answers[0].chunks == answers[1].chunks
        assert answers[0].text == "Yes."
        assert len(await live.messages()) == 2


async def test_a_request_id_that_is_under_way_on_the_same_socket_is_refused_and_nothing_begins() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        client.start_send(said("Hello"), request_id="same")
        client.start_send(said("Hello"), request_id="same")
        await ping(client)
        await client.until(lambda: any(frame["type"] == "end" for frame in client.frames["same"]))
        kinds = [frame["type"] for frame in client.frames["same"]]
        assert (kinds.count("error"), kinds.count("end")) == (1, 1)
        assert len(await live.messages()) == 2


async def test_a_request_id_means_one_thing() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client, live.socket() as reloaded:
        await client.say("Hello", request_id="1")
        answer = await reloaded.say("Something else", request_id="1")
        assert answer.error
        assert answer.error["code"] == "malformed"
        assert answer.chunks == []
        assert (await reloaded.say("Something else", request_id="2")).text == "Yes."
        history = await live.messages()
        words = [message["parts"][-1]["text"] for message in history]
        assert words == ["Hello", "Yes.", "Something else", "Yes."]


async def test_request_ids_of_other_users_and_chats_are_other_requests() -> None:
    async with live_app(answers_for_ever) as live, live.socket("ann") as ann, live.socket("bob") as bob:
        await ann.say("I am Ann", request_id="1")
        assert (await bob.say("I am Bob", request_id="1")).text == "Yes."
        async with live.socket("ann", chat_id="chat-2") as again:
            assert (await again.say("In another chat", request_id="1")).text == "Yes."
        assert len(await live.messages("bob")) == 2
        assert len(await live.messages("ann", "chat-2")) == 2


async def test_a_refused_request_is_refused_again_and_in_the_same_way() -> None:
    async with live_app(answers_for_ever) as live, live.socket() as client:
        for _ in range(2):
            answer = await client.say("Again", request_id="1", trigger="regenerate-message")
            client.messages.clear()
            client.frames.pop("1")
            assert answer.error
            assert answer.error["code"] == "malformed"
        assert live.runs == 0
