"""The messages and segments of a live session: what ADK's events and the gate say, as clients are to read it."""

import asyncio
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool
from google.genai import types

from ...protocol.call_record import CallKey, CallRecord
from ...protocol.chunks import Data
from ...protocol.frames import encode_audio
from ..calls.waiting import NestedCall
from ..event_parts import CONTROL_FLOW, is_said
from ..live_listener import LiveListener
from ..session import Chat
from .live_message import LiveMessage, result_event
from .live_turns import LiveTurns, Routed

_QUIET_S = 1  # of a model that is free to talk on while somebody is asked
_SILENT_S = 30  # of a model that has a tool's result and ended only the turn in which it called it
_RATE = re.compile(r"rate=(\d+)")
_NOWHERE = Routed(None)
_SILENCE = Event(author="model")
_INTERRUPTION = Event(author="model", interrupted=True)


class LiveSegments:
    def __init__(
        self,
        chat: Chat,
        records: dict[CallKey, CallRecord],
        new_message: Callable[[], LiveMessage],
        listeners: AbstractSet[LiveListener],
    ) -> None:
        self.messages: dict[str, LiveMessage] = {}
        self.turns = LiveTurns(new_message)
        self.records = records
        """What is known of the calls."""
        self.left_to_client: set[CallKey] = set()
        """Those that ADK waits for no more."""
        self.announced: dict[CallKey, Event] = {}
        """Those of agents that run as tools: the session has no events of them."""
        self.is_ending = False
        self.session: Session | None = None
        """The one that ADK appends to: no other may be, while it does."""
        self._chat = chat
        self._listeners = listeners
        self._routed: dict[str, Routed] = {}
        self._outer: dict[CallKey, CallKey] = {}
        self._news = asyncio.Event()
        self._untold: LiveMessage | None = None

    @property
    def open_message(self) -> LiveMessage | None:
        if self.turns.current is not None and self.turns.current.log is not None:
            return self.turns.current
        return next((message for message in self.messages.values() if message.log is not None), None)

    @property
    def is_at_work(self) -> bool:
        """Whether a tool is."""
        return any(message.is_at_work for message in self.messages.values())

    def adopt(self, message: LiveMessage) -> None:
        if message.message_id not in self.messages:
            done = [id for id, old in self.messages.items() if not old.calls and old.log is None]
            for id in done[:-1]:  # the newest may still be asked for by a client that was away
                del self.messages[id]
            self.messages[message.message_id] = message

    def is_answered(self, call: CallKey) -> bool:
        found = self.records.get(call)
        return found is not None and found.is_answered

    def interrupt(self) -> None:
        """The user has heard enough of this answer."""
        for listener in self._listeners:  # a voice may still be playing whose words are complete
            listener.audio_clear(self._chat.chat_id)
        message = self.turns.current
        if message is not None and message.log is not None and not message.is_at_work:
            message.is_unwanted = True
            message.write(message.translator.feed(_INTERRUPTION, records=self.records))
            self.finish(message)

    # -- what the gate tells ------------------------------------------------------------------------------------------

    def route(self, event: Event, session: Session) -> None:
        """Before the event is stored: it is given its place in our messages."""
        self.session = session
        routed = self.turns.route(event)
        self._routed[event.id] = routed
        # Voice alone is not stored, and comes fifty times a second.
        if routed.message is not None and not _is_all_voice(event):
            ids = routed.message.ids(self.turns.step)
            event.custom_metadata = {**(event.custom_metadata or {}), **ids.metadata()}
        if not self._has_sub_agents:
            # ADK would tell the agent's own words to it later as those of somebody else.
            event.live_session_id = None

    @property
    def _has_sub_agents(self) -> bool:
        return bool(getattr(self._chat.runner.agent, "sub_agents", None))

    def waits(self, call: CallKey, tool: BaseTool, nested_in: NestedCall | None, *, blocks: bool) -> None:
        message = self.turns.owner_of(nested_in.outer if nested_in else call) or self.turns.current
        if message is None:
            return
        if nested_in is not None:
            self._announce(message, call, tool, nested_in)
            self._outer[call] = nested_in.outer
        message.waiting[call] = blocks
        self._let_agents_wait(message)
        self.end_if_it_waits(message)

    def left(self, call: CallKey) -> None:
        message = self.turns.owner_of(call)
        if message is not None:
            self.left_to_client.add(call)
            message.waiting[call] = False
            self.end_if_it_waits(message)

    def goes_on(self, call: CallKey) -> None:
        for message in self.messages.values():
            message.waiting.pop(call, None)
            self._let_agents_wait(message)

    def _let_agents_wait(self, message: LiveMessage) -> None:
        """An agent that runs as a tool waits as long as one of its calls does."""
        agents = set(self._outer.values())
        blocking = {call: blocks for call, blocks in message.waiting.items() if call not in agents}
        message.waiting = dict(blocking)
        for call, blocks in blocking.items():
            outer = self._outer.get(call)
            while outer is not None:
                message.waiting[outer] = message.waiting.get(outer, False) or blocks
                outer = self._outer.get(outer)

    def settled(self, call: CallKey, response: Any) -> None:
        message = self.turns.owner_of(call)
        if message is None:
            return
        if call in self._outer:  # no event of ADK's will tell
            made_by = message.calls.pop(call, None)
            if made_by is not None:
                self._open_if_closed(message)
                message.write(message.translator.feed(result_event(made_by, call, response), records=self.records))
                self.end_if_it_waits(message)
            return
        message.ended[call] = response
        if message.is_blocked:
            self._open_if_closed(message)
            self.end_if_it_waits(message)

    async def news(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), timeout_s)

    def tell_news(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _announce(self, message: LiveMessage, call: CallKey, tool: BaseTool, nested: NestedCall) -> None:
        """A call of an agent that runs as a tool: the client hears of it because it is asked about it."""
        made = types.FunctionCall(id=call.call_id, name=tool.name, args=nested.arguments)
        event = Event(
            author=nested.agent,
            invocation_id=call.invocation_id,
            content=types.Content(role="model", parts=[types.Part(function_call=made)]),
            long_running_tool_ids={call.call_id} if tool.is_long_running else None,
            custom_metadata=message.ids(self.turns.step).metadata(),
        )
        self.announced[call] = event
        self.turns.adopt(call, message)
        self._open_if_closed(message)
        message.write(message.translator.delegate(nested.outer.call_id))
        message.write(message.translator.feed(event, records=self.records))
        message.calls[call] = event

    # -- what the model says ------------------------------------------------------------------------------------------

    async def take(self, event: Event) -> None:
        """An event comes out of ADK."""
        routed = self._routed.pop(event.id, _NOWHERE)
        if routed.over_before is not None:
            self.finish(routed.over_before)
        message = routed.message
        if message is None:
            return
        self.adopt(message)
        message.event_count += 1
        if _is_all_voice(event) and message.log is not None and not routed.is_over:
            if not message.is_unwanted:
                self._without_voice(message, event)
            return
        if event.input_transcription is not None:
            is_final = bool(event.input_transcription.finished)
            self._tell_transcript("user", message.user_message_id, message.heard, is_final=is_final)
            return
        if event.interrupted:
            for listener in self._listeners:
                listener.audio_clear(self._chat.chat_id)
        is_result = bool(event.get_function_responses())
        if is_said(event) and (is_result or not message.is_unwanted):
            await self._tell(message, event)
        elif message.log is not None:
            message.write(message.translator.feed(event, records=self.records))
        if routed.is_over or (is_result and message.is_superseded):
            self.finish(message)
        elif is_result and message is not self.turns.current and not message.is_blocked:
            self._finish_after(_QUIET_S, message)  # the model is at something else
        elif event.turn_complete:
            self._finish_after(_SILENT_S, message)
        self.end_if_it_waits(message)

    async def _tell(self, message: LiveMessage, event: Event) -> None:
        if event.output_transcription is not None:
            text, is_final = event.output_transcription.text or "", bool(event.output_transcription.finished)
            whole = text if is_final else message.said_aloud + text
            message.said_aloud = "" if is_final else whole
            self._tell_transcript("assistant", message.message_id, whole, is_final=is_final)
        self._open_if_closed(message)
        event = self._without_voice(message, event)
        files = await self._chat.files(event.actions.artifact_delta)
        for call in event.get_function_calls():
            if call.name not in CONTROL_FLOW:
                message.calls[CallKey(event.invocation_id, call.id or "")] = event
        message.write(message.translator.feed(event, files, records=self.records))
        for answer in event.get_function_responses():
            key = CallKey(event.invocation_id, answer.id or "")
            for book in (message.calls, message.waiting, message.ended):
                book.pop(key, None)

    def _without_voice(self, message: LiveMessage, event: Event) -> Event:
        parts = (event.content.parts if event.content else None) or []
        voices = [part.inline_data for part in parts if part.inline_data and _is_voice(part.inline_data)]
        if not voices:
            return event
        for voice in voices:
            rate = _RATE.search(voice.mime_type or "")
            self._tell_voice(message, voice.data or b"", int(rate[1]) if rate else 24_000)
        if len(voices) == len(parts):
            return _SILENCE
        rest = [part for part in parts if not (part.inline_data and _is_voice(part.inline_data))]
        content = types.Content(role="model", parts=rest)
        return event.model_copy(update={"content": content})

    def _tell_voice(self, message: LiveMessage, samples: bytes, rate: int) -> None:
        if message.is_interrupted:
            return
        for listener in self._listeners:
            listener.audio(self._chat.chat_id, samples, rate)
        if any(listener.wants_pcm for listener in self._listeners):
            message.write([Data("data-pcm", {"rate": rate, "data": encode_audio(samples)}, transient=True)])

    def _tell_transcript(self, role: str, message_id: str, text: str, *, is_final: bool) -> None:
        for listener in self._listeners:
            listener.transcript(self._chat.chat_id, role, message_id, text, is_final=is_final)

    # -- segments -----------------------------------------------------------------------------------------------------

    def _open_if_closed(self, message: LiveMessage) -> None:
        if message.log is None:
            message.open(self.records, [call for call in message.calls if self.is_answered(call)])
            if not message.is_superseded:
                self.tell_turn(message)

    def tell_turn(self, message: LiveMessage, by: LiveListener | None = None) -> None:
        for listener in self._listeners:
            if listener is not by:
                listener.turn(self._chat.chat_id, message.message_id, message.user_message_id)
        self._untold = message if by is None and not self._listeners else None

    def tell_untold(self) -> None:
        """A turn began while nobody was there: whoever comes next is told."""
        if self._untold is not None and self._listeners:
            self.tell_turn(self._untold)

    def end_if_it_waits(self, message: LiveMessage) -> None:
        """A client sends nothing while its stream is open: to be answered, the segment must end."""
        if message.log is None or not message.waiting or message.is_at_work:
            return
        if not message.waiting.keys() <= message.calls.keys():
            return  # the gate is ahead: the client has not heard of the call yet
        message.tell_ended(self.records)
        if message.is_blocked:
            self.finish(message)
        else:
            self._finish_after(_QUIET_S, message)

    def finish(self, message: LiveMessage) -> None:
        if message.log is not None:
            for call in message.calls.keys() - message.waiting.keys():  # at work beside the conversation
                message.translator.works_on(call.call_id)
            message.close(message.translator.finish(records=self.records))

    def _finish_after(self, seconds: float, message: LiveMessage) -> None:
        """If nothing more comes of this message until then."""
        count, log = message.event_count, message.log

        def look() -> None:
            if message.log is log and message.event_count == count:
                self.finish(message)

        asyncio.get_running_loop().call_later(seconds, look)


def _is_all_voice(event: Event) -> bool:
    parts = event.content.parts if event.content is not None else None
    return bool(parts) and all(part.inline_data is not None and _is_voice(part.inline_data) for part in parts or ())


def _is_voice(blob: types.Blob) -> bool:
    return (blob.mime_type or "").startswith("audio/")
