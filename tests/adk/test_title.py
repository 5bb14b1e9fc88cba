"""The title of a chat: the user's first words."""

from collections.abc import Iterator

from google.adk.events import Event, EventActions
from google.genai import types

from adk_stream_protocol.adk.session import MessageIds
from adk_stream_protocol.adk.title import has_title, title_of


def said(text: str, **fields: object) -> Event:
    return Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text)]), **fields)


def heard(text: str, in_answer: str) -> Event:
    """A transcript of the user's voice, as it is stored with the answer to it."""
    ids = MessageIds(user_message_id=None, message_id=in_answer)
    transcript = types.Transcription(text=text, finished=True)
    return Event(author="user", input_transcription=transcript, custom_metadata=ids.metadata())


def answer(message_id: str) -> Event:
    ids = MessageIds(user_message_id=None, message_id=message_id)
    content = types.Content(role="model", parts=[types.Part(text="Hello.")])
    return Event(author="helper", content=content, custom_metadata=ids.metadata())


async def test_the_first_words_are_the_title_in_one_line() -> None:
    assert await title_of([said("Good\n  morning"), answer("m1"), said("And now?")]) == "Good morning"


async def test_a_long_title_is_cut() -> None:
    assert await title_of([said("x" * 80)]) == "x" * 80
    assert await title_of([said("x" * 81)]) == "x" * 79 + "…"


async def test_nobody_has_said_anything() -> None:
    assert await title_of([]) is None
    assert await title_of([answer("m1")]) is None


async def test_a_chat_that_begins_with_a_file_has_no_words() -> None:
    file = types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))
    assert await title_of([Event(author="user", content=types.Content(role="user", parts=[file]))]) == ""


async def test_a_transcript_counts_before_the_answer_that_it_belongs_to() -> None:
    late = heard("What I asked first", in_answer="m1")
    assert await title_of([answer("m1"), said("Written later"), late]) == "What I asked first"


async def test_a_chat_has_a_title_once_its_user_has_said_something() -> None:
    file = types.Part(inline_data=types.Blob(data=b"1", mime_type="image/png"))
    empty = Event(author="user", content=types.Content(role="user", parts=[]))
    chats = [
        [],
        [answer("m1")],
        [empty],
        [said("Hi")],
        [said("Hi"), answer("m1"), empty],
        [answer("m1"), heard("Aloud", in_answer="m1")],
        [Event(author="user", content=types.Content(role="user", parts=[file]))],
    ]
    for events in chats:
        assert await has_title(events) == (await title_of(events) is not None)
    assert [await has_title(events) for events in chats] == [False, False, False, True, True, True, True]


async def test_words_that_were_taken_back_make_no_title() -> None:
    rewind = Event(author="user", invocation_id="i3", actions=EventActions(rewind_before_invocation_id="i1"))
    taken_back = [said("Hi", invocation_id="i1"), answer("m1"), said("And?", invocation_id="i2"), rewind]
    assert not await has_title(taken_back)
    assert await title_of(taken_back) is None
    assert await has_title([*taken_back, said("Again", invocation_id="i4")])
    assert await has_title([said("Before", invocation_id="i0"), *taken_back])


async def test_whether_there_is_a_title_is_told_by_the_newest_words() -> None:
    class Looked(list[Event]):
        def __iter__(self) -> Iterator[Event]:
            raise AssertionError("the whole chat is looked at")

        def __reversed__(self) -> Iterator[Event]:
            for event in super().__reversed__():
                looked_at.append(event)
                yield event

    looked_at: list[Event] = []
    events = Looked([said("Hi"), answer("m1")] * 100)
    assert await has_title(events)
    assert len(looked_at) == 2
