"""From the events of a session to the messages that its clients saw.

The events go through the same translator as when they were new, and its chunks are folded as the client folds them:
what comes out is what the client had, part by part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from google.adk.events import Event
from google.genai import types

from ..protocol.approvals import Approval, CallKey
from ..protocol.chunks import AnyChunk, SdkVersion
from ..protocol.fold import MessageFold, Part, UIMessage
from ..protocol.messages import ApprovalStyle
from ..protocol.outcome import OPEN_STATES
from .chat import Chat, MessageIds, kept_events, message_id_of
from .event_parts import data_file, is_said
from .request_run import last_words
from .translator import Translator


class _AssistantMessage:
    """An answer while its events are read. Its parts may come late: an approval is answered after other messages."""

    def __init__(self, message_id: str, translator: Translator) -> None:
        self._translator = translator
        self._fold = MessageFold()
        self._ended_by: str | None = None
        self._failure: str | None = None
        for chunk in translator.start(message_id):
            self._fold.feed(chunk)

    async def feed(self, event: Event, chat: Chat) -> None:
        ids = MessageIds.of(event)
        self._ended_by, self._failure = ids.ended_by or self._ended_by, ids.failure or self._failure
        for chunk in self._translator.feed(event, await chat.files(event.actions.artifact_delta)):
            self._fold.feed(chunk)

    def message(self) -> UIMessage:
        waiting = self._translator.waiting
        for chunk in last_words(self._translator, self._ended_by, self._failure):
            self._fold.feed(chunk)
        for part in self._fold.parts:
            approval = waiting.approvals.get(waiting.asked.get(_approval_id(part), _NO_CALL))
            if approval is not None and approval.approved is not None:
                _decide(part, approval)
        return self._fold.message()


_NO_CALL = CallKey("", "")


def _approval_id(part: Part) -> str:
    return part["approval"]["id"] if "approval" in part else ""


def _decide(part: Part, approval: Approval) -> None:
    """What the person has said is the client's to write; no chunk of the server's does."""
    part["approval"]["approved"] = approval.approved
    if approval.reason is not None:
        part["approval"]["reason"] = approval.reason
    if part["state"] == "approval-requested":
        part["state"] = "approval-responded"


async def retell(translator: Translator, chat: Chat, events: list[Event], message_id: str) -> list[AnyChunk]:
    """The segments of a message so far. Afterwards the translator is where it was when the last of them ended."""
    chunks = translator.start(message_id)
    for event in kept_events(events):
        if message_id_of(event) == message_id:
            chunks += translator.feed(event, await chat.files(event.actions.artifact_delta))
    return [*chunks, *translator.pause()]


async def encode_history(
    chat: Chat,
    events: list[Event],
    *,
    sdk_version: SdkVersion,
    approval_style: ApprovalStyle | None,
    approvals: Mapping[CallKey, Approval],
    running: str | None,
) -> list[UIMessage]:
    """All messages in order. The answer that is `running` is left out: whoever resumes gets it from its start."""
    messages: list[UIMessage | _AssistantMessage] = []
    answers: dict[str, _AssistantMessage] = {}
    kept = kept_events(events)
    user_ids = _user_message_ids(kept)
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
            translator = Translator(
                root_author=chat.root_author,
                sdk_version=sdk_version,
                approval_style=approval_style,
                approvals=approvals,
            )
            answer = answers[message_id] = _AssistantMessage(message_id, translator)
            messages.insert(_place_after(messages, MessageIds.of(event).user_message_id), answer)
        await answer.feed(event, chat)
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
            return PastTurn(event.invocation_id, content, user_message_id, is_alone=len(together) == 1)
    return None


def title_of(messages: list[UIMessage]) -> str:
    """What the user began with, in a line."""
    first = next((message for message in messages if message["role"] == "user"), None)
    said = " ".join(part["text"] for part in first["parts"] if part["type"] == "text") if first else ""
    line = " ".join(said.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def waits_for_the_user(messages: list[UIMessage]) -> bool:
    return any(part.get("state") in OPEN_STATES for message in messages for part in message["parts"])
