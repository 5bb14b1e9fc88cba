"""Which message an event of a live session belongs to, and when the model's turn is over.

All events of a live run come under one invocation, and nothing in them says where an answer begins or ends but
`turn_complete` - which, for some models, also ends the half of a turn in which a tool was called.
"""

from collections.abc import Callable
from dataclasses import dataclass

from google.adk.events import Event
from google.genai import types

from ...protocol.call_record import CallKey
from ..event_parts import CONTROL_FLOW, is_said
from .live_message import LiveMessage


@dataclass(frozen=True)
class Routed:
    message: LiveMessage | None
    """None: it is about none in particular."""
    over_before: LiveMessage | None = None
    """A message that was interrupted, and turns out to be over before this event."""
    is_over: bool = False
    """Whether its message is complete with this event."""


class LiveTurns:
    def __init__(self, new_message: Callable[[], LiveMessage]) -> None:
        """`new_message`: for an answer that nobody asked for in writing."""
        self.current: LiveMessage | None = None
        self._new_message = new_message
        self._next: LiveMessage | None = None  # the user is speaking already, the model not yet
        self._after: LiveMessage | None = None  # when the model has come to the end of what nobody wants to hear
        self._unheard: LiveMessage | None = None  # is over, but what the user said was not told yet
        self._owners: dict[CallKey, LiveMessage] = {}
        self._step = 0
        self._tool_has_answered = False  # and the model has said nothing since
        self._tool_turn_ended = False

    def owner_of(self, call: CallKey) -> LiveMessage | None:
        return self._owners.get(call)

    def adopt(self, call: CallKey, message: LiveMessage) -> None:
        self._owners[call] = message

    def say(self, message: LiveMessage) -> None:
        """The user has written, and this is to be the answer."""
        self._next = self._unheard = None
        self._go_on(message)

    def resume(self, message: LiveMessage) -> None:
        """Something was answered, and what the model says next is about it; unless it is saying something else."""
        if self.current is None or self.current.log is None:
            self._go_on(message)

    def give_up(self, message: LiveMessage) -> None:
        """The rest of its answer was lost: what the model says next is something else."""
        if self.current is message:
            self._is_over(message)

    def _go_on(self, message: LiveMessage) -> None:
        if self.current is not None and self.current.is_unwanted:
            self._after = message
        else:
            self.current = message

    def _is_over(self, message: LiveMessage) -> None:
        self.current, self._after = self._after, None
        self._unheard = message if message.awaits_transcript else None

    @property
    def step(self) -> str:
        """Of the model call that goes on now."""
        return f"step-{self._step}"

    def route(self, event: Event) -> Routed:
        responses = event.get_function_responses()
        if responses:
            self._step += 1
            self._tool_has_answered, self._tool_turn_ended = True, False
            owners = [self._owners.pop(CallKey(event.invocation_id, answer.id or ""), None) for answer in responses]
            owner = next((owner for owner in owners if owner is not None), self.current)
            if self.current is None:
                self.current = owner  # what the model says next is about this
            return Routed(owner)
        if event.input_transcription is not None:
            return Routed(self._hears(event.input_transcription))
        if event.turn_complete and not is_said(event):
            return self._complete(event)
        if not is_said(event):
            if event.interrupted and self.current is not None and not self.current.is_to_come:
                self.current.is_interrupted = True
            return Routed(self.current)
        return self._says(event)

    def _says(self, event: Event) -> Routed:
        over: LiveMessage | None = None
        if self.current is not None and self.current.is_interrupted and (event.partial or event.get_function_calls()):
            over = self.current  # something new begins, though the end was never told
            self._is_over(over)
        if self.current is None:
            self.current, self._next, self._unheard = self._next or self._new_message(), None, None
        message = self.current
        message.is_to_come = False
        message.is_interrupted = message.is_interrupted or bool(event.interrupted)
        self._tool_has_answered = False
        for call in event.get_function_calls():
            if call.name not in CONTROL_FLOW:
                self._owners[CallKey(event.invocation_id, call.id or "")] = message
        if event.turn_complete:
            self._is_over(message)
        return Routed(message, over, is_over=bool(event.turn_complete))

    def _hears(self, heard: types.Transcription) -> LiveMessage:
        """What the user said may be told late, after the answer to it has begun."""
        message = self.current or (self._unheard if self._next is None else None)
        if message is None or not message.awaits_transcript:
            message = self._next = self._next or self._new_message()
        message.hear(heard.text or "", is_all=bool(heard.finished))
        return message

    def _complete(self, event: Event) -> Routed:
        self._step += 1
        message = self.current
        if message is None:
            return Routed(None)
        status = event.interaction_status.value if event.interaction_status else None
        goes_on = status == "IN_PROGRESS" or (
            # Older models end the turn in which they called a tool, and answer in another one.
            status is None and self._tool_has_answered and not self._tool_turn_ended
        )
        if goes_on and not message.is_interrupted:
            self._tool_turn_ended = True
            return Routed(message)
        if message.is_to_come and event.turn_complete_reason is None:
            return Routed(message)  # the end of what the user's words have interrupted
        self._tool_has_answered = False
        self._is_over(message)
        return Routed(message, is_over=True)
