"""Which messages a session has and in which order, held against a slow and simple reading of the same events."""

import asyncio
from random import Random
from typing import Any

import pytest
from google.adk.events import Event, EventActions
from google.adk.events._rewind_events import _apply_rewinds
from google.genai import types

from adk_stream_protocol.adk.session import MessageIds, find_repeated, message_id_of
from adk_stream_protocol.adk.translate.history import encode_history, find_turn
from adk_stream_protocol.adk.translate.translator import Translator
from support.apps import figure
from support.session_events import empty_chat

# -- sessions ---------------------------------------------------------------------------------------------------------


def any_session(random: Random) -> list[Event]:
    """Turns of our own and of other clients, live sessions with late transcripts, ids that come twice, rewinds."""
    return [_any_event(random, number) for number in range(random.randint(0, 40))]


def _any_event(random: Random, number: int) -> Event:
    invocation = f"i{max(0, number // random.choice((4, 5)) - random.choice((0, 0, 0, 1)))}"
    said = random.choice((None, f"u{random.randint(0, 9)}", f"u{number}"))
    message = random.choice((None, f"m{random.randint(0, 9)}", f"m{number // 4}"))
    about: dict[str, Any] = {"id": f"e{number}", "invocation_id": invocation}
    if random.random() < 0.7:
        about["custom_metadata"] = MessageIds(user_message_id=said, message_id=message).metadata()
    if random.random() < 0.05:
        about["actions"] = EventActions(rewind_before_invocation_id=f"i{random.randint(0, 9)}")
    kind = random.choice(("user", "user", "answer", "answer", "heard", "empty", "file", "end"))
    if kind == "heard":
        heard = types.Transcription(text=random.choice((f"heard {number}", "")))
        return Event(author="user", input_transcription=heard, **about)
    if kind == "end":
        return Event(author="a", turn_complete=True, **about)
    parts = {
        "user": [types.Part(text=f"said {number}")],
        "answer": [types.Part(text=f"answer {number}")],
        "empty": [types.Part(function_response=types.FunctionResponse(id="x", name="pay", response={}))],
        "file": [types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))],
    }[kind]
    author = "a" if kind == "answer" else "user"
    return Event(author=author, content=types.Content(role="user", parts=parts), **about)


# -- the slow reading -------------------------------------------------------------------------------------------------


def _has_words(event: Event) -> bool:
    heard = event.input_transcription and event.input_transcription.text
    parts = (event.content and event.content.parts) or []
    return event.author == "user" and bool(heard or any(part.text is not None or part.inline_data for part in parts))


def user_message_ids(events: list[Event]) -> dict[int, str]:
    ids: dict[int, str] = {}
    for place, event in enumerate(events):
        if not _has_words(event):
            continue
        named = MessageIds.of(event).user_message_id
        for later in events[place + 1 :] if named is None else ():
            if later.invocation_id != event.invocation_id:
                break
            named = MessageIds.of(later).user_message_id
            if named is not None and named not in ids.values():
                break
            named = None
        ids[place] = named or event.id
    return ids


def messages_in_order(events: list[Event]) -> list[tuple[str, str]]:
    """Role and id of each. Answers without a word are among them."""
    kept = _apply_rewinds(events)
    ids, messages = user_message_ids(kept), list[tuple[str, str]]()
    for place, event in enumerate(kept):
        answer = ("assistant", message_id_of(event))
        if place in ids:
            is_late = event.input_transcription is not None and answer in messages
            messages.insert(messages.index(answer) if is_late else len(messages), ("user", ids[place]))
        ends = event.turn_complete and not event.content
        if answer not in messages and event.author != "user" and not ends:
            words = ("user", MessageIds.of(event).user_message_id)
            places = [place for place, message in enumerate(messages) if message == words]
            messages.insert(places[-1] + 1 if places else len(messages), answer)
    return messages


def turn_of(events: list[Event], name: str) -> tuple[str, str, bool] | None:
    kept = _apply_rewinds(events)
    said = user_message_ids(kept)
    for place, user_message_id in reversed(said.items()):
        event = kept[place]
        answers = {message_id_of(later) for later in kept if MessageIds.of(later).user_message_id == user_message_id}
        if name in (user_message_id, event.id, message_id_of(event), *answers):
            together = [other for other in said if kept[other].invocation_id == event.invocation_id]
            return event.invocation_id, user_message_id, len(together) == 1
    return None


# -- the same ---------------------------------------------------------------------------------------------------------


@pytest.mark.figures
async def test_messages_stand_where_a_slow_reading_puts_them() -> None:
    random, chat = Random(11), empty_chat()
    for _ in range(figure(3_000)):
        events = any_session(random)
        told = await encode_history(
            chat, events, new_translator=lambda _: Translator(root_author="a"), records={}, running=None
        )
        assert [(message["role"], message["id"]) for message in told] == messages_in_order(events)


@pytest.mark.figures
async def test_the_turn_of_a_message_is_the_one_that_a_slow_reading_finds() -> None:
    random, found = Random(12), 0
    for _ in range(figure(3_000)):
        events = any_session(random)
        names = [random.choice((f"u{n}", f"m{n}", f"e{n}", f"msg-i{n}")) for n in random.choices(range(12), k=2)]
        expected = turn_of(events, names[0]) or turn_of(events, names[1])
        turn = await find_turn(events, names)
        assert (turn and (turn.invocation_id, turn.user_message_id, turn.is_alone)) == expected
        found += turn is not None
    assert found > figure(3_000) // 4


@pytest.mark.figures
async def test_a_repeated_message_is_known_again_unless_it_was_taken_back() -> None:
    random = Random(13)
    for _ in range(figure(3_000)):
        events = any_session(random)
        asked = MessageIds(user_message_id=f"u{random.randint(0, 9)}", message_id=None)
        about = [(event, MessageIds.of(event)) for event in events if event.author == "user"]
        same = [(event, ids) for event, ids in about if ids.user_message_id == asked.user_message_id]
        known = [(event, ids.message_id) for event, ids in same if ids.message_id is not None]
        is_kept = bool(known) and known[-1][0] in _apply_rewinds(events)
        assert await find_repeated(events, asked) == ((known[-1][1], True) if is_kept else None)


def test_an_answer_stands_behind_the_last_words_of_an_id_that_came_twice() -> None:
    def event(author: str, said: str | None, message: str, **fields: Any) -> Event:
        about = MessageIds(user_message_id=said, message_id=message).metadata()
        return Event(author=author, invocation_id="i1", custom_metadata=about, **fields)

    words = types.Content(role="user", parts=[types.Part(text="words")])
    events = [
        event("a", None, "m1", content=words),
        event("user", "u1", "m2", content=words),
        event("user", "u1", "m1", input_transcription=types.Transcription(text="late")),
        event("a", "u1", "m2", content=words),
    ]
    told = encode_history(
        empty_chat(), events, new_translator=lambda _: Translator(root_author="a"), records={}, running=None
    )
    assert [message["id"] for message in asyncio.run(told)] == ["u1", "m1", "u1", "m2"]
    assert messages_in_order(events) == [("user", "u1"), ("assistant", "m1"), ("user", "u1"), ("assistant", "m2")]
