"""A request that comes again is a retry: it is answered once and read twice."""

import asyncio
import json
from typing import Any

import pytest

from adk_stream_protocol.chat.turns import digest_of_message
from adk_stream_protocol.protocol.turn import FileInput, TextInput, Turn
from adk_stream_protocol.testing import Answer, call
from support.asgi import exchange
from support.conversations import asked_parts, folded, hanging
from support.pages import Till, page
from support.workers import workers

pytestmark = pytest.mark.virtual_time

FILE = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="}
OTHER_FILE = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aG8="}


def message(words: str = "Hello.", message_id: str = "m1", *files: dict[str, str]) -> dict[str, Any]:
    posted = {"id": message_id, "role": "user", "parts": [*files, {"type": "text", "text": words}]}
    return {"id": "c1", "trigger": "submit-message", "messages": [posted]}


def ids(messages: list[dict[str, Any]]) -> list[str]:
    return [message["id"] for message in messages]


# -- an answer given anew, without messages ---------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["answer", "question"])
async def test_an_answer_is_given_anew_without_messages(named: str) -> None:
    async with page("One.", "Two.") as at:
        first = await at.chat.post(message())
        named_id = first.message_id if named == "answer" else "m1"
        second = await at.chat.post({"id": "c1", "trigger": "regenerate-message", "messageId": named_id})
        assert (second.status, second.text) == (200, "Two.")
        assert asked_parts(at.chat.model.requests[-1]) == ["Hello."]
        assert ids(await at.chat.messages()) == ["m1", second.message_id]


@pytest.mark.parametrize("is_empty", [True, False], ids=["an empty chat", "a chat"])
async def test_what_is_not_there_is_not_answered_anew(is_empty: bool) -> None:
    async with page("One.") as at:
        if not is_empty:
            await at.chat.post(message())
        before = len(at.chat.model.requests)
        body = {"id": "c1", "trigger": "regenerate-message", "messageId": "no-such"}
        assert (await at.chat.post(body)).status == 404
        assert len(at.chat.model.requests) == before
        assert not at.chat.is_running


# -- the same message again, after its answer -------------------------------------------------------------------------


async def test_a_message_that_comes_again_is_answered_once_and_read_twice() -> None:
    async with page("Hello you.") as at:
        first = await at.chat.post(message())
        second = await at.chat.post(message())
        assert second.status == 200
        assert folded(second) == folded(first)
        assert len(at.chat.model.requests) == 1


async def test_a_message_that_comes_again_is_in_the_history_once() -> None:
    async with page("Hello you.") as at:
        answer = await at.chat.post(message())
        before = await at.chat.messages()
        await at.chat.post(message())
        assert await at.chat.messages() == before
        assert ids(before) == ["m1", answer.message_id]


async def test_a_message_that_comes_again_leaves_the_chat_free() -> None:
    async with page("Hello you.", "And you.") as at:
        await at.chat.post(message())
        await at.chat.post(message())
        assert (await at.chat.post(message("And?", "m2"))).text == "And you."


async def test_a_message_that_comes_again_shows_the_question_that_its_answer_waits_for() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as at:
        first = await at.chat.post(message())
        second = await at.chat.post(message())
        assert folded(second) == folded(first)
        at.read(second)
        at.decide("pay")
        assert (await at.answer()).text == "Paid."
        assert till.paid == [5]


async def test_a_message_whose_answer_went_on_after_an_approval_shows_all_of_it() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as at:
        at.read(await at.chat.post(message()))
        at.decide("pay")
        await at.answer()
        again = await at.chat.post(message())
        assert again.text == "Paid."
        assert [chunk["output"] for chunk in again.of_type("tool-output-available")] == [{"paid": 5}]
        assert till.paid == [5]


async def test_a_message_whose_answer_failed_comes_to_the_same_end_again() -> None:
    async with page(RuntimeError("no model")) as at:
        first = await at.chat.post(message())
        second = await at.chat.post(message())
        assert first.chunks[-1]["type"] == second.chunks[-1]["type"] == "error"
        assert first.chunks[-1]["errorText"] == second.chunks[-1]["errorText"]
        assert len(at.chat.model.requests) == 1


async def test_a_message_that_comes_again_on_another_worker_is_answered_once() -> None:
    async with workers("Hello you.") as staff:
        first = await staff.page().chat.post(message())
        second = await staff.page().chat.post(message())
        assert folded(second) == folded(first)
        assert len(staff.model.requests) == 1


OTHERS = {
    "words": (message(), message("Goodbye.")),
    "a file": (message("Look.", "m1", FILE), message("Look.", "m1", OTHER_FILE)),
    "one file more": (message("Look."), message("Look.", "m1", FILE)),
}


@pytest.mark.parametrize("other", OTHERS)
async def test_a_message_id_that_comes_again_with_other_content_is_refused(other: str) -> None:
    first, second = OTHERS[other]
    async with page("Hello you.") as at:
        await at.chat.post(first)
        before = await at.chat.messages()
        refused = await at.chat.post(second)
        assert (refused.status, (refused.error or {})["code"]) == (400, "malformed")
        assert await at.chat.messages() == before
        assert len(at.chat.model.requests) == 1


# -- the same message again, while its answer runs --------------------------------------------------------------------


async def test_a_message_that_comes_again_while_it_is_answered_reads_the_running_answer() -> None:
    model, agent = hanging("Hel", "lo you.")
    async with page(agent=agent) as at:
        first = asyncio.create_task(at.chat.post(message()))
        await model.hangs.wait()
        second = asyncio.create_task(at.chat.post(message()))
        await asyncio.sleep(0.1)
        model.go_on.set()
        assert folded(await second) == folded(await first)
        assert len(model.requests) == 1


async def test_a_message_that_comes_again_while_it_is_answered_is_told_at_once_what_there_is() -> None:
    model, agent = hanging("One ", "two.")
    async with page(agent=agent) as at:
        first = asyncio.create_task(at.chat.post(message()))
        await model.hangs.wait()
        told: list[bytes] = []
        body = json.dumps(message()).encode()
        second = asyncio.create_task(exchange(at.chat.app, body=body, on_send=told.append))
        await asyncio.sleep(0.1)
        assert b"two." in b"".join(told)
        model.go_on.set()
        await asyncio.gather(first, second)


async def test_a_message_id_that_comes_again_with_other_content_while_it_is_answered_is_refused() -> None:
    model, agent = hanging("Hel", "lo you.")
    async with page(agent=agent) as at:
        first = asyncio.create_task(at.chat.post(message()))
        await model.hangs.wait()
        assert (await at.chat.post(message("Goodbye."))).status == 400
        model.go_on.set()
        assert (await first).text == "Hello you."


# -- what is no retry -------------------------------------------------------------------------------------------------


async def test_an_answer_is_given_anew_also_after_a_retry() -> None:
    async with page("One.", "Two.") as at:
        await at.chat.post(message())
        await at.chat.post(message())
        assert (await at.chat.regenerate("m1")).text == "Two."


async def test_a_message_whose_answer_was_given_anew_reads_the_new_answer() -> None:
    async with page("One.", "Two.") as at:
        await at.chat.post(message())
        second = await at.chat.regenerate("m1")
        again = await at.chat.post(message())
        assert (again.message_id, again.text) == (second.message_id, "Two.")
        assert len(at.chat.model.requests) == 2


async def test_a_message_is_edited_under_its_own_id() -> None:
    async with page("One.", "Two.") as at:
        await at.chat.post(message())
        assert (await at.chat.edit("m1", "Goodbye.")).text == "Two."
        assert (await at.chat.post(message("Goodbye."))).text == "Two."
        assert (await at.chat.post(message())).status == 400
        assert len(at.chat.model.requests) == 2


async def test_a_message_that_was_taken_back_is_a_new_one() -> None:
    async with page("One.", "Two.", "Three.", "Four.") as at:
        await at.chat.post(message())
        await at.chat.post(message("More.", "m2"))
        await at.chat.edit("m1", "Goodbye.")
        again = await at.chat.post(message("More.", "m2"))
        assert again.text == "Four."
        assert [one["id"] for one in await at.chat.messages() if one["role"] == "user"] == ["m1", "m2"]


@pytest.mark.parametrize("say", ["the same", "something else"])
async def test_a_message_whose_run_was_lost_before_it_said_anything(say: str) -> None:
    """The same words are answered now; under the same id nothing else can be said."""
    async with workers("Lost.", "Here I am.") as staff:
        at = staff.page()
        await at.chat.post(message())
        events = staff.sessions.sessions["helper"]["ann"]["c1"].events  # pyright: ignore
        events[:] = [event for event in events if event.author == "user"]
        answer = await at.chat.post(message() if say == "the same" else message("Goodbye."))
        if say == "something else":
            assert answer.status == 400
            return
        assert (answer.status, answer.text) == (200, "Here I am.")
        assert [one["id"] for one in await at.chat.messages()] == ["m1", answer.message_id]
        assert asked_parts(staff.model.requests[-1]) == ["Hello."]


async def test_the_same_words_under_another_id_are_said_again() -> None:
    async with page("One.", "Two.") as at:
        await at.chat.post(message())
        assert (await at.chat.post(message(message_id="m2"))).text == "Two."


async def test_the_same_id_in_another_chat_is_another_message() -> None:
    async with page("One.", "Two.") as at:
        await at.chat.post(message())
        other: Answer = await at.chat.post({**message("Goodbye."), "id": "c2"})
        assert other.text == "Two."


# -- how a message is known again -------------------------------------------------------------------------------------


def said(*parts: TextInput | FileInput) -> str:
    return digest_of_message(Turn("c1", "m1", parts, None, None))


def test_a_message_is_known_again_by_what_it_says() -> None:
    texts = [
        said(),
        said(TextInput("a")),
        said(TextInput("b")),
        said(TextInput("a"), TextInput("b")),
        said(TextInput("ab")),
        said(FileInput("text/plain", b"c")),
        said(FileInput("text/plain", "https://a.example")),
    ]
    assert len(set(texts)) == len(texts)
    assert {len(text) for text in texts} == {32}
    assert said(FileInput("text/plain", b"c")) == said(FileInput("text/plain", "c"))
    assert said(TextInput("a")) == "bf5d3affb73efd2ec6c36ad3112dd933"
