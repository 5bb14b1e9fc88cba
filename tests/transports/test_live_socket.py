"""The live socket: who may open it, which chats it carries, and how its requests are stopped."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from starlette.requests import HTTPConnection

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from support.live_client import Closed
from transports.live_apps import (
    LiveApp,
    Reader,
    answers_for_ever,
    chunks,
    live_app,
    ping,
    play,
    said,
    talks_for_ever,
    texts,
)

# -- the handshake ----------------------------------------------------------------------------------------------------


async def refusal(live: LiveApp, user: str = "ann", **options: Any) -> int:
    """The code of a socket that is closed without having been open."""
    client = Reader()
    async with live.socket(user, client=client, **options):
        client.tell("ping")
        with pytest.raises(Closed) as closed:
            await client.own("pong")
    assert not client.accepted
    return closed.value.code


async def no_such_user(_: HTTPConnection) -> str | None:
    return None


def login_is_down(_: HTTPConnection) -> str | None:
    raise RuntimeError


@pytest.mark.parametrize("user_id", [lambda _: None, lambda _: "", no_such_user, login_is_down])
def test_nobody_is_let_in_whom_the_application_does_not_know(user_id: Any) -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever, user_id=user_id) as live:
            assert await refusal(live) == 1008

    play(scenario)


def test_a_page_of_another_origin_is_refused_before_anybody_is_asked_who_it_is() -> None:
    async def scenario() -> None:
        asked: list[str | None] = []

        def user_id(connection: HTTPConnection) -> str:
            asked.append(connection.headers.get("origin"))
            return "ann"

        here, friend = "http://testserver", "https://friend.example"
        async with live_app(answers_for_ever, user_id=user_id, allowed_origins=[friend]) as live:
            assert await refusal(live, headers={"origin": "https://evil.example"}) == 1008
            assert asked == []
            for origin in (here, friend):
                async with live.socket(headers={"origin": origin}) as client:
                    await ping(client)
            assert asked == [here, friend]

    play(scenario)


def test_a_user_has_five_sockets_and_gets_the_place_of_a_closed_one() -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever) as live:
            first = live.socket()
            await ping(await first.__aenter__())
            async with live.socket() as second, live.socket(), live.socket(), live.socket():
                assert await refusal(live) == 1008
                async with live.socket("bob") as other:
                    await ping(other)
                await ping(second)
                await first.__aexit__(None, None, None)
                async with live.socket() as sixth:
                    await ping(sixth)
                    assert await refusal(live) == 1008

    play(scenario)


def test_the_number_of_sockets_is_a_limit_that_can_be_set() -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever, limits=Limits(max_sockets_per_user=1)) as live, live.socket() as client:
            await ping(client)
            assert await refusal(live) == 1008

    play(scenario)


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
def test_the_subprotocol_is_selected_if_it_was_offered(offered: tuple[str, ...], selected: str | None) -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever) as live, live.socket(subprotocols=offered) as client:
            await ping(client)
            assert client.subprotocol == selected

    play(scenario)


# -- several chats ----------------------------------------------------------------------------------------------------


def test_a_ping_is_answered_by_a_pong() -> None:
    async def scenario() -> None:
        async with live_app() as live, live.socket() as client:
            client.tell("ping")
            assert await client.own("pong") == {"type": "pong", "requestId": "-"}
            assert live.runs == 0

    play(scenario)


def test_one_socket_carries_several_chats_at_once() -> None:
    async def scenario() -> None:
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
                told = await live.messages(chat_id=f"chat-{word}")
                assert [message["parts"][-1]["text"] for message in told] == [word, f"You said {word}"]

    play(scenario)


def test_the_chat_of_another_user_does_not_exist() -> None:
    async def scenario() -> None:
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

    play(scenario)


def test_the_same_chat_id_of_two_users_means_two_chats() -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever) as live, live.socket("ann") as ann, live.socket("bob") as bob:
            await ann.say("I am Ann")
            await bob.say("I am Bob")
            for user, words in (("ann", "I am Ann"), ("bob", "I am Bob")):
                told = await live.messages(user)
                assert [message["parts"][-1]["text"] for message in told] == [words, "Yes."]

    play(scenario)


@pytest.mark.parametrize("chat_id", ["", "a b", "a/b", "..", "user", "c:x", "x" * 129])
def test_what_cannot_be_the_id_of_a_chat_is_refused(chat_id: str) -> None:
    async def scenario() -> None:
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

    play(scenario)


# -- abort and stop ---------------------------------------------------------------------------------------------------


def test_an_abort_stops_the_run() -> None:
    async def scenario() -> None:
        async with live_app(talks_for_ever) as live, live.socket() as client:
            request_id = client.start_send(said("Go on"))
            await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
            client.send_frame({"type": "abort", "requestId": request_id})
            answer = await client.answer(request_id)
            assert answer.text == "Well, "
            assert answer.types[-3:] == ["text-end", "finish-step", "abort"]
            await nothing_runs(live)
            await live.model.finished()  # the model's side was told to close

    play(scenario)


async def nothing_runs(live: LiveApp) -> None:
    while live.runs:
        await asyncio.sleep(0.1)


def test_an_abort_right_behind_its_send_is_not_lost() -> None:
    async def scenario() -> None:
        async with live_app(talks_for_ever) as live, live.socket() as client:
            request_id = client.start_send(said("Go on"))
            client.send_frame({"type": "abort", "requestId": request_id})
            await client.answer(request_id)
            await nothing_runs(live)

    play(scenario)


def test_an_abort_only_ends_the_reading_where_runs_are_to_survive_it() -> None:
    async def scenario() -> None:
        async def server(session: LiveSession) -> None:
            await session.expect_text()
            await session.say("Well, ")
            await go_on.wait()
            await session.answer("fine.")
            await session.expect("close")

        go_on = asyncio.Event()
        async with live_app(server, limits=Limits(abort_stops_run=False)) as live, live.socket() as client:
            request_id = client.start_send(said("Go on"))
            await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, request_id)))
            client.send_frame({"type": "abort", "requestId": request_id})
            await ping(client)
            seen = len(client.frames[request_id])
            go_on.set()
            again = await client.resume()
            assert again.text == "Well, fine."
            assert len(client.frames[request_id]) == seen
            told = await live.messages()
            assert told[-1]["parts"][-1]["text"] == "Well, fine."

    play(scenario)


def test_an_abort_of_what_has_ended_or_never_was_does_nothing() -> None:
    async def scenario() -> None:
        async with live_app(answers_for_ever) as live, live.socket() as client:
            request_id = client.start_send(said("Hello"))
            await client.answer(request_id)
            client.send_frame({"type": "abort", "requestId": request_id})
            client.send_frame({"type": "abort", "requestId": "never-was"})
            await ping(client)
            assert client.frames[request_id][-1]["type"] == "end"
            assert "never-was" not in client.frames
            assert live.runs == 1
            assert (await client.say("Still there?")).text == "Yes."
            assert len(live.model.sessions) == 1

    play(scenario)


def test_an_abort_of_an_old_request_does_not_stop_what_another_has_started() -> None:
    async def scenario() -> None:
        async def server(session: LiveSession) -> None:
            await session.expect_text()
            await session.answer("Yes.")
            await talks_for_ever(session)

        async with live_app(server) as live, live.socket() as client:
            old = client.start_send(said("One"))
            await client.answer(old)
            new = client.start_send(said("Two", "u2"))
            await client.until(lambda: any(chunk["type"] == "text-delta" for chunk in chunks(client, new)))
            client.send_frame({"type": "abort", "requestId": old})
            await ping(client)
            assert live.bridge._service.running("ann", "chat-1") is not None

    play(scenario)


def test_stop_ends_the_session_of_the_attached_chat_and_no_other() -> None:
    async def scenario() -> None:
        async with live_app(talks_for_ever) as live, live.attached(chat_id="chat-1") as client:
            requests = [
                client.start_send(said("Go on", f"u{number}"), id=f"chat-{number}", messages=[said("Go on")])
                for number in (1, 2)
            ]
            for request_id in requests:
                await client.until(lambda id=request_id: len(chunks(client, id)) >= 3)
            client.tell("stop")
            assert (await client.answer(requests[0])).chunks[-1]["type"] == "abort"
            while live.runs > 1:
                await asyncio.sleep(0.1)
            assert live.bridge._service.running("ann", "chat-2") is not None
            assert client.frames[requests[1]][-1]["type"] == "chunk"

    play(scenario)


def test_what_was_told_is_kept_also_when_the_connection_to_the_model_takes_long_to_end() -> None:
    class Slow(ScriptedLiveModel):
        @asynccontextmanager
        async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection]:
            try:
                async with super().connect(llm_request) as connection:
                    yield connection
            finally:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(10)
                await asyncio.sleep(10)

    async def scenario() -> None:
        async with live_app(model=Slow(talks_for_ever)) as live, live.attached() as client:
            request_id = client.start_send(said("A story"))
            await client.until(lambda: len(chunks(client, request_id)) >= 3)
            client.tell("stop")
            answer = await client.answer(request_id)
            assert answer.chunks[-1]["type"] == "abort"
            assert texts(await live.messages()) == [("user", "A story"), ("assistant", answer.text)]
            await asyncio.sleep(11)

    play(scenario)
