"""Live mode: `Runner.run_live` behind one chat, told in messages and segments as request mode tells them.

The run belongs to its chat. Clients come and go; it ends when none has been there for a while, when it is stopped, or
when the model ends it. Calls that wait for an answer then stay what they are, and either mode can answer them.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from google.adk.agents.run_config import RunConfig
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import Session
from google.adk.tools import BaseTool
from google.genai import types

from ..chunk_log import ChunkLog
from ..errors import RunActive
from ..limits import Limits
from ..protocol.approvals import Approval, CallKey, State
from ..protocol.chunks import Data
from ..protocol.frames import encode_audio
from ..store.base import Lease
from .asked_calls import answer_event, response_part
from .chat import Chat
from .event_parts import CONTROL_FLOW, is_said
from .failures import public_failure_text
from .gate import ApprovalGate
from .live_gate import NestedCall
from .live_message import LiveMessage, result_event
from .live_queue import LiveInput
from .live_turns import LiveTurns, Routed
from .request_run import last_words, log_failure
from .runner import lift_frame_limit
from .translator import Translator

logger = logging.getLogger(__name__)

SUPERSEDED = "superseded: the user wrote something else instead"
STOPPED = "the user stopped the session"
ENDED = "the session has ended"

_STOP_GRACE_S = 1
_TICK_S = 1
_QUIET_S = 1  # of a model that is free to talk on while somebody is asked
_SILENT_S = 30  # of a model that has a tool's result and ended only the turn in which it called it
_MAX_RECONNECTS = 5  # without a word from the model in between: it takes us in and throws us out
_LOST_MODEL = "The connection to the model was lost. Send your message again."
_RATE = re.compile(r"rate=(\d+)")
_NOWHERE = Routed(None)


class LiveListener(Protocol):
    """A client that is connected to the chat."""

    is_gone: bool
    """Whether it is so no more."""
    wants_pcm: bool
    """Whether voice is to be told in the stream, too."""

    def turn(self, chat_id: str, message: LiveMessage) -> None:
        """Something is being told that no request of this client's asked for."""
        ...

    def transcript(self, chat_id: str, role: str, message_id: str, text: str, *, is_final: bool) -> None: ...

    def audio(self, chat_id: str, samples: bytes, rate: int) -> None: ...

    def audio_clear(self, chat_id: str) -> None:
        """What was not played yet is not to be played."""
        ...


@dataclass(frozen=True, kw_only=True)
class LiveServices:
    """What a live run asks of the rest of the bridge."""

    new_translator: Callable[[], Translator]
    refuse: Callable[[CallKey, str], Awaitable[None]]
    """Record that a call will not be answered, and why."""
    park: Callable[[], Awaitable[None]]
    """Leave the calls that wait as request mode would have left them."""
    let_go: Callable[[], Awaitable[None]]
    """The next turn may come."""


class LiveRun:
    def __init__(
        self,
        chat: Chat,
        lease: Lease,
        gate: ApprovalGate,
        limits: Limits,
        run_config: RunConfig,
        services: LiveServices,
        listeners: AbstractSet[LiveListener],
    ) -> None:
        """`listeners`: whoever is connected to the chat, as it changes."""
        self.input = LiveInput(limits.max_waiting_audio_s)
        self.has_ended = asyncio.Event()
        self.answered: frozenset[CallKey] = frozenset()  # what waits is asked by `take_up`
        self._chat = chat
        self._lease = lease
        self._gate = gate
        self._limits = limits
        self._run_config = run_config
        self._services = services
        self._listeners = listeners
        self._messages: dict[str, LiveMessage] = {}
        self._turns = LiveTurns(self._unasked_message)
        self._routed: dict[str, Routed] = {}
        self._records: dict[CallKey, Approval] = {}
        self._left_to_client: set[CallKey] = set()
        self._outer: dict[CallKey, CallKey] = {}
        self.announced: dict[CallKey, Event] = {}
        """Calls of agents that run as tools: the session has no events of them."""
        self._news = asyncio.Event()
        self._deferred: list[types.Content] = []
        self._state_delta: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._is_ending = False
        self._ended_by: str | None = None
        self._failure: str | None = None
        self._invocation_id = ""
        self._session: Session | None = None  # the one that ADK appends to: no other may be, while it does
        self._lost_before_last_word = 0
        self._heard_at = asyncio.get_running_loop().time()
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None

    # -- clients ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self.input.on_response = self._send_deferred
        self._task = asyncio.create_task(self._drive(), name=f"adk-stream live {self._chat.chat_id}")
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._watch)
        self.watch_listeners()

    def watch_listeners(self) -> None:
        """Somebody has come, or gone."""
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        if not self._listeners and not self._is_ending:
            self._grace = asyncio.get_running_loop().call_later(self._limits.live_grace_s, self._nobody_listens)

    def _nobody_listens(self) -> None:
        if any(message.is_at_work for message in self._messages.values()):  # it may be paying: let it finish
            self._grace = asyncio.get_running_loop().call_later(_TICK_S, self._nobody_listens)
            return
        if self.log is not None:
            self._ended_by = "stop"
        self._cancel()

    @property
    def log(self) -> ChunkLog | None:
        """The segment that is being told."""
        message = self._open_message
        return message.log if message is not None else None

    @property
    def message_id(self) -> str | None:
        message = self._open_message
        return message.message_id if message is not None else None

    @property
    def _open_message(self) -> LiveMessage | None:
        if self._turns.current is not None and self._turns.current.log is not None:
            return self._turns.current
        return next((message for message in self._messages.values() if message.log is not None), None)

    # -- the user's side ----------------------------------------------------------------------------------------------

    async def say(
        self, message: LiveMessage, content: types.Content, state_delta: dict[str, Any] | None, by: LiveListener
    ) -> ChunkLog:
        """The user writes. Calls that ADK waits for are refused by that: it would hear nothing before they end."""
        if self.log is not None or self._is_ending:
            raise RunActive
        blocked = [other for other in self._messages.values() if other.is_blocked]
        self._adopt(message)
        self._turns.say(message)
        log = message.open()
        try:
            for call in [call for other in blocked for call, blocks in other.waiting.items() if blocks]:
                await self._services.refuse(call, SUPERSEDED)
        except BaseException:
            message.close(message.translator.abort())
            raise
        for other in blocked:
            other.is_superseded = True
        if any(other.is_blocked for other in blocked):
            self._deferred.append(content)  # the model is to hear first what became of its calls
            self._state_delta.update(state_delta or {})
            self._tell_news()
        else:
            self.input.say(content, state_delta)
        self._tell_turn(message, by)
        return log

    def hear(self, samples: bytes) -> None:
        self.input.send_voice(samples)

    def interrupt(self) -> None:
        """The user has heard enough of this answer."""
        message = self._turns.current
        if message is not None and message.log is not None and not message.is_at_work:
            message.is_unwanted = True
            for listener in self._listeners:
                listener.audio_clear(self._chat.chat_id)
            self._finish(message)

    async def take_up(
        self,
        message_id: str,
        start_id: str,
        answered: Collection[CallKey],
        known_outputs: Collection[CallKey],
        records: Mapping[CallKey, Approval],
        by: LiveListener | None,
    ) -> ChunkLog | None:
        """Go on with a message whose client has answered. None if these calls are not ours."""
        message = self._messages.get(message_id)
        if message is None or self._is_ending or not any(call in message.calls for call in answered):
            return None
        self._records.update(records)
        for call in [call for call in message.waiting if self._is_answered(call)]:
            del message.waiting[call]
        under_way = [call for call in answered if call in message.calls]  # the others have their results
        log = message.log or message.open(under_way, known_outputs, start_id)
        self._tell_turn(message, by)
        self._turns.resume(message)
        for call in [call for call in self._left_to_client if call in answered and self._is_answered(call)]:
            await self._deliver(message, call)
        self._end_if_it_waits(message)
        self._tell_news()
        return log

    def _is_answered(self, call: CallKey) -> bool:
        found = self._records.get(call)
        if found is None or found.state is State.PENDING:
            return False
        return found.runs == "server" or found.is_final

    async def _deliver(self, message: LiveMessage, call: CallKey) -> None:
        """The result of a call that ADK has given out of its hands: it neither waits for it nor stores it."""
        self._left_to_client.discard(call)
        made_by = message.calls.pop(call)
        part = response_part(self._records[call])
        event = answer_event(made_by, [part], message.ids())
        if self._session is not None:
            await self._chat.runner.session_service.append_event(self._session, event)
        message.write(message.translator.feed(event))
        self.input.send_content(types.Content(role="user", parts=[part]))

    async def stop(self) -> None:
        """End the session: model, tools, stream. What waits is refused."""
        if self._task is None or self.has_ended.is_set():
            return
        self._ended_by = "stop"
        for message in list(self._messages.values()):
            for call in list(message.waiting):
                await self._services.refuse(call, STOPPED)
        self._tell_news()
        self.input.close()
        await asyncio.wait([self._task], timeout=_STOP_GRACE_S)
        self._cancel()
        await asyncio.wait([self._task], timeout=2 * _STOP_GRACE_S)

    async def end_if_idle(self) -> bool:
        """Make room for request mode, unless something is being told."""
        if self.log is not None or any(message.is_at_work for message in self._messages.values()):
            return False
        self._cancel()
        await self.has_ended.wait()
        return True

    def _cancel(self) -> None:
        if self._task is not None and not self._is_ending:
            self._task.cancel()

    # -- what the gate tells ------------------------------------------------------------------------------------------

    def route(self, event: Event, session: Session) -> None:
        """Before the event is stored: it is given its place in our messages."""
        self._session = session
        routed = self._turns.route(event)
        self._routed[event.id] = routed
        if routed.message is not None:
            ids = routed.message.ids(self._turns.step)
            event.custom_metadata = {**(event.custom_metadata or {}), **ids.metadata()}
        if not self._has_sub_agents:
            # ADK would tell the agent's own words to it later as those of somebody else.
            event.live_session_id = None

    @property
    def _has_sub_agents(self) -> bool:
        return bool(getattr(self._chat.runner.agent, "sub_agents", None))

    def note(self, approval: Approval) -> None:
        self._records[approval.call] = approval

    def waits(self, call: CallKey, tool: BaseTool, nested_in: NestedCall | None, *, blocks: bool) -> None:
        message = self._turns.owner_of(nested_in.outer if nested_in else call) or self._turns.current
        if message is None:
            return
        if nested_in is not None:
            self._announce(message, call, tool, nested_in)
            message.waiting[nested_in.outer] = blocks
            self._outer[call] = nested_in.outer
        message.waiting[call] = blocks
        self._end_if_it_waits(message)

    def left(self, call: CallKey) -> None:
        message = self._turns.owner_of(call)
        if message is not None:
            self._left_to_client.add(call)
            message.waiting[call] = False
            self._end_if_it_waits(message)

    def goes_on(self, call: CallKey) -> None:
        for message in self._messages.values():
            message.waiting.pop(call, None)
            message.waiting.pop(self._outer.get(call, call), None)

    def settled(self, call: CallKey, response: Any) -> None:
        message = self._turns.owner_of(call)
        if message is None:
            return
        if call in self._outer:  # no event of ADK's will tell
            made_by = message.calls.pop(call, None)
            if made_by is not None:
                self._open_for_result(message)
                message.write(message.translator.feed(result_event(made_by, call, response)))
            return
        message.ended[call] = response
        if message.is_blocked:
            self._open_for_result(message)
            self._end_if_it_waits(message)

    async def news(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), timeout_s)

    def _tell_news(self) -> None:
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
            custom_metadata=message.ids(self._turns.step).metadata(),
        )
        self.announced[call] = event
        self._turns.adopt(call, message)
        self._open_for_result(message)
        message.write(message.translator.delegate(nested.outer.call_id))
        message.write(message.translator.feed(event))
        message.calls[call] = event

    # -- the model's side ---------------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        self._gate.go_live(self._lease, self)
        lift_frame_limit(self._chat.runner.agent)
        try:
            try:
                await self._consume()
            except SessionNotFoundError:
                if self._invocation_id:
                    raise
                await self._chat.create()
                await self._consume()
        except asyncio.CancelledError:
            pass  # by ourselves: nobody else has this task
        except Exception as error:
            log_failure(error, self._chat.chat_id)
            self._ended_by, self._failure = "failure", public_failure_text(error)
        finally:
            await self._end()

    async def _consume(self) -> None:
        events = self._chat.runner.run_live(
            user_id=self._chat.user_id,
            session_id=self._chat.chat_id,
            live_request_queue=self.input,
            run_config=self._run_config,
        )
        async with aclosing(events):
            async for event in events:
                self._invocation_id = event.invocation_id
                await self._take(event)

    async def _take(self, event: Event) -> None:
        routed = self._routed.pop(event.id, _NOWHERE)
        if routed.over_before is not None:
            self._finish(routed.over_before)
        message = routed.message
        if message is None:
            return
        self._adopt(message)
        self._heard_at = asyncio.get_running_loop().time()
        message.event_count += 1
        if event.input_transcription is not None:
            is_final = bool(event.input_transcription.finished)
            self._tell_transcript("user", message.user_message_id, message.heard, is_final=is_final)
            return
        if event.interrupted:
            for listener in self._listeners:
                listener.audio_clear(self._chat.chat_id)
        is_result = bool(event.get_function_responses())
        if is_said(event) and (is_result or not message.is_unwanted):
            self._lost_before_last_word = self.input.takers_lost
            await self._tell(message, event)
        elif message.log is not None:
            message.write(message.translator.feed(event))
        if message.log is not None and message.log.size_bytes > self._limits.max_log_bytes:
            self._ended_by = "size"
            self._cancel()
        if routed.is_over or (is_result and message.is_superseded):
            self._finish(message)
        elif is_result and message is not self._turns.current and not message.is_blocked:
            self._later(_QUIET_S, message, self._finish)  # the model is at something else
        elif event.turn_complete:
            self._later(_SILENT_S, message, self._finish)
        self._end_if_it_waits(message)

    async def _tell(self, message: LiveMessage, event: Event) -> None:
        if event.output_transcription is not None:
            text, is_final = event.output_transcription.text or "", bool(event.output_transcription.finished)
            whole = text if is_final else message.said_aloud + text
            message.said_aloud = "" if is_final else whole
            self._tell_transcript("assistant", message.message_id, whole, is_final=is_final)
        if message.log is None:
            self._open_for_result(message)
        event = self._without_voice(message, event)
        files = await self._chat.files(event.actions.artifact_delta)
        for call in event.get_function_calls():
            if call.name not in CONTROL_FLOW:
                message.calls[CallKey(event.invocation_id, call.id or "")] = event
        message.write(message.translator.feed(event, files))
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
        rest = [part for part in parts if not (part.inline_data and _is_voice(part.inline_data))]
        content = types.Content(role="model", parts=rest) if rest else None
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

    def _send_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for content in deferred:
            self.input.say(content, self._state_delta or None)
            self._state_delta = {}

    # -- segments -----------------------------------------------------------------------------------------------------

    def _unasked_message(self) -> LiveMessage:
        return LiveMessage(self._services.new_translator())

    def _adopt(self, message: LiveMessage) -> None:
        if message.message_id not in self._messages:
            done = [id for id, old in self._messages.items() if not old.calls and old.log is None]
            for id in done[:-1]:  # the newest may still be asked for by a client that was away
                del self._messages[id]
            self._messages[message.message_id] = message
            message.translator.waiting.approvals = self._records

    def _open_for_result(self, message: LiveMessage) -> None:
        if message.log is None:
            message.open([call for call in message.calls if self._is_answered(call)])
            if not message.is_superseded:
                self._tell_turn(message)

    def _tell_turn(self, message: LiveMessage, by: LiveListener | None = None) -> None:
        for listener in self._listeners:
            if listener is not by:
                listener.turn(self._chat.chat_id, message)

    def _end_if_it_waits(self, message: LiveMessage) -> None:
        """A client sends nothing while its stream is open: to be answered, the segment must end."""
        if message.log is None or not message.waiting or message.is_at_work:
            return
        if not message.waiting.keys() <= message.calls.keys():
            return  # the gate is ahead: the client has not heard of the call yet
        message.tell_ended()
        if message.is_blocked:
            self._finish(message)
        else:
            self._later(_QUIET_S, message, self._finish)

    def _finish(self, message: LiveMessage) -> None:
        if message.log is not None:
            for call in message.calls.keys() - message.waiting.keys():  # at work beside the conversation
                message.translator.works_on(call.call_id)
            message.close(message.translator.finish())

    def _later(self, seconds: float, message: LiveMessage, work: Callable[[LiveMessage], None]) -> None:
        """If nothing more comes of this message until then."""
        count, log = message.event_count, message.log

        def look() -> None:
            if message.log is log and message.event_count == count:
                work(message)

        asyncio.get_running_loop().call_later(seconds, look)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """ADK tells nobody when its sender has died, and tries for ever where it is taken in and thrown out."""
        thrown_out = self.input.takers_lost - self._lost_before_last_word
        message, now = self._open_message, asyncio.get_running_loop().time()
        if message is None or message.is_at_work or message.waiting:
            self._heard_at = now
        is_silent = now - self._heard_at > self._limits.live_silence_s
        if is_silent or self.input.untaken_s() > self._limits.send_timeout_s or thrown_out > _MAX_RECONNECTS:
            logger.error("live session %s lost its model", self._chat.chat_id)
            self._ended_by, self._failure = "failure", _LOST_MODEL
            self._cancel()
        elif not self._is_ending:
            self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._watch)

    async def _end(self) -> None:
        self._is_ending = True
        for timer in (self._timer, self._grace):
            if timer is not None:
                timer.cancel()
        try:
            await self._keep_what_was_said()
            for call in self.announced:  # nobody can go on with those
                await self._services.refuse(call, ENDED)
            await self._services.park()
        except Exception as error:  # the session is gone or busy: the stream must end all the same
            log_failure(error, self._chat.chat_id)
        finally:
            await self._services.let_go()
            for message in self._messages.values():
                if message.log is not None:
                    message.close(last_words(message.translator, self._ended_by, self._failure))
            self.has_ended.set()

    async def _keep_what_was_said(self) -> None:
        """ADK stores nothing of an answer that does not come to its end, but the user has read it."""
        events: list[Event] = []
        for message in self._messages.values():
            if message.log is None or not self._invocation_id:
                continue
            half_said = message.translator.half_said()
            if self._ended_by is not None and not half_said:
                half_said.append((self._chat.root_author, None, []))
            ids = replace(message.ids(), ended_by=self._ended_by, failure=self._failure)
            events += [
                Event(
                    author=author,
                    branch=branch,
                    invocation_id=self._invocation_id,
                    content=types.Content(role="model", parts=parts) if parts else None,
                    custom_metadata=ids.metadata(),
                )
                for author, branch, parts in half_said
            ]
        await self._chat.append(events)


def _is_voice(blob: types.Blob) -> bool:
    return (blob.mime_type or "").startswith("audio/")
