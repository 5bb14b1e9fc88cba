"""A live socket refuses users who have signed out, and failures are sent and logged without their texts."""

import asyncio
import json
import logging
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from starlette.requests import HTTPConnection

from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, ChatKey
from adk_stream_protocol.store.base import Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from transports.live_apps import answers_for_ever, live_app, ping, play, said

pytestmark = pytest.mark.virtual_time

CANARY = "canary-91c4"


# -- the login --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", [None, "", "bob", RuntimeError], ids=["nobody", "nameless", "another", "fails"])
async def test_the_user_is_asked_for_again_with_every_send(then: Any) -> None:
    logged_in: list[Any] = ["ann"]

    async def user_id(_: HTTPConnection) -> str | None:
        if logged_in[0] is RuntimeError:
            raise RuntimeError(CANARY)
        return logged_in[0]

    async with live_app(answers_for_ever, user_id=user_id) as live:
        async with live.socket() as client:
            assert (await client.say("Hello")).text == "Yes."
            logged_in[0] = then
            answer = await client.say("Hello again")
            assert answer.error
            assert (answer.error["code"], answer.error["errorText"]) == ("no-user", "Sign in first.")
            assert answer.chunks == []
            assert await client.until(lambda: client.close_code) == 1008
        logged_in[0] = "ann"
        assert [message["role"] for message in await live.messages()] == ["user", "assistant"]
        async with live.socket() as client:
            assert (await client.say("And now?")).text == "Yes."
        heard = [received.text for received in live.model.sessions[0].received if received.kind == "content"]
        assert heard == ["Hello", "And now?"]


async def test_the_socket_of_a_user_who_has_signed_out_is_closed_soon() -> None:
    signed_out: set[str] = set()

    def user_id(connection: HTTPConnection) -> str | None:
        user = connection.headers["x-user"]
        asked.append(user)
        return None if user in signed_out else user

    asked: list[str] = []
    async with (
        live_app(answers_for_ever, user_id=user_id) as live,
        live.socket("ann") as ann,
        live.socket("bob") as bob,
    ):
        await ping(ann)
        await ping(bob)
        await asyncio.sleep(3 * 300 - 1)
        assert sorted(asked) == sorted(["ann", "bob"] * 3)
        signed_out.add("ann")
        await asyncio.sleep(2)
        assert ann.close_code == 1008
        await ping(bob)
        assert bob.close_code is None


async def test_an_approval_by_a_user_who_has_signed_out_does_not_count() -> None:
    logged_in: list[str | None] = ["ann"]
    paid: list[int] = []

    def pay(amount: int) -> dict[str, int]:
        """Pays."""
        paid.append(amount)
        return {"paid": amount}

    tools = (FunctionTool(pay, require_confirmation=True),)
    script = [[call("pay", amount=1)], "Paid."]
    async with live_app(script, tools=tools, user_id=lambda _: logged_in[0]) as live:
        async with live.socket() as client:
            asked = await client.say("Pay 1")
            logged_in[0] = None
            answer = await client.decide(asked, approved=True)
            assert answer.error
            assert answer.error["code"] == "no-user"
            await asyncio.sleep(5)
            assert paid == []
        logged_in[0] = "ann"
        async with live.socket() as client:
            assert (await client.decide(asked, approved=True)).text == "Paid."
            assert paid == [1]


# -- what is said about failures --------------------------------------------------------------------------------------


def our_log(caplog: pytest.LogCaptureFixture) -> str:
    ours = [record for record in caplog.records if record.name.startswith(("adk_stream_protocol", "asyncio"))]
    return "\n".join(f"{record.getMessage()} {record.exc_info} {record.exc_text}" for record in ours)


def test_a_failure_is_sent_as_a_code_and_logged_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        def prepare(*_: Any) -> None:
            raise ValueError(CANARY)

        async with live_app(answers_for_ever, speaks=True, prepare=prepare) as live, live.attached() as client:
            answer = await client.say(f"Hello {CANARY}", request_id="r1")
            assert answer.error == {
                "type": "error",
                "requestId": "r1",
                "code": "internal",
                "errorText": "The server failed. Try again.",
            }
            client.send_frame(b"\1\0")
            assert await client.own("error") == {
                "type": "error",
                "requestId": "-",
                "id": "chat-1",
                "code": "internal",
                "message": "The server failed. Try again.",
            }
            assert live.runs == 0

    play(scenario)
    assert "ValueError" in our_log(caplog)
    assert CANARY not in our_log(caplog)
    assert "Traceback" not in our_log(caplog)


def test_a_request_that_fails_when_its_socket_is_gone_is_not_logged_with_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async def prepare(*_: Any) -> None:
            asked.set()
            await answered.wait()
            raise ValueError(CANARY)

        asked, answered = asyncio.Event(), asyncio.Event()
        async with live_app(answers_for_ever, prepare=prepare) as live:
            async with live.socket() as client:
                client.start_send(said("Hello"))
                await asked.wait()
            answered.set()
            await asyncio.sleep(0.1)
            assert live.runs == 0

    play(scenario)
    assert CANARY not in our_log(caplog)
    assert "never retrieved" not in our_log(caplog)


def test_no_refusal_repeats_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        part = {"type": "text", "text": CANARY}
        odd_messages = [
            {"id": CANARY + "/", "role": "user", "parts": [part]},
            {"id": "u1", "role": CANARY, "parts": [part]},
            {"id": "u1", "role": "user", "parts": [{"type": CANARY}]},
            {"id": "u1", "role": "user", "parts": [{"type": "file", "mediaType": CANARY, "url": CANARY}]},
            {"id": "m1", "role": "assistant", "parts": [{"type": "tool-pay", "toolCallId": CANARY, "output": CANARY}]},
            {"parts": CANARY},
        ]
        async with live_app(answers_for_ever) as live, live.socket() as client:
            for message in odd_messages:
                request_id = client.new_request()
                frame = {"type": "send", "requestId": request_id, "id": "chat-1", "messages": [message]}
                client.send_frame(frame)
                answer = await client.answer(request_id)
                assert answer.error
                assert answer.error["code"] in ("malformed", "not-found")
                assert set(answer.error) == {"type", "requestId", "code", "errorText"}
            for text in (f'{{"type":"{CANARY}","requestId":"-"}}', CANARY, f'{{"requestId":"r9","x":"{CANARY}"}}'):
                client.send_frame(text)
            client.tell("attach", id=CANARY + "/")
            await ping(client)
            assert CANARY not in json.dumps(client.everything)
            assert live.runs == 0

    play(scenario)
    assert CANARY not in our_log(caplog)


def test_a_model_that_fails_and_a_tool_that_fails_keep_their_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        def work() -> None:
            """Works."""
            raise ValueError(CANARY)

        script = [[call("work")], "It failed.", RuntimeError(CANARY)]
        async with live_app(script, tools=(work,)) as live, live.socket() as client:
            assert (await client.say("Work")).text == "It failed."
            answer = await client.say("Again")
            assert answer.chunks[-1]["type"] == "error"
            assert CANARY not in json.dumps(client.everything)
            await ping(client)

    play(scenario)
    assert CANARY not in our_log(caplog)


class BrittleStore(MemoryStore):
    """Can be down."""

    is_down = False

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        if self.is_down:
            raise StoreUnavailable
        return await super().read(chat, call)


@pytest.mark.parametrize("way", ["stop", "the server closes"])
def test_a_session_that_waits_for_an_approval_can_be_ended_while_the_store_is_down(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        def pay(amount: int) -> None:
            """Pays."""
            raise AssertionError

        store, tools = BrittleStore(), (FunctionTool(pay, require_confirmation=True),)
        async with live_app([[call("pay", amount=1)]], tools=tools, store=store) as live, live.attached() as client:
            await client.say("Pay 1")
            store.is_down = True
            if way == "stop":
                client.tell("stop")
                await ping(client)
            else:
                await live.bridge.aclose()
            await asyncio.sleep(10)
            assert live.runs == 0

    play(scenario)
    assert "Traceback" not in our_log(caplog)
    assert "never retrieved" not in our_log(caplog)
