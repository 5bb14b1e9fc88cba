"""The turns of request mode: a new message, answers to calls, and what a lost run has left to do."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..adk.chat import Chat, MessageIds, message_id_of
from ..adk.content import encode_content
from ..adk.history import find_turn, replay_to_its_end
from ..adk.leased_chat import LeasedChat
from ..adk.live_run import LiveRun
from ..adk.live_segments import LiveListener
from ..adk.policy import ApprovalPolicy
from ..adk.request_run import RESTARTING, RequestRun, RunRequest, SaidBefore
from ..adk.run_config import effective_run_config
from ..adk.session_calls import Events, SessionCall, find_session_calls
from ..adk.tool_parts import Records
from ..adk.translator import Translator
from ..chunk_log import ChunkLog, Reading
from ..errors import BridgeError, MalformedRequest, NotFound, RunActive, StoreUnavailable
from ..limits import Limits
from ..protocol.answers import Answer
from ..protocol.approvals import ChatKey
from ..protocol.chunks import SdkVersion
from ..protocol.messages import ApprovalStyle
from ..protocol.turn import Turn
from ..store.base import Store
from .answers import (
    Answered,
    MessageToContinue,
    continue_message,
    deliver_outcomes,
    digest_of_message,
    encode_failure,
    encode_recorded_outcome,
    known_outputs,
    new_log,
    read_answers,
    whole_log,
)
from .leases import ChatLeases
from .prepared import Prepared, decode_prepared, encode_prepared, presentation

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig
    from google.adk.events import Event

logger = logging.getLogger(__name__)

Opened = Reading | asyncio.Task[Reading]
"""What a request reads: at once, or after a while in which its client is to be kept waiting."""

_DISCONNECT_S = 2  # how long a client that has stopped reading may take to be noticed
_KEPT_S = 60  # how long after its end an answer can still be read by its id
_ANSWER_KEPT = "Your answer is recorded, but the server cannot go on with it now. It is taken up later."
_NOT_KNOWN = "Whether your answer was recorded is not known right now. Send it again."
_USED_BEFORE = "This message id was used for something else before. Send the message under a new id."


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What a bridge is set to, where a request says nothing else."""

    run_config: "RunConfig | None"
    sdk_version: SdkVersion
    approval_style: ApprovalStyle | None


class ChatTurns:
    def __init__(
        self, store: Store, leases: ChatLeases, policy: ApprovalPolicy, limits: Limits, defaults: Defaults
    ) -> None:
        self._store = store
        self._leases = leases
        self._policy = policy
        self._limits = limits
        self._defaults = defaults
        self._waiting: set[asyncio.Task[Reading]] = set()
        self._logs: dict[tuple[ChatKey, str], ChunkLog] = {}

    def new_translator(self, chat: Chat, ids: MessageIds, sdk_version: SdkVersion | None = None) -> Translator:
        return Translator(
            root_author=chat.root_author,
            sdk_version=sdk_version or self._defaults.sdk_version,
            approval_style=ids.approval_style or self._defaults.approval_style,
            send_state=ids.send_state or (),
            send_nodes=ids.send_nodes or False,
            control_flow=chat.control_flow,
        )

    async def records(self, chat: ChatKey) -> Records:
        return {record.call: record for record in (await self._store.read(chat)).approvals}

    # -- a new message ------------------------------------------------------------------------------------------------

    async def open(self, chat: Chat, turn: Turn, prepared: Prepared) -> Opened:
        """Start the run of one turn. Refuses before anything is stored."""
        leased = await self._leases.begin(chat.key)
        if leased is not None:
            return await self._begin(chat, turn, prepared, leased)
        run = self._leases.get(chat.key)
        if not isinstance(run, RequestRun):
            raise RunActive
        if turn.again is None and turn.message_id is not None and run.ids.user_message_id == turn.message_id:
            _require_same(run.ids.said == digest_of_message(turn))
            return Reading(run.log, is_replay=True)
        if not await run.log.is_left(_DISCONNECT_S):
            raise RunActive
        return self._in_background(self._begin_after(run, chat, turn, prepared), None)

    async def _begin_after(self, run: RequestRun, chat: Chat, turn: Turn, prepared: Prepared) -> Reading:
        """Nobody reads the running answer any more: a stock `stop()` only disconnects."""
        await run.stop_after_tools()
        leased = await self._leases.begin(chat.key)
        if leased is None:
            raise RunActive
        return await self._begin(chat, turn, prepared, leased)

    async def _begin(self, chat: Chat, turn: Turn, prepared: Prepared, leased: LeasedChat) -> Reading:
        async with self._ending_at_failure(leased):
            await deliver_outcomes(self._store, chat, leased)
            run = await self._new_run(chat, turn, prepared, leased)
        self._start(chat, run)
        try:
            await asyncio.shield(run.is_accepted)
        except SaidBefore as before:
            return await self._read_again(chat, turn, prepared, before)
        return Reading(run.log)

    async def _read_again(self, chat: Chat, turn: Turn, prepared: Prepared, before: SaidBefore) -> Reading:
        """The message is in the session already: a retry after a network error. It is answered once, and read twice."""
        _require_same(before.is_same)
        session = await chat.load()
        events = session.events if session else []
        answers = [event for event in events if message_id_of(event) == before.message_id and event.author != "user"]
        if not answers:  # its run was lost before it said anything
            again = replace(turn, again="edit", target_id=turn.message_id)
            opened = await self.open(chat, again, prepared)
            return opened if isinstance(opened, Reading) else await opened
        translator = self.new_translator(chat, MessageIds.of(answers[0]), turn.sdk_version)
        records = await self.records(chat.key)
        chunks = await replay_to_its_end(translator, chat, events, before.message_id, records)
        return Reading(whole_log(chunks), is_replay=True)

    async def _new_run(self, chat: Chat, turn: Turn, prepared: Prepared, leased: LeasedChat) -> RequestRun:
        content, user_message_id, said = encode_content(turn), turn.message_id, digest_of_message(turn)
        if turn.again is not None:
            session = await chat.load()
            # The answer may have been given anew meanwhile, by another tab: what it answered is still there.
            named = [name for name in (turn.target_id, turn.message_id) if name is not None]
            past = session and next(filter(None, (find_turn(session.events, name) for name in named)), None)
            if past and not past.is_alone:
                raise MalformedRequest("What was said in a live session cannot be taken back.")
            if past:
                if turn.again == "regenerate":
                    content, user_message_id, said = past.content, past.user_message_id, past.said
                await chat.rewind_before(past.invocation_id)
            elif not turn.parts:
                raise NotFound
            # else the message never got here, or its chat was deleted: it is as good as new
        ids = MessageIds(
            user_message_id=user_message_id,
            message_id=f"msg-{secrets.token_urlsafe(12)}",
            said=said,
            **presentation(prepared, turn.approval_style),
        )
        translator = self.new_translator(chat, ids, turn.sdk_version)
        request = RunRequest(
            ids=ids,
            opening=translator.start(ids.message_id or ""),
            contents=[content],
            run_config=self._run_config(ids, prepared),
            state_delta=prepared.get("state_delta"),
        )
        leased.prepared = encode_prepared(prepared)
        return self._run(chat, leased, request, translator, new_log())

    # -- answers ------------------------------------------------------------------------------------------------------

    async def answer(
        self, chat: Chat, turn: Turn, prepared: Prepared, announced: Events = (), by: LiveListener | None = None
    ) -> Opened:
        """Write the answers down, and go on with the message that they belong to; or read what already does. Whatever
        is refused is refused before this returns; the rest may take its time."""
        taken = await read_answers(
            self._store,
            chat,
            turn,
            browser_s=self._policy.browser_deadline_s,
            limits=self._limits,
            announced=announced,
        )
        leased: LeasedChat | None = None
        if taken.open_calls or taken.changes:
            try:
                leased = await self._leases.begin(chat.key, taken.changes)
            except StoreUnavailable:
                await self._require_recorded(chat.key, taken)
                return Reading(encode_failure(turn.message_id or taken.message_id, _ANSWER_KEPT))
        if leased is not None and not any(answer.asked.key in leased.records for answer in taken.answers):
            await self._leases.end(leased)
            raise NotFound  # the chat was deleted meanwhile
        work = self._go_on(chat, turn, prepared, taken, leased, announced, by)
        return self._in_background(work, turn.message_id or taken.message_id, _ANSWER_KEPT)

    async def _require_recorded(self, chat: ChatKey, taken: Answered) -> None:
        """The store has failed at the answers. They may be written all the same, and then nobody says otherwise."""
        try:
            records = await self.records(chat)
        except StoreUnavailable:
            raise StoreUnavailable(_NOT_KNOWN) from None
        for call in (answer.asked for answer in taken.answers):
            if call.key not in records or records[call.key].version == call.approval.version:
                raise StoreUnavailable

    async def _go_on(
        self,
        chat: Chat,
        turn: Turn,
        prepared: Prepared,
        taken: Answered,
        leased: LeasedChat | None,
        announced: Events,
        by: LiveListener | None,
    ) -> Reading:
        start_id = turn.message_id or taken.message_id
        if leased is None and taken.open_calls:
            live = self._leases.get(chat.key)
            if isinstance(live, LiveRun):
                records = await self.records(chat.key)
                known = known_outputs(taken.answers, records)
                log = await live.take_up(taken.message_id, start_id, taken.open_calls, known, records, by)
                if log is not None:
                    return Reading(log)
                await live.end_if_idle()  # they are not its own: request mode takes them up
            async with asyncio.timeout(self._limits.max_run_s):
                place = await self._leases.wait_for(chat.key, taken.open_calls)
            if isinstance(place, RequestRun):
                return Reading(place.log)
            leased = place
        if leased is not None:
            asked = _Asked(taken.message_id, start_id, prepared, taken.answers, turn.sdk_version, turn.approval_style)
            async with self._ending_at_failure(leased):
                events, calls = await self._read_session(chat, leased)
            log = await self._continue(chat, leased, asked, events, calls)
            if log is not None:
                return Reading(log)
            # Somebody else was faster, and has come to the end already.
        run = self._leases.get(chat.key)
        if run is not None and run.message_id == taken.message_id and run.log is not None:
            return Reading(run.log)
        ids = MessageIds(user_message_id=None, message_id=taken.message_id, approval_style=turn.approval_style)
        translator = self.new_translator(chat, ids, turn.sdk_version)
        records = await self.records(chat.key)
        return Reading(await encode_recorded_outcome(chat, records, translator, taken, start_id, announced))

    # -- after a crash ------------------------------------------------------------------------------------------------

    async def continue_lost(self, chat: Chat, choose: Callable[[Sequence[SessionCall]], SessionCall | None]) -> None:
        """Go on with a message whose run was lost, if there is anything to go on with."""
        leased = await self._leases.begin(chat.key)
        if leased is None:
            return
        async with self._ending_at_failure(leased):
            events, calls = await self._read_session(chat, leased)
            lost = choose([call for call in calls if call.is_undelivered])
        if lost is None:
            await self._leases.end(leased)
            return
        prepared = decode_prepared(lost.approval.prepared)
        await self._continue(chat, leased, _Asked(lost.message_id, lost.message_id, prepared), events, calls)

    @asynccontextmanager
    async def _ending_at_failure(self, leased: LeasedChat) -> AsyncGenerator[None]:
        try:
            yield
        except BaseException:
            await self._leases.end(leased)
            raise

    async def _read_session(self, chat: Chat, leased: LeasedChat) -> "tuple[list[Event], list[SessionCall]]":
        session = await chat.load()
        events = session.events if session else []
        calls = find_session_calls(chat, events, leased.records.values())
        await self._leases.take_back(leased, frozenset(call.key for call in calls))
        return events, calls

    async def _continue(
        self, chat: Chat, leased: LeasedChat, asked: "_Asked", events: "list[Event]", calls: Sequence[SessionCall]
    ) -> ChunkLog | None:
        """The log of the next segment; None if there is nothing that ADK has not been told."""
        async with self._ending_at_failure(leased):
            calls = [call for call in calls if call.message_id == asked.message_id]
            shown = next((MessageIds.of(event) for event in events if message_id_of(event) == asked.message_id), None)
            shown = shown or MessageIds(user_message_id=None, message_id=None)
            ids = MessageIds(
                user_message_id=None,
                message_id=asked.message_id,
                approval_style=asked.approval_style or shown.approval_style,
                send_state=sorted(asked.prepared.get("send_state", ())) or shown.send_state,
                send_nodes=asked.prepared.get("send_nodes") or shown.send_nodes,
            )
            translator = self.new_translator(chat, ids, asked.sdk_version)
            message = MessageToContinue(ids, asked.start_id, events, calls)
            segment = await continue_message(
                chat,
                leased,
                translator,
                message,
                asked.answers,
                run_config=self._run_config(ids, asked.prepared),
                state_delta=asked.prepared.get("state_delta"),
            )
        if segment is None:
            await self._leases.end(leased)
            return None
        leased.prepared = encode_prepared(asked.prepared)
        log, request = segment
        self._start(chat, self._run(chat, leased, request, translator, log))
        return log

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _run(
        self, chat: Chat, leased: LeasedChat, request: RunRequest, translator: Translator, log: ChunkLog
    ) -> RequestRun:
        name = chat.key, request.ids.message_id or ""

        async def let_go(leased: LeasedChat) -> None:
            await self._leases.end_run(leased, request.answered)
            asyncio.get_running_loop().call_later(_KEPT_S, self._forget_log, name, log)

        self._logs[name] = log
        return RequestRun(chat, leased, request, translator, log, self._limits, let_go)

    def log_of(self, chat: ChatKey, message_id: str) -> ChunkLog | None:
        """The last segment of an answer that runs here, or has ended a moment ago."""
        return self._logs.get((chat, message_id))

    def _forget_log(self, name: tuple[ChatKey, str], log: ChunkLog) -> None:
        if self._logs.get(name) is log:
            del self._logs[name]

    def _start(self, chat: Chat, run: RequestRun) -> None:
        self._leases.put(chat.key, run)
        run.start()

    def _run_config(self, ids: MessageIds, prepared: Prepared) -> "RunConfig":
        custom_metadata = {**prepared.get("custom_metadata", {}), **ids.metadata()}
        return effective_run_config(self._defaults.run_config, prepared.get("run_config", {}), custom_metadata)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def _in_background(
        self, work: Coroutine[Any, Any, Reading], start_id: str | None, failure: str | None = None
    ) -> asyncio.Task[Reading]:
        """The work goes on without its client. What goes wrong is told in the stream: its headers are out by then.
        `failure`: what is told whatever goes wrong."""

        async def read() -> Reading:
            try:
                return await work
            except asyncio.CancelledError:  # the server goes
                return Reading(encode_failure(start_id, RESTARTING))
            except NotFound as error:
                return Reading(encode_failure(start_id, str(error)))
            except BridgeError as error:
                return Reading(encode_failure(start_id, failure or str(error)))
            except Exception as error:
                logger.error("a turn failed: %s", type(error).__qualname__)
                logger.debug("details", exc_info=error)
                return Reading(encode_failure(start_id, failure or BridgeError.public_text))

        task = asyncio.create_task(read(), name="adk-stream turn")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return task

    async def drain(self) -> None:
        """Nobody waits any longer for a chat to be free."""
        waiting = list(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@dataclass(frozen=True)
class _Asked:
    """What a request says of the message that goes on. After a crash nobody asks."""

    message_id: str
    start_id: str
    prepared: Prepared
    answers: Sequence[Answer[SessionCall]] = ()
    sdk_version: SdkVersion | None = None
    approval_style: ApprovalStyle | None = None


def _require_same(is_same: bool) -> None:
    if not is_same:
        raise MalformedRequest(_USED_BEFORE)
