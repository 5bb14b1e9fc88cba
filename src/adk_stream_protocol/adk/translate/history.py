"""Encode the events of a session as the messages that its clients saw.

The events go through the same translator as when they were new, and its chunks are folded as the client folds them. The
result is what the client had, part by part.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter

from google.adk.events import Event
from google.genai import types

from ...loop_share import LoopShare
from ...protocol.call_record import CallRecord, Records
from ...protocol.chunks import AnyChunk
from ...protocol.fold import MessageFold, Part, UIMessage
from ..event_parts import ArtifactFile, data_file, is_said, recorded_voice
from ..session import Chat, MessageIds, ending_of, kept_events, message_id_of, user_message_id_of
from .translator import Translator

Files = dict[str, ArtifactFile] | None


class _AssistantMessage:
    """An answer while its events are read. Some of its parts come after later messages: those after an approval."""

    def __init__(self, message_id: str, translator: Translator, records: Records) -> None:
        self._translator = translator
        self._records = records
        self._fold = MessageFold()
        self._ended_by: str | None = None
        self._failure: str | None = None
        for chunk in translator.start(message_id):
            self._fold.feed(chunk)

    def feed(self, event: Event, files: Files) -> None:
        ended_by, failure = ending_of(event)
        self._ended_by, self._failure = ended_by or self._ended_by, failure or self._failure
        for chunk in self._translator.feed(event, files, records=self._records):
            self._fold.feed(chunk)

    def message(self) -> UIMessage:
        for chunk in self._translator.end(self._records, self._ended_by, self._failure):
            self._fold.feed(chunk)
        for part in self._fold.parts:
            if "approval" not in part:
                continue
            record = self._translator.call_parts.asked_as(part["approval"]["id"], self._records)
            if record is not None and record.owner_said is not None:
                _decide(part, record)
        return self._fold.message()


def _decide(part: Part, record: CallRecord) -> None:
    """Add the person's decision. The client writes it into its own message; there is no chunk for it."""
    part["approval"]["approved"] = record.owner_said
    if record.reason is not None:
        part["approval"]["reason"] = record.reason
    if part["state"] == "approval-requested":
        part["state"] = "approval-responded"


async def replay(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    """The segments of a message so far. Afterwards the translator has the state that it had when the last one ended."""
    chunks = await _replayed(translator, chat, events, message_id, records)
    return [*chunks, *translator.pause_stopped(records)]


async def replay_to_its_end(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    """A whole message, for a client that has asked for it a second time."""
    chunks = await _replayed(translator, chat, events, message_id, records)
    last, share = MessageIds(user_message_id=None, message_id=None), LoopShare()
    for event in events:
        await share.give_way()
        if message_id_of(event) == message_id and (ids := MessageIds.of(event)).message_id and ids.ended_by:
            last = ids
    return [*chunks, *translator.end(records, last.ended_by, last.failure)]


async def _replayed(
    translator: Translator, chat: Chat, events: list[Event], message_id: str, records: Records
) -> list[AnyChunk]:
    chunks, share = translator.start(message_id), LoopShare()
    of_message = [event for event in await kept_events(events, share) if message_id_of(event) == message_id]
    for event, files in zip(of_message, await _files_of(chat, of_message), strict=True):
        await share.give_way()
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
    """All messages in order, without the answer that is `running`: a client that resumes gets it from its start."""
    share = LoopShare()
    backwards = (await _read_messages(chat, events, new_translator, records, share))[::-1]
    encoded: list[UIMessage] = []
    while backwards:
        await share.give_way()
        message = backwards.pop()  # one by one, since it takes a while to free what all of them were made with
        encoded.append(message.message() if isinstance(message, _AssistantMessage) else message)
    return [message for message in encoded if message["parts"] and message["id"] != running]


async def _read_messages(
    chat: Chat,
    events: list[Event],
    new_translator: Callable[[MessageIds], Translator],
    records: Records,
    share: LoopShare,
) -> list[UIMessage | _AssistantMessage]:
    messages = _MessageOrder()
    answers: dict[str, _AssistantMessage] = {}
    kept = [_without_address(event) for event in await kept_events(events, share)]
    user_ids = await _user_message_ids(kept, share)
    found_files = await _files_of(chat, kept)
    said_by_id: dict[str, UIMessage] = {}
    for place, event in enumerate(kept):
        await share.give_way()
        message_id = message_id_of(event)
        answer = answers.get(message_id)
        if event.author == "user" and event.actions.artifact_delta and event.content is None:
            heard = said_by_id.get(user_message_id_of(event) or "")
            if heard is not None:
                heard["parts"] += [
                    _user_file(file.url, file.media_type, None) for file in (found_files[place] or {}).values()
                ]
            continue
        if place in user_ids:
            said: UIMessage = {"id": user_ids[place], "role": "user", "parts": list(_user_parts(event))}
            said_by_id[said["id"]] = said
            # A transcript of the user's voice may come after the answer to it has begun.
            messages.add_said(said, before=answer if event.input_transcription is not None else None)
        if answer is None:
            if event.author == "user" or (event.turn_complete and not is_said(event)):
                continue
            ids = MessageIds.of(event)
            answer = answers[message_id] = _AssistantMessage(message_id, new_translator(ids), records)
            messages.add_answer(answer, ids.user_message_id)
        answer.feed(event, found_files[place])
    return messages.in_order()


def _without_address(event: Event) -> Event:
    """Voice that ADK has stored is an artifact like any other: its address means nothing to clients."""
    recorded = recorded_voice(event)
    if not recorded:
        return event
    actions = event.actions.model_copy(update={"artifact_delta": recorded})
    return event.model_copy(update={"content": None, "actions": actions})


class _MessageOrder:
    """The order of messages. Each has a place, a tuple. A message before or after another one has that one's place with
    a mark (-1 or 1) and a number added, so that all of them can be sorted in the end."""

    def __init__(self) -> None:
        self._placed: list[tuple[tuple[int, ...], UIMessage | _AssistantMessage]] = []
        self._of_answers: dict[_AssistantMessage, tuple[int, ...]] = {}
        self._of_words: dict[str, tuple[int, ...]] = {}

    def add_said(self, said: UIMessage, *, before: _AssistantMessage | None) -> None:
        count = len(self._placed)
        place = (count, 0) if before is None else (*self._of_answers[before][:-1], -1, count, 0)
        self._placed.append((place, said))
        self._of_words[said["id"]] = max(place, self._of_words.get(said["id"], place))

    def add_answer(self, answer: _AssistantMessage, user_message_id: str | None) -> None:
        """After the user's message that it answers: in a live session the user may have written others meanwhile."""
        count = len(self._placed)
        words = self._of_words.get(user_message_id or "")
        place = self._of_answers[answer] = (count, 0) if words is None else (*words[:-1], 1, -count, 0)
        self._placed.append((place, answer))

    def in_order(self) -> "list[UIMessage | _AssistantMessage]":
        return [message for _, message in sorted(self._placed, key=itemgetter(0))]


async def _user_message_ids(events: list[Event], share: LoopShare) -> dict[int, str]:
    """The client's own ids of the user's messages, by the places of their events. ADK keeps none with what the user
    writes in a live session; the answer to it has the id."""
    ids: dict[int, str] = {}
    known: set[str] = set()
    ahead = 0  # no event before this place has an id that is not given yet
    for place, event in enumerate(events):
        await share.give_way()
        if event.author != "user" or not _has_user_parts(event):
            continue
        named = user_message_id_of(event)
        if named is None:
            ahead = max(ahead, place + 1)
            while ahead < len(events) and events[ahead].invocation_id == event.invocation_id:
                await share.give_way()
                named = next((name for name in _names_of(events[ahead]) if name not in known), None)
                if named is not None:
                    break
                ahead += 1
        ids[place] = named or event.id
        known.add(ids[place])
    return ids


def _names_of(event: Event) -> list[str]:
    """Messages of the user, in their order, whose last one this event answers."""
    ids = MessageIds.of(event)
    return [*(ids.skipped or ()), *([ids.user_message_id] if ids.user_message_id is not None else [])]


def _has_user_parts(event: Event) -> bool:
    if event.input_transcription is not None and event.input_transcription.text:
        return True
    parts = (event.content.parts if event.content else None) or ()
    return any(part.text is not None or part.inline_data is not None or part.file_data is not None for part in parts)


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
    """Whether the user said nothing else in its invocation. A live session is one invocation."""
    said: str | None


async def find_turn(events: list[Event], names: Iterable[str]) -> PastTurn | None:
    """The turn that a message belongs to, be it the user's message or the answer to it. Of several names the first that
    is known counts."""
    share = LoopShare()
    kept = await kept_events(events, share)
    said = await _user_message_ids(kept, share)
    answered: dict[str, set[str]] = {}  # what was said, by the ids of its answers
    for event in kept:
        await share.give_way()
        user_message_id = user_message_id_of(event)
        if user_message_id is not None:
            answered.setdefault(message_id_of(event), set()).add(user_message_id)
    for name in names:
        for place, user_message_id in reversed(said.items()):
            await share.give_way()
            event = kept[place]
            if name in (user_message_id, event.id, message_id_of(event)) or user_message_id in answered.get(name, ()):
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
