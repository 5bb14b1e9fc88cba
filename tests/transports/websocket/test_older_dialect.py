"""Clients that speak the frames of the design notes: the same sessions, in one stream that they answer half-way."""

import json
from typing import Any

import pytest

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.testing import call
from live.live_pages import DENIED, both_families, told_results, until
from support.older_client import CONFIRMATION, OlderClient, is_one_stream, older_socket
from support.pages import Till
from transports.live_apps import answers_for_ever, live_app, talks_for_ever
from transports.older_pages import ASKS, older_page

pytestmark = pytest.mark.virtual_time

PLACE = {"latitude": 35.68, "longitude": 139.77}
SAYS = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]


def where() -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


def without_deltas(types: list[str]) -> list[str]:
    """One delta for each text."""
    return [kind for place, kind in enumerate(types) if kind != "text-delta" or types[place - 1] != "text-delta"]


# -- which frames a socket speaks -------------------------------------------------------------------------------------

HELLO = [{"role": "user", "parts": [{"type": "text", "text": "Hello"}]}]


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "message", "version": "1.0", "data": {"messages": HELLO}},
        {"type": "message", "version": "1.0", "messages": HELLO},
        {"type": "message", "messages": HELLO},
        {"type": "message", "version": "1.0", "timestamp": 1735600000000, "id": "chat-123", "messages": HELLO}
        | {"trigger": "submit-message", "messageId": "msg-1"},
        {"type": "message", "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]},
    ],
    ids=["nested", "flat", "without a version", "with everything", "content"],
)
async def test_a_socket_that_begins_with_an_older_frame_is_answered_in_older_frames(frame: dict[str, Any]) -> None:
    async with live_app(answers_for_ever) as live, older_socket(live.app) as client:
        client.send_frame(frame)
        await client.done()
        assert client.text == "Yes."
        assert is_one_stream(client.types)
        assert without_deltas(client.types) == ["start", *SAYS, "finish", "[DONE]"]


async def test_a_ping_is_answered_with_its_time() -> None:
    async with live_app(answers_for_ever) as live, older_socket(live.app) as client:
        client.send_frame({"type": "ping", "version": "1.0", "timestamp": 1735600000000})
        client.send_frame({"type": "ping", "version": "1.0", "data": {"timestamp": 1.5}})
        client.send_frame({"type": "ping", "version": "1.0"})
        await client.until(lambda: len(client.texts) == 3)
        pongs = [json.loads(text) for text in client.texts]
        assert [pong["timestamp"] for pong in pongs] == [1735600000000, 1.5, None]
        assert {pong["type"] for pong in pongs} == {"pong"}
        client.write("Hello")
        await client.done()
        assert client.text == "Yes."


async def test_the_first_frame_decides_for_the_whole_socket() -> None:
    async with live_app(answers_for_ever) as live:
        async with older_socket(live.app) as older:
            older.send_frame({"type": "ping", "version": "1.0"})
            older.send_frame({"type": "ping", "requestId": "-"})
            older.send_frame({"type": "send", "requestId": "r1", "id": "c1", "messages": HELLO})
            refusal = await older.refused()
            assert refusal["code"] == "malformed"
            assert "older frames" in refusal["errorText"]
            assert len(older.texts) == 4  # two pongs, the refusal, and its end
        async with live.socket() as client:
            client.tell("ping")
            client.send_frame({"type": "message", "version": "1.0", "messages": HELLO})
            assert (await client.own("error"))["code"] == "malformed"
        assert live.runs == 0


# -- the chat ---------------------------------------------------------------------------------------------------------


async def test_the_chat_is_named_by_the_address_of_the_socket() -> None:
    async with live_app(answers_for_ever) as live:
        for number in (1, 2):
            async with older_socket(live.app, chat="c1") as client:
                client.write(f"Hello {number}", id="another")
                await client.done()
        said = [message["parts"][-1]["text"] for message in await live.messages(chat_id="c1")]
        assert said == ["Hello 1", "Yes.", "Hello 2", "Yes."]


async def test_without_a_name_each_socket_has_a_chat_of_its_own() -> None:
    async with live_app(answers_for_ever) as live:
        for _ in range(2):
            async with older_socket(live.app) as client:
                client.write("Hello", id="the-same")
                await client.done()
                client.write("And?", id="the-same")
                await client.done(2)
        chats = await live.bridge._service.chats("ann")  # pyright: ignore[reportPrivateUsage]
        assert len(chats) == 2
        for chat in chats:
            assert len(await live.messages(chat_id=chat["id"])) == 4


async def test_what_cannot_be_the_id_of_a_chat_is_refused() -> None:
    async with live_app(answers_for_ever) as live, older_socket(live.app, chat="user") as client:
        client.write("Hello")
        assert (await client.refused())["code"] == "malformed"
        await client.done()
        assert live.runs == 0


async def test_the_chat_of_another_user_does_not_exist() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as (at, ann):
        ann.write("Pay.")
        question = await ann.asked()
        async with older_socket(at.app, "bob", chat="c1") as bob:
            bob.confirm(question)
            assert (await bob.refused())["code"] == "not-found"
        assert till.paid == []


# -- answers in mid-stream --------------------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_a_payment_is_decided_in_the_middle_of_one_stream(family: str, approved: bool) -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Done.", family=family, tools=(till.gated,)) as (at, client):
        client.write("Pay.")
        question = await client.asked()
        assert client.types == ["start", *ASKS, *ASKS]
        (made,) = client.inputs("pay")
        assert question["toolCallId"].startswith("adk-")
        assert question["input"]["originalFunctionCall"] == {
            "id": made["toolCallId"],
            "name": "pay",
            "args": {"amount": 5},
        }
        assert question["input"]["toolConfirmation"]["confirmed"] is False
        client.confirm(question, approved)
        await client.done()
        assert till.paid == ([5] if approved else [])
        assert client.text == "Done."
        assert is_one_stream(client.types)
        outcome = "tool-output-available" if approved else "tool-output-denied"
        assert [chunk["toolCallId"] for chunk in client.of_type(outcome)] == [made["toolCallId"]]
        assert told_results(at.model) == [{"paid": 5} if approved else DENIED]


def by_frame(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    client.confirm(question, approved)


def by_nested_frame(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    data = {"toolCallId": question["toolCallId"], "result": {"confirmed": approved}}
    client.send_frame({"type": "tool-result", "version": "1.0", "data": data})


def by_word(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    client.tool_result(question["toolCallId"], {"approval": "approved" if approved else "denied"})


def by_the_calls_own_id(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    original = question["input"]["originalFunctionCall"]
    result = {"approved": approved, "user_message": "User approved" if approved else "User denied"}
    part = {"type": "tool-result", "toolCallId": original["id"], "toolName": original["name"], "result": result}
    client.message({"id": "fr-1", "role": "user", "content": [part]})


def by_the_confirmations_part(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    part = {
        "type": f"tool-{CONFIRMATION}",
        "toolCallId": question["toolCallId"],
        "toolName": CONFIRMATION,
        "state": "approval-responded",
        "approval": {"id": question["toolCallId"], "approved": approved},
    }
    client.message({"role": "user", "parts": [part]})


def by_the_assistants_message(client: OlderClient, question: dict[str, Any], approved: bool) -> None:
    part = {"type": f"tool-{CONFIRMATION}", "toolCallId": question["toolCallId"], "state": "output-available"}
    part |= {"input": question["input"], "output": {"confirmed": approved}}
    message_id = client.chunks[0]["messageId"]
    said = {"id": "msg-1", "role": "user", "content": "Pay."}  # of the past: nobody reads it
    client.message(said, {"id": message_id, "role": "assistant", "parts": [part]}, id="chat-123", messageId="msg-1")


@pytest.mark.parametrize(
    "answer",
    [by_frame, by_nested_frame, by_word, by_the_calls_own_id, by_the_confirmations_part, by_the_assistants_message],
    ids=lambda form: form.__name__,
)
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "denied"])
async def test_every_form_of_the_notes_decides(answer: Any, approved: bool) -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Done.", tools=(till.gated,)) as (_, client):
        client.write("Pay.")
        answer(client, await client.asked(), approved)
        await client.done()
        assert till.paid == ([5] if approved else [])
        assert client.text == "Done."
        assert is_one_stream(client.types)


async def test_a_browsers_tool_is_answered_with_its_output() -> None:
    async with older_page([call("where")], "There.", tools=(client_tool(where),)) as (at, client):
        client.write("Where?")
        made = await client.called("where")
        assert client.types == ["start", *ASKS]
        client.tool_result(made["toolCallId"], PLACE)
        await client.done()
        assert is_one_stream(client.types)
        assert client.text == "There."
        assert told_results(at.model) == [PLACE]


@pytest.mark.parametrize("pattern", ["A", "B"])
async def test_a_browsers_tool_that_needs_approval_takes_both_patterns(pattern: str) -> None:
    async with older_page([call("where")], "There.", tools=(client_tool(where, approve=True),)) as (at, client):
        client.write("Where?")
        question = await client.asked()
        assert client.types == ["start", *ASKS, *ASKS]
        call_id = question["input"]["originalFunctionCall"]["id"]
        yes = {"type": "tool-result", "toolCallId": question["toolCallId"], "result": {"approval": "approved"}}
        place = {"type": "tool-result", "toolCallId": call_id, "result": PLACE}
        if pattern == "A":
            client.message({"role": "user", "content": [yes, place]})
        else:
            client.message({"role": "user", "content": [yes]})
            await until(lambda: client.types.count("finish-step") == 2 and not client.types.count("[DONE]"))
            client.message({"role": "user", "content": [place]})
        await client.done()
        assert is_one_stream(client.types)
        assert client.text == "There."
        assert told_results(at.model) == [PLACE]


async def test_an_output_without_an_approval_is_refused_and_the_stream_stays_open() -> None:
    async with older_page([call("where")], "There.", tools=(client_tool(where, approve=True),)) as (at, client):
        client.write("Where?")
        question = await client.asked()
        client.tool_result(question["input"]["originalFunctionCall"]["id"], PLACE)
        assert (await client.refused())["code"] == "not-found"
        assert "[DONE]" not in client.types
        client.confirm(question, False)
        await client.done()
        assert client.text == "There."
        assert told_results(at.model) == [DENIED]


# -- several calls ----------------------------------------------------------------------------------------------------


@both_families
async def test_one_call_after_the_other_is_one_stream(family: str) -> None:
    till = Till()
    script = ([call("pay", amount=1)], [call("pay", amount=2)], [call("pay", amount=3)], "All done.")
    async with older_page(*script, family=family, tools=(till.gated,)) as (_, client):
        client.write("Pay them.")
        for number, yes in ((1, True), (2, False), (3, True)):
            client.confirm(await client.asked(number), yes)
        await client.done()
        assert till.paid == [1, 3]
        assert client.text == "All done."
        assert is_one_stream(client.types)
        assert len(client.of_type("tool-output-denied")) == 1


@pytest.mark.parametrize("one_by_one", [True, False], ids=["one by one", "at once"])
async def test_two_calls_of_one_message_are_answered_in_one_stream(one_by_one: bool) -> None:
    till = Till()
    both = [call("pay", amount=1), call("pay", amount=2)]
    async with older_page(both, "Done.", tools=(till.gated,)) as (_, client):
        client.write("Pay both.")
        first, second = await client.asked(1), await client.asked(2)
        client.confirm(first)
        if one_by_one:
            await until(lambda: till.paid == [1])
        client.confirm(second, False)
        await client.done()
        assert till.paid == [1]
        assert client.text == "Done."
        assert is_one_stream(client.types)
        outcomes = [kind for kind in client.types if kind.startswith("tool-output")]
        assert {"tool-output-available", "tool-output-denied"} == set(outcomes)


async def test_an_answer_that_comes_twice_is_told_once_more_and_runs_once() -> None:
    till = Till()
    async with older_page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as (_, client):
        client.write("Pay.")
        question = await client.asked()
        client.confirm(question)
        client.confirm(question)
        await client.done()
        client.confirm(question, False)
        await client.done(2)
        assert till.paid == [5]
        assert client.of_type("error") == []
        assert client.chunks[-1] == {"type": "[DONE]"}


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ("no json", "not JSON"),
        ("[]", "not an object"),
        ({"type": "audio_chunk", "version": "1.0", "chunk": "AAA="}, "older frames"),
        ({"type": "message", "version": "2.0", "messages": HELLO}, "version"),
        ({"type": "message", "version": "1.0"}, "`messages` is missing"),
        ({"type": "message", "version": "1.0", "data": []}, "`data`"),
        ({"type": "message", "messages": [{"role": "user", "content": "Hello"}]}, "AI SDK 4"),
        ({"type": "message", "messages": HELLO, "trigger": "regenerate-message"}, "regenerated or edited"),
        ({"type": "tool_result", "version": "1.0", "result": {}}, "`toolCallId` is missing"),
        ({"type": "tool_result", "version": "1.0", "toolCallId": "c1"}, "`result` is missing"),
        (b"\0\0", "subprotocol"),
    ],
)
async def test_a_bad_frame_gets_one_refusal_and_the_end_of_it(frame: Any, says: str) -> None:
    async with live_app(answers_for_ever) as live, older_socket(live.app) as client:
        client.send_frame({"type": "ping", "version": "1.0"})
        client.send_frame(frame)
        refusal = await client.refused()
        assert says in refusal["errorText"]
        assert set(refusal) == {"type", "errorText", "code"}
        await client.done()
        client.write("Hello")
        await client.done(2)
        assert client.types == ["error", "[DONE]", *client.types[2:]]
        assert is_one_stream(client.types[2:])


async def test_a_refusal_does_not_end_a_stream() -> None:
    async with live_app(talks_for_ever) as live, older_socket(live.app, chat="c1") as client:
        client.write("Hello")
        client.write("And?")
        client.send_frame("no json")
        await client.refused(2)
        await client.until(lambda: client.text == "Well, ")
        assert {refusal["code"] for refusal in client.of_type("error")} == {"run-active", "malformed"}
        assert "[DONE]" not in client.types
        await live.bridge._service.stop("ann", "c1")  # pyright: ignore[reportPrivateUsage]
        await client.done()


async def test_frames_that_are_too_many_are_refused() -> None:
    async with live_app(answers_for_ever, limits=Limits(max_frames_per_s=1)) as live, older_socket(live.app) as client:
        for _ in range(11):
            client.send_frame({"type": "ping", "version": "1.0"})
        assert (await client.refused())["code"] == "rate-limited"
