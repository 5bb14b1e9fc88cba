"""From the events of a session to the messages that its clients saw.

The events go through the same translator as when they were new, and its chunks are folded as the client folds them:
what comes out is what the client had, part by part.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from google.adk.events import Event
from google.genai import types

from ..protocol.approvals import Approval
from ..protocol.chunks import AnyChunk
from ..protocol.fold import MessageFold, Part, UIMessage
from .chat import Chat, MessageIds, kept_events, message_id_of
from .event_parts import data_file, is_said
from .request_run import last_words
from .tool_parts import Records
from .translator import ArtifactFile, Translator

Files = dict[str, ArtifactFile] | None


class _AssistantMessage:
    """An answer while its events are read. Its parts may come late: an approval is answered after other messages."""

    def __init__(self, message_id: str, translator: Translator, records: Records) -> None:
        self._translator = translator
        self._records = records
        self._fold = MessageFold()
        self._ended_by: str | None = None
        self._failure: str | None = None
        for chunk in translator.start(message_id):
            self._fold.feed(chunk)

    def feed(self, event: Event, files: Files) -> None:
        ids = MessageIds.of(event)
        self._ended_by, self._failure = ids.ended_by or self._ended_by, ids.failure or self._failure
        for chunk in self._translator.feed(event, files, records=self._records):
            self._fold.feed(chunk)

    def message(self) -> UIMessage:
        for chunk in last_words(self._translator, self._records, self._ended_by, self._failure):
            self._fold.feed(chunk)
        for part in self._fold.parts:
            record = (
                self._translator.tools.asked_as(part["approval"]["id"], self._records) if "approval" in part else None
            )
            if record is not None and record.approved is not None:
                _decide(part, record)
        return self._fold.message()


def _decide(part: Part, record: Approval) -> None:
    """What the person has said is the client's to write; no chunk of the server's does."""
    part["approval"]["approved"] = record.approved
    if record.reason is not None:
        part["approval"]["reason"] = record.reason
    if part["state"] == "approval-requested":
        part["state"] = "approval-responded"


async def replay(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    """The segments of a message so far. Afterwards the translator is where it was when the last of them ended."""
    chunks = await _replayed(translator, chat, events, message_id, records)
    return [*chunks, *translator.pause(records)]


async def replay_to_its_end(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    """A whole message, for a client that has asked for it a second time."""
    chunks = await _replayed(translator, chat, events, message_id, records)
    ends = [ids for event in events if (ids := MessageIds.of(event)).message_id == message_id and ids.ended_by]
    last = ends[-1] if ends else MessageIds(user_message_id=None, message_id=None)
    return [*chunks, *last_words(translator, records, last.ended_by, last.failure)]


async def _replayed(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    chunks = translator.start(message_id)
    told = [event for event in kept_events(events) if message_id_of(event) == message_id]
    for event, files in zip(told, await _files_of(chat, told), strict=True):
        chunks += translator.feed(event, files, records=records)
    return chunks


async def _files_of(chat: Chat, events: list[Event]) -> list[Files]:
    return await chat.files_of([event.actions.artifact_delta for event in events])


async def encode_history(
    chat: Chat,
    events: list[Event],
    *,
    new_translator: Callable[[MessageIds], Translator],
    records: Records,
    running: str | None,
) -> list[UIMessage]:
    """All messages in order. The answer that is `running` is left out: whoever resumes gets it from its start."""
    messages: list[UIMessage | _AssistantMessage] = []
    answers: dict[str, _AssistantMessage] = {}
    kept = kept_events(events)
    user_ids = _user_message_ids(kept)
    found_files = await _files_of(chat, kept)
    for place, event in enumerate(kept):
        message_id = message_id_of(event)
        if event.author == "user":
            parts = list(_user_parts(event))
            if parts:
                said: UIMessage = {"id": user_ids[place], "role": "user", "parts": parts}
                # What was heard may be told after the answer to it has begun.
                answer = answers.get(message_id) if event.input_transcription is not None else None
                messages.insert(messages.index(answer) if answer is not None else len(messages), said)
        answer = answers.get(message_id)
        if answer is None:
            if event.author == "user" or (event.turn_complete and not is_said(event)):
                continue
            ids = MessageIds.of(event)
            answer = answers[message_id] = _AssistantMessage(message_id, new_translator(ids), records)
            messages.insert(_place_after(messages, ids.user_message_id), answer)
        answer.feed(event, found_files[place])
    told = [m.message() if isinstance(m, _AssistantMessage) else m for m in messages]
    return [message for message in told if message["parts"] and message["id"] != running]


def _place_after(messages: list[UIMessage | _AssistantMessage], user_message_id: str | None) -> int:
    """Behind the words that are answered: in a live session others may have been written meanwhile."""
    for place, message in reversed(list(enumerate(messages))):
        if not isinstance(message, _AssistantMessage) and message["id"] == user_message_id:
            return place + 1
    return len(messages)


def _user_message_ids(events: list[Event]) -> dict[int, str]:
    """The client's own ids of what the user said, by its places. ADK keeps none with what is written in a live session;
    the answer to it has it."""
    ids: dict[int, str] = {}
    for place, event in enumerate(events):
        if event.author != "user" or not any(_user_parts(event)):
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


def _user_parts(event: Event) -> Iterable[Part]:
    if event.input_transcription is not None and event.input_transcription.text:
        yield {"type": "text", "text": event.input_transcription.text}
    for part in (event.content.parts if event.content else None) or ():
        if part.text is not None:
            yield {"type": "text", "text": part.text}
        elif part.inline_data is not None:
            file = data_file(part.inline_data.data, part.inline_data.mime_type)
            yield _user_file(file.url, file.media_type, part.inline_data.display_name)
        elif part.file_data is not None:
            media_type = part.file_data.mime_type or "application/octet-stream"
            yield _user_file(part.file_data.file_uri or "", media_type, part.file_data.display_name)


def _user_file(url: str, media_type: str, filename: str | None) -> Part:
    named = {"filename": filename} if filename else {}
    return {"type": "file", "mediaType": media_type, **named, "url": url}


@dataclass(frozen=True)
class PastTurn:
    invocation_id: str
    content: types.Content
    user_message_id: str
    is_alone: bool
    """Whether nothing else was said in its invocation. A live session is one invocation."""
    said: str | None


def find_turn(events: list[Event], message_id: str) -> PastTurn | None:
    """The turn that a message belongs to, be it the user's message or the answer to it."""
    kept = kept_events(events)
    said = _user_message_ids(kept)
    for place, user_message_id in reversed(said.items()):
        event = kept[place]
        answers = {message_id_of(later) for later in kept if MessageIds.of(later).user_message_id == user_message_id}
        if message_id in (user_message_id, event.id, message_id_of(event), *answers):
            together = [other for other in said if kept[other].invocation_id == event.invocation_id]
            content = event.content or types.Content(role="user", parts=[])
            return PastTurn(
                event.invocation_id,
                content,
                user_message_id,
                is_alone=len(together) == 1,
                said=MessageIds.of(event).said,
            )
    return None
