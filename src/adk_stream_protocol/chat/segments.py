"""The segments of request mode: how a run starts, and how a message continues after answers or after a crash."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ..adk.calls.delivery import deliver_outcomes, with_results
from ..adk.calls.inner_calls import with_inner_calls
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.resumption import outcome_events, plan_resumption, question_events, stopped_call_events
from ..adk.calls.session_calls import SessionCall, calls_made, find_session_calls, unasked_among
from ..adk.live.talking_on import LiveWhileWaiting
from ..adk.request.request_run import RequestRun
from ..adk.request.run_request import RunRequest
from ..adk.run import Run, RunContext, RunOwner
from ..adk.run_config import effective_run_config, resolve_telemetry
from ..adk.session import Chat, MessageIds, find_event, message_id_of
from ..adk.translate.history import replay
from ..adk.translate.translator import Translator
from ..adk.translate.translators import Translators
from ..chunk_log import ChunkLog
from ..limits import Limits
from ..loop_share import LoopShare
from ..protocol.answers import CallAnswer
from ..protocol.approval_chain import BY_POLICY, ChainLink
from ..protocol.call_record import CallKey, CallRecord, ChatKey, Records, State
from ..protocol.chunks import AnyChunk, SdkVersion
from ..protocol.digest import canonical_json
from ..protocol.fold import MessageFold, UIMessage
from ..protocol.messages import ApprovalStyle
from ..protocol.outcome import results_of
from ..store.base import Store, load_results
from .closed_logs import encode_in_slices, new_log
from .leases import ChatLeases
from .prepared import Prepared, encode_prepared

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig
    from google.adk.events import Event
    from google.genai.types import Content

_KEPT_S = 60  # how long after its end an answer can still be read by its id


@dataclass(frozen=True, kw_only=True)
class RunDefaults:
    """What a bridge is set to, where a request says nothing else."""

    run_config: "RunConfig | None"
    translators: Translators
    live_while_waiting: LiveWhileWaiting | None


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """Which message continues, and what its client says about it. After a crash no client asks."""

    message_id: str
    start_id: str
    prepared: Prepared
    answers: Sequence[CallAnswer[SessionCall]] = ()
    sdk_version: SdkVersion | None = None
    approval_style: ApprovalStyle | None = None
    needs_reader: bool = True
    """Whether the run ends when nobody reads it. Whoever decided elsewhere expects that the call is run."""


class Segments:
    def __init__(self, store: Store, leases: ChatLeases, limits: Limits, defaults: RunDefaults) -> None:
        self._store = store
        self._leases = leases
        self._limits = limits
        self._defaults = defaults
        # What takes a while the first time, before the first request.
        for is_traced in (True, False):
            resolve_telemetry(effective_run_config(defaults.run_config, {}, {}), is_traced=is_traced)
        self._logs: dict[tuple[ChatKey, str], ChunkLog] = {}
        self.on_turn: Callable[[ChatKey, str], None] = lambda chat, message_id: None
        """Called with the id of a message when it goes on."""

    def new_translator(self, chat: Chat, ids: MessageIds, sdk_version: SdkVersion | None = None) -> Translator:
        return self._defaults.translators.new(chat, ids, sdk_version)

    async def records(self, chat: ChatKey, calls: Collection[CallKey] | None = None) -> Records:
        """All of the chat's, with the results of these calls, or of all calls."""
        records = {record.call: record for record in (await self._store.read(chat)).records}
        await load_results(self._store, chat, records, list(records) if calls is None else calls)
        return records

    # -- a message that continues -------------------------------------------------------------------------------------

    @asynccontextmanager
    async def ending_at_failure(self, leased: LeasedChat) -> AsyncGenerator[None]:
        try:
            yield
        except BaseException:
            await self._leases.end(leased)
            raise

    async def deliver_outcomes(self, chat: Chat, leased: LeasedChat) -> None:
        """Before the user's next message: append all outcomes of calls that the session does not have."""
        async with self.ending_at_failure(leased):
            await deliver_outcomes(self._store, chat, leased)

    async def read_session(self, chat: Chat, leased: LeasedChat) -> "tuple[list[Event], list[SessionCall]]":
        session = await chat.load()
        await load_results(
            self._store, chat.key, leased.records, [key for key, found in leased.records.items() if found.is_nested]
        )
        events = with_inner_calls(session.events if session else [], leased.records.values())
        calls = await find_session_calls(chat, events, leased.records.values())
        await self._leases.calls.take_back(leased, await calls_made(events))
        if unasked := unasked_among(leased.records.values(), calls):
            await self._leases.calls.end_unasked(leased, unasked)
            calls = await find_session_calls(chat, events, leased.records.values())
        return events, calls

    async def continue_message(
        self,
        chat: Chat,
        leased: LeasedChat,
        continuation: Continuation,
        events: "list[Event]",
        calls: Sequence[SessionCall],
    ) -> ChunkLog | None:
        """The log of the next segment; None if ADK has everything already."""
        prepared = continuation.prepared
        async with self.ending_at_failure(leased):
            of_message = [call for call in calls if call.message_id == continuation.message_id]
            first = await find_event(events, lambda event: message_id_of(event) == continuation.message_id)
            shown = MessageIds.of(first) if first else MessageIds(user_message_id=None, message_id=None)
            ids = MessageIds(
                user_message_id=None,
                message_id=continuation.message_id,
                approval_style=continuation.approval_style or shown.approval_style,
                send_state=sorted(prepared.get("send_state", ())) or shown.send_state,
                send_nodes=prepared.get("send_nodes") or shown.send_nodes,
            )
            translator = self.new_translator(chat, ids, continuation.sdk_version)
            message = MessageToContinue(
                chat=chat,
                ids=ids,
                start_id=continuation.start_id,
                events=events,
                calls=await with_results(self._store, chat.key, of_message, leased.records),
                records=leased.records,
            )
            segment = await plan_next_segment(message, translator, continuation.answers)
        if segment is None:
            await self._leases.end(leased)
            return None
        leased.prepared, leased.sdk_version = encode_prepared(prepared), continuation.sdk_version
        request = RunRequest(
            ids=ids,
            opening=segment.opening,
            contents=segment.contents,
            run_config=self.run_config(ids, prepared),
            state_delta=prepared.get("state_delta"),
            appended=segment.appended,
            answered=segment.answered,
            asked_by=shown,
            outputs=segment.outputs,
            needs_reader=continuation.needs_reader,
        )
        self.start(chat, leased, request, translator, segment.log)
        return segment.log

    # -- runs ---------------------------------------------------------------------------------------------------------

    def start(
        self, chat: Chat, leased: LeasedChat, request: RunRequest, translator: Translator, log: ChunkLog
    ) -> RequestRun:
        run = RequestRun(self.context(chat, leased, self), request, translator, log)
        self._logs[chat.key, request.ids.message_id or ""] = log
        self._leases.put(chat.key, run)
        run.start()
        return run

    def context(self, chat: Chat, leased: LeasedChat, owner: RunOwner) -> RunContext:
        leased.sessions = chat.runner.session_service
        return RunContext(chat=chat, leased=leased, store=self._store, limits=self._limits, owner=owner)

    async def run_ended(self, run: Run) -> None:
        await self._leases.end_run(run)
        log = run.log_of(run.message_id or "")
        if log is not None:
            self.keep_log(run.leased.key, run.message_id or "", log)

    def segment_opened(self, run: Run) -> None:
        if run.log is not None:
            self._logs[run.leased.key, run.message_id or ""] = run.log
            self.on_turn(run.leased.key, run.message_id or "")

    def run_config(self, ids: MessageIds, prepared: Prepared) -> "RunConfig":
        custom_metadata = {**prepared.get("custom_metadata", {}), **ids.metadata()}
        return effective_run_config(self._defaults.run_config, prepared.get("run_config", {}), custom_metadata)

    # -- logs ---------------------------------------------------------------------------------------------------------

    def log_of(self, chat: ChatKey, message_id: str) -> ChunkLog | None:
        """The last segment of an answer that runs here, or has ended a moment ago."""
        return self._logs.get((chat, message_id))

    def keep_log(self, chat: ChatKey, message_id: str, log: ChunkLog) -> None:
        """For a while after its end."""
        self._logs[chat, message_id] = log
        asyncio.get_running_loop().call_later(_KEPT_S, self._forget_log, chat, message_id, log)

    def _forget_log(self, chat: ChatKey, message_id: str, log: ChunkLog) -> None:
        if self._logs.get((chat, message_id)) is log:
            del self._logs[chat, message_id]


# -- the next segment of a message ------------------------------------------------------------------------------------

_ENDED = (State.DONE, State.FAILED, State.UNKNOWN)


@dataclass(frozen=True, kw_only=True)
class MessageToContinue:
    chat: Chat
    ids: MessageIds
    start_id: str
    """What the client calls the message."""
    events: "list[Event]"
    """Of the whole session."""
    calls: Sequence[SessionCall]
    """Those of the message."""
    records: dict[CallKey, CallRecord]


@dataclass(frozen=True, kw_only=True)
class NextSegment:
    """As `RunRequest` takes it."""

    log: ChunkLog
    opening: Sequence[AnyChunk]
    contents: "Sequence[Content]"
    appended: "Sequence[Event]"
    answered: frozenset[CallKey]
    outputs: frozenset[CallKey]


async def plan_next_segment(
    message: MessageToContinue, translator: Translator, answers: Sequence[CallAnswer[SessionCall]]
) -> NextSegment | None:
    """None if ADK has everything already. `answers`: none when nobody asks, after a crash."""
    ids, calls, records = message.ids, message.calls, message.records
    answered = {answer.asked.key for answer in answers}
    undelivered = [call for call in calls if call.is_undelivered and call.is_asked]
    unasked = [call for call in calls if call.is_undelivered and not call.is_asked]
    released = [call for call in calls if call.key in answered and _is_released_to_browser(call)]
    continued = frozenset(call.key for call in (*undelivered, *released))
    if not continued:
        return None
    before = _as_if_unanswered(records, continued)
    earlier = await replay(translator, message.chat, message.events, ids.message_id or "", before)
    # The segment before showed what had ended by then. It is shown again only to a client that asks for it.
    shown = {call.key for call in undelivered if call.record.executor == "server" and call.record.state in _ENDED}
    known = known_outputs(answers, records) | (shown - answered)
    resumption = plan_resumption(_in_whole_steps(undelivered, calls), ids)
    opening = translator.new_segment(message.start_id, records, continued, known)
    unknown = answered - known
    missed = [call.wire_id for call in calls if call.has_result and call.key in unknown]
    opening += results_of(await fold_in_slices(earlier), missed)
    for event in plan_resumption(undelivered, ids).browser_answers:
        opening += translator.feed(event, records=records)
    earlier += translator.call_parts.sent_by_client(records, continued)
    return NextSegment(
        log=new_log(await encode_in_slices(earlier)),
        opening=opening,
        contents=resumption.messages,
        appended=[
            *stopped_call_events(message.events, undelivered, records),
            *question_events(undelivered),
            *outcome_events(unasked),
            *resumption.appended,
        ],
        answered=continued,
        outputs=resumption.outputs,
    )


async def fold_in_slices(chunks: Iterable[AnyChunk]) -> UIMessage:
    fold, share = MessageFold(), LoopShare()
    for chunk in chunks:
        await share.give_way()
        fold.feed(chunk)
    return fold.message()


def _in_whole_steps(undelivered: Sequence[SessionCall], calls: Sequence[SessionCall]) -> list[SessionCall]:
    """Without the outputs of a step in which a browser's call is still open. ADK stores results in the order in which
    they come, and some models match them by their order alone. ADK would not go on before the last of them anyway."""
    open_steps = {
        call.asked_by.id
        for call in calls
        if call.record.executor == "browser" and not call.has_result and not call.record.is_final
        if not call.record.is_work
    }
    return [call for call in undelivered if call.record.executor == "server" or call.asked_by.id not in open_steps]


def _is_released_to_browser(call: SessionCall) -> bool:
    return call.record.executor == "browser" and call.record.state is State.APPROVED


def _as_if_unanswered(records: Records, calls: Collection[CallKey]) -> dict[CallKey, CallRecord]:
    """The records as the client knew them when the last segment ended."""

    def unanswered(record: CallRecord) -> CallRecord:
        if record.decided_by == BY_POLICY:
            return record
        if record.chain is None:
            return msgspec.structs.replace(record, state=State.PENDING, approved=None, payload=None)
        chain = tuple(ChainLink(approvers=link.approvers, deadline_s=link.deadline_s) for link in record.chain)
        return msgspec.structs.replace(record, state=State.IN_CHAIN, chain=chain, approved=None, payload=None)

    return {key: unanswered(found) if key in calls else found for key, found in records.items()}


def known_outputs(answers: Sequence[CallAnswer[SessionCall]], records: Mapping[CallKey, CallRecord]) -> set[CallKey]:
    """The calls whose recorded output came with these answers."""
    return {
        answer.asked.key
        for answer in answers
        if answer.result is not None
        and (found := records.get(answer.asked.key)) is not None
        and found.state is State.DONE
        and canonical_json(found.result) == canonical_json(answer.result)
    }
