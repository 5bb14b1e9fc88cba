"""Second thoughts: an answer given anew, a message said differently. The conversation goes back to before them, and
the model is asked as if what followed had never been."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import ToolContext
from google.genai import types

from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, call
from support.conversations import Conversation, Store, asked_parts, conversation, every_store, hanging
from support.pages import Till, page, results_told


def id_of(answer: Answer) -> str:
    return answer.chunks[0]["messageId"]


def last_request(chat: Conversation) -> list[Any]:
    """All that the last model call was about, for comparison."""
    request = chat.model.requests[-1]
    return [request.config.system_instruction, *(content.model_dump(exclude_none=True) for content in request.contents)]


async def asked_afresh(*turns: str, store: Store) -> list[Any]:
    """The last model call of a conversation in which just these things were said."""
    replies = [f"Answer {number}." for number in range(1, len(turns) + 1)]
    async with conversation(*replies, store=store) as chat:
        for said in turns:
            await chat.say(said)
        return last_request(chat)


async def three_turns(chat: Conversation) -> list[Answer]:
    return [await chat.say(said) for said in ("one", "two", "three")]


SecondThought = Callable[[Conversation, list[Answer]], Coroutine[Any, Any, Answer]]

# What the client posts, what the conversation is after it.
SECOND_THOUGHTS: dict[str, tuple[SecondThought, list[str]]] = {
    "the last answer": (lambda chat, _: chat.regenerate("u3"), ["one", "two", "three"]),
    "the last answer, by its id": (lambda chat, said: chat.regenerate("u3", id_of(said[2])), ["one", "two", "three"]),
    "the last answer, by its question's id": (lambda chat, _: chat.regenerate("u3", "u3"), ["one", "two", "three"]),
    "an earlier answer": (lambda chat, said: chat.regenerate("u2", id_of(said[1])), ["one", "two"]),
    "an earlier answer, by its question's id": (lambda chat, _: chat.regenerate("u2", "u2"), ["one", "two"]),
    "an earlier answer, by nothing but what is left": (lambda chat, _: chat.regenerate("u2"), ["one", "two"]),
    "the first answer": (lambda chat, said: chat.regenerate("u1", id_of(said[0])), ["one"]),
    "the last message, edited": (lambda chat, _: chat.edit("u3", "drei"), ["one", "two", "drei"]),
    "an earlier message, edited": (lambda chat, _: chat.edit("u2", "zwei"), ["one", "zwei"]),
    "the first message, edited": (lambda chat, _: chat.edit("u1", "eins"), ["eins"]),
}


@every_store
@pytest.mark.parametrize("what", SECOND_THOUGHTS)
async def test_the_model_is_asked_as_if_what_followed_had_never_been(store: Store, what: str) -> None:
    think_again, left = SECOND_THOUGHTS[what]
    script = ["Answer 1.", "Answer 2.", "Answer 3.", "Anew.", "And on."]
    async with conversation(*script, store=store) as chat:
        said = await three_turns(chat)
        anew = await think_again(chat, said)
        assert anew.text == "Anew."
        assert id_of(anew) not in [id_of(answer) for answer in said]
        assert last_request(chat) == await asked_afresh(*left, store=store)
        await chat.say("and on")
        before = [words for number, said in enumerate(left[:-1], 1) for words in (said, f"Answer {number}.")]
        assert asked_parts(chat.model.requests[-1]) == [*before, left[-1], "Anew.", "and on"]


@pytest.mark.parametrize("of", ["the answer", "its question"])
async def test_an_answer_is_given_anew_by_an_id_alone(of: str) -> None:
    async with conversation("Answer 1.", "Anew.") as chat:
        said = await chat.say("one")
        target = id_of(said) if of == "the answer" else "u1"
        anew = await chat.post({"id": chat.chat_id, "trigger": "regenerate-message", "messageId": target})
        assert anew.text == "Anew."
        assert asked_parts(chat.model.requests[1]) == ["one"]
        assert [message["id"] for message in await chat.messages()] == ["u1", id_of(anew)]


@pytest.mark.parametrize("what", ["regenerate", "edit"])
async def test_a_message_that_never_arrived_is_as_good_as_new(what: str) -> None:
    async with conversation("Answer 1.", "Anew.") as chat:
        await chat.say("one")
        if what == "edit":
            anew = await chat.edit("never-seen", "two")
        else:
            message = {"id": "never-seen", "role": "user", "parts": [{"type": "text", "text": "two"}]}
            body = {"id": chat.chat_id, "trigger": "regenerate-message", "messages": [message]}
            anew = await chat.post(body)
        assert anew.text == "Anew."
        assert asked_parts(chat.model.requests[1]) == ["one", "Answer 1.", "two"]
        assert [message["id"] for message in await chat.messages()][2:] == ["never-seen", id_of(anew)]


async def test_the_first_request_of_a_chat_may_be_a_second_thought() -> None:
    async with conversation("Hello.") as chat:
        assert (await chat.edit("u1", "hi")).text == "Hello."


async def test_an_answer_is_given_anew_from_what_the_server_keeps_not_from_what_the_client_tells() -> None:
    file = {"url": "data:image/png;base64,iVBORw==", "mediaType": "image/png", "filename": "cat.png"}
    async with conversation("A cat.", "A dog.") as chat:
        await chat.say("What is it?", files=(file,))
        await chat.regenerate("u1")  # which claims that something else was said
        picture, question = chat.model.requests[1].contents[-1].parts or ()
        assert picture.inline_data == types.Blob(data=b"\x89PNG", mime_type="image/png", display_name="cat.png")
        assert question.text == "What is it?"


async def test_another_user_s_message_cannot_be_answered_anew() -> None:
    async with conversation("Secret.", "Something else.") as chat:
        said = await chat.say("my secret")
        kept = await chat.messages()
        await chat.of(user="bob").regenerate("u1", id_of(said))
        assert asked_parts(chat.model.requests[1]) == ["not looked at"]
        assert await chat.messages() == kept


@every_store
async def test_state_goes_back(store: Store) -> None:
    def remember(what: str, tool_context: ToolContext) -> dict[str, Any]:
        """Remembers, and tells what it knew."""
        known = tool_context.state.get("known", [])
        tool_context.state["known"] = [*known, what]
        return {"known": known}

    script = [
        *([call("remember", what="a")], "Yes."),
        *([call("remember", what="b")], "Yes."),
        *([call("remember", what="c")], "Yes."),
    ]
    async with conversation(*script, store=store, tools=(remember,)) as chat:
        await chat.say("one")
        await chat.say("two")
        anew = await chat.regenerate("u2")
        assert [chunk["output"] for chunk in anew.of_type("tool-output-available")] == [{"known": ["a"]}]
        session = await chat.session()
        assert session
        assert session.state["known"] == ["a", "c"]


@every_store
async def test_artifacts_go_back(store: Store) -> None:
    async def write(words: str, tool_context: ToolContext) -> dict[str, Any]:
        """Writes, and tells what stood there."""
        before = await tool_context.load_artifact("note.txt")
        await tool_context.save_artifact("note.txt", types.Part(text=words))
        return {"before": before.text if before else None}

    script = [
        *([call("write", words="first")], "Yes."),
        *([call("write", words="second")], "Yes."),
        *([call("write", words="third")], "Yes."),
    ]
    async with conversation(*script, store=store, tools=(write,)) as chat:
        await chat.say("one")
        await chat.say("two")
        anew = await chat.regenerate("u2")
        assert [chunk["output"] for chunk in anew.of_type("tool-output-available")] == [{"before": "first"}]
        url = anew.of_type("file")[0]["url"]
        assert (await chat.fetch("GET", url)).text == "third"
        shown = [part["url"] for message in await chat.messages() for part in message["parts"] if "url" in part]
        assert shown[1:] == [url]


async def test_a_runner_without_artifacts_goes_back_too() -> None:
    model, agent = hanging("One.", script=("Two.",))
    model.go_on.set()
    runner = Runner(agent=agent, app_name="mine", session_service=InMemorySessionService())
    async with conversation(agent=runner) as chat:
        await chat.say("count")
        assert (await chat.regenerate("u1")).text == "Two."
        assert asked_parts(model.requests[1]) == ["count"]


@pytest.mark.parametrize("what", ["regenerate", "edit"])
async def test_while_a_turn_runs_there_are_no_second_thoughts(what: str) -> None:
    model, agent = hanging("Once", script=("Anew.",))
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        refused = await (chat.regenerate("u1") if what == "regenerate" else chat.edit("u1", "No story."))
        assert (refused.status, (refused.error or {})["code"]) == (409, "run-active")
        model.go_on.set()
        assert [message["id"] for message in await chat.messages()][:1] == ["u1"]
        await answer
        session = await chat.session()
        assert session
        assert not [event for event in session.events if event.actions.rewind_before_invocation_id]


@every_store
async def test_an_answer_that_failed_is_given_anew(store: Store) -> None:
    async with conversation(RuntimeError("out of order"), "Better.", store=store) as chat:
        failed = await chat.say("one")
        assert failed.chunks[-1]["type"] == "error"
        assert (await chat.regenerate("u1")).text == "Better."
        assert last_request(chat) == await asked_afresh("one", store=store)
        assert [message["role"] for message in await chat.messages()] == ["user", "assistant"]


async def test_an_answer_that_was_stopped_is_given_anew_without_its_half() -> None:
    model, agent = hanging("Once", script=("Anew.",))
    async with conversation(agent=agent) as chat:
        answer = asyncio.create_task(chat.say("A story."))
        await model.hangs.wait()
        await chat.stop()
        assert (await chat.regenerate("u1", id_of(await answer))).text == "Anew."
        assert asked_parts(model.requests[1]) == ["A story."]


async def test_a_tool_that_failed_is_called_anew() -> None:
    attempts: list[bool] = []

    def shaky() -> dict[str, str]:
        """Fails the first time."""
        attempts.append(True)
        if len(attempts) == 1:
            raise RuntimeError("shaky")
        return {"ok": "yes"}

    async with conversation([call("shaky")], [call("shaky")], "Done.", tools=(shaky,)) as chat:
        assert (await chat.say("go")).chunks[-1]["type"] == "error"
        assert (await chat.regenerate("u1")).text == "Done."
        assert asked_parts(chat.model.requests[2]) == ["go", {"call": "shaky"}, {"result": {"ok": "yes"}}]


@every_store
async def test_a_message_of_another_client_is_answered_anew_as_often_as_one_likes(store: Store) -> None:
    """Its id is one that the history gave it; it must not be lost on the way."""
    async with conversation("Two.", "Three.", store=store) as chat:
        asked = types.Content(role="user", parts=[types.Part(text="Count.")])
        told = types.Content(role="model", parts=[types.Part(text="One.")])
        await chat.append(
            Event(author="user", invocation_id="i1", content=asked),
            Event(author="helper", invocation_id="i1", content=told),
        )
        question = (await chat.messages())[0]["id"]
        for number, words in enumerate(("Two.", "Three.")):
            anew = await chat.regenerate(question)
            assert anew.text == words
            assert asked_parts(chat.model.requests[number]) == ["Count."]
            assert [message["id"] for message in await chat.messages()] == [question, id_of(anew)]


async def test_a_message_that_was_sent_without_an_id_is_answered_anew_as_often_as_one_likes() -> None:
    async with conversation("One.", "Two.", "Three.") as chat:
        message = {"role": "user", "parts": [{"type": "text", "text": "Count."}]}
        await chat.post({"id": chat.chat_id, "messages": [message]})
        question = (await chat.messages())[0]["id"]
        for words in ("Two.", "Three."):
            assert (await chat.regenerate(question)).text == words
            assert asked_parts(chat.model.requests[-1]) == ["Count."]


# -- late results -----------------------------------------------------------------------------------------------------


async def test_a_payment_that_was_approved_late_is_not_forgotten_with_the_words_before_it() -> None:
    """Its result stands behind the words that are taken back, its call before them."""
    till, store = Till(), MemoryStore()
    script = [call("pay", amount=5)], "Well.", "Paid.", "Other words.", "And on."
    async with page(*script, tools=(till.gated,), record=store) as at:
        await at.say("Pay.")
        await at.say("Go on.")
        at.decide("pay")
        assert (await at.answer(0)).text == "Paid."
        await at.chat.edit("u2", "Something else.")
        assert results_told(at.chat.model) == [{"paid": 5}]
        shown = await at.second_tab()
        assert shown.states("pay") == ["output-available"]
        await shown.say("Again.")
        assert results_told(at.chat.model) == [{"paid": 5}]
        assert till.paid == [5]
