"""The title of a chat in a list: the user's first words, in one line."""

from collections.abc import Iterator

from google.adk.events import Event

from ..loop_share import LoopShare
from .event_parts import is_said
from .session import kept_events, message_id_of

_LONGEST = 80


async def title_of(events: list[Event]) -> str | None:
    """The text of the history's first user message, without the cost of the history. None if the user has said nothing;
    empty if the chat begins with files alone."""
    first: Event | None = None
    begun: list[str] = []  # answers before it
    share = LoopShare()
    for event in await kept_events(events, share):
        await share.give_way()
        message_id = message_id_of(event)
        if event.author == "user":
            if not _says_something(event):
                continue
            if first is None:
                first = event
            elif event.input_transcription is not None and message_id in begun:
                # A transcript of the user's voice may come after the answer to it has begun.
                first, begun = event, begun[: begun.index(message_id)]
        elif first is None and message_id not in begun and not (event.turn_complete and not is_said(event)):
            begun.append(message_id)
    return None if first is None else _line(" ".join(_texts(first)))


async def has_title(events: list[Event]) -> bool:
    """Whether the user has said anything. The newest words tell, however long the chat is, unless a rewind comes first:
    they may be among what it removed."""
    share = LoopShare()
    for event in reversed(events):
        await share.give_way()
        if event.actions.rewind_before_invocation_id:
            return await title_of(events) is not None
        if event.author == "user" and _says_something(event):
            return True
    return False


def _says_something(event: Event) -> bool:
    if event.input_transcription is not None and event.input_transcription.text:
        return True
    parts = (event.content.parts if event.content else None) or ()
    return any(part.text is not None or part.inline_data or part.file_data for part in parts)


def _texts(event: Event) -> Iterator[str]:
    if event.input_transcription is not None and event.input_transcription.text:
        yield event.input_transcription.text
    for part in (event.content.parts if event.content else None) or ():
        if part.text is not None:
            yield part.text


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
