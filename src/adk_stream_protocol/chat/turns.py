"""The turns of request mode: a new message, answers to calls, and what a lost run has left to do."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.policy import ApprovalPolicy
from ..adk.calls.session_calls import Events, calls_made
from ..adk.content import encode_content
from ..adk.live.live_run import LiveRun
from ..adk.live.live_segments import LiveListener
from ..adk.request.request_run import RESTARTING, RequestRun, RunRequest, SaidBefore
from ..adk.session import Chat, MessageIds, before_invocation, find_event, message_id_of
from ..adk.translate.history import find_turn, replay_to_its_end
from ..chunk_log import Reading
from ..errors import BridgeError, MalformedRequest, NotFound, RunActive, StoreUnavailable, TooMany
from ..limits import Limits
from ..protocol.call_record import ChatKey
from ..protocol.turn import Turn
from ..store.base import Store
from .answers import (
    Answered,
    deliver_again,
    deliver_outcomes,
    digest_of_message,
    encode_failure,
    encode_recorded_outcome,
    known_outputs,
    new_log,
    read_answers,
    was_told_before,
    whole_log,
)
from .leases import ChatLeases
from .prepared import Prepared, encode_prepared, presentation
from .segments import Asked, Segments

logger = logging.getLogger(__name__)

Opened = Reading | asyncio.Task[Reading]
"""What a request reads: at once, or after a while in which its client is to be kept waiting."""

_DISCONNECT_S = 2  # how long a client that has stopped reading may take to be noticed
_ANSWER_KEPT = "Your answer is recorded, but the server cannot go on with it now. It is taken up later."
_NOT_KNOWN = "Whether your answer was recorded is not known right now. Send it again."
_TOO_MANY_ANSWERS = "Too many of your answers wait for their chats. Wait for one of them, then send this one again."
_USED_BEFORE = "This message id was used for something else before. Send the message under a new id."


class ChatTurns:
    def __init__(
        self, store: Store, leases: ChatLeases, policy: ApprovalPolicy, limits: Limits, segments: Segments
    ) -> None:
        self._store = store
        self._leases = leases
        self._policy = policy
        self._limits = limits
        self._segments = segments
        self._waiting: set[asyncio.Task[Reading]] = set()
        self._answering: Counter[str] = Counter()  # answers under way, by their users

    # -- a new message ------------------------------------------------------------------------------------------------

    async def open(self, chat: Chat, turn: Turn, prepared: Prepared) -> Opened:
        """Start the run of one turn. Refuses before anything is stored."""
        self._leases.require_room(chat.key, self._limits.max_runs_per_user)
        leased = await self._leases.begin(chat.key)
        if leased is not None:
            return await self._begin(chat, turn, prepared, leased)
        run = await self._leases.begun(chat.key, _DISCONNECT_S)
        if not isinstance(run, RequestRun):
            raise RunActive
        if turn.again is None and turn.message_id is not None and run.asked_by.user_message_id == turn.message_id:
            _require_same(run.asked_by.said in (None, digest_of_message(turn)))
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
        async with self._segments.ending_at_failure(leased):
            await deliver_outcomes(self._store, chat, leased)
            run = await self._new_run(chat, turn, prepared, leased)
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
        first = await find_event(
            events, lambda event: message_id_of(event) == before.message_id and event.author != "user"
        )
        if first is None:  # its run was lost before it said anything
            again = replace(turn, again="edit", target_id=turn.message_id)
            opened = await self.open(chat, again, prepared)
            return opened if isinstance(opened, Reading) else await opened
        translator = self._segments.new_translator(chat, MessageIds.of(first), turn.sdk_version)
        records = await self._segments.records(chat.key)
        chunks = await replay_to_its_end(translator, chat, events, before.message_id, records)
        return Reading(await whole_log(chunks), is_replay=True)

    async def _new_run(self, chat: Chat, turn: Turn, prepared: Prepared, leased: LeasedChat) -> RequestRun:
        content, user_message_id, said = encode_content(turn), turn.message_id, digest_of_message(turn)
        if turn.again is not None:
            session = await chat.load()
            # The answer may have been given anew meanwhile, by another tab: what it answered is still there.
            named = [name for name in (turn.target_id, turn.message_id) if name is not None]
            events = session.events if session else []
            past = await find_turn(events, named)
            if past and not past.is_alone:
                raise MalformedRequest("What was said in a live session cannot be taken back.")
            if past:
                if turn.again == "regenerate":
                    content, user_message_id, said = past.content, past.user_message_id, past.said
                if not await chat.rewind_before(past.invocation_id):
                    raise NotFound
                kept = before_invocation(events, past.invocation_id)
                await self._leases.take_back(leased, await calls_made(kept))
                await deliver_again(self._store, chat, leased, kept)
            elif not turn.parts:
                raise NotFound
            # else the message never got here, or its chat was deleted: it is as good as new
        ids = MessageIds(
            user_message_id=user_message_id,
            message_id=f"msg-{secrets.token_urlsafe(12)}",
            said=said,
            **presentation(prepared, turn.approval_style),
        )
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        request = RunRequest(
            ids=ids,
            opening=translator.start(ids.message_id or ""),
            contents=[content],
            run_config=self._segments.run_config(ids, prepared),
            state_delta=prepared.get("state_delta"),
        )
        leased.prepared = encode_prepared(prepared)
        return self._segments.start(chat, leased, request, translator, new_log())

    # -- answers ------------------------------------------------------------------------------------------------------

    async def answer(
        self, chat: Chat, turn: Turn, prepared: Prepared, announced: Events = (), by: LiveListener | None = None
    ) -> Opened:
        """Write the answers down, and go on with the message that they belong to; or read what already does. Whatever
        is refused is refused before this returns; the rest may take its time."""
        user = chat.key.user_id
        if self._answering[user] >= self._limits.max_waiting_answers_per_user:
            raise TooMany(_TOO_MANY_ANSWERS)
        self._answering[user] += 1
        try:
            opened = await self._answer(chat, turn, prepared, announced, by)
        except BaseException:
            self._answered(user)
            raise
        if isinstance(opened, Reading):
            self._answered(user)
        else:
            opened.add_done_callback(lambda _: self._answered(user))
        return opened

    def _answered(self, user: str) -> None:
        self._answering[user] -= 1
        if not self._answering[user]:
            del self._answering[user]

    async def _answer(
        self, chat: Chat, turn: Turn, prepared: Prepared, announced: Events, by: LiveListener | None
    ) -> Opened:
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
            self._leases.require_room(chat.key, self._limits.max_runs_per_user)
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
            records = await self._segments.records(chat, ())
        except StoreUnavailable:
            raise StoreUnavailable(_NOT_KNOWN) from None
        for call in (answer.asked for answer in taken.answers):
            if call.key not in records or records[call.key].version == call.record.version:
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
                answered = [answer.asked.key for answer in taken.answers]
                records = await self._segments.records(chat.key, answered)
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
            asked = Asked(taken.message_id, start_id, prepared, taken.answers, turn.sdk_version, turn.approval_style)
            async with self._segments.ending_at_failure(leased):
                events, calls = await self._segments.read_session(chat, leased)
            log = await self._segments.go_on(chat, leased, asked, events, calls)
            if log is not None:
                return Reading(log)
            # Somebody else was faster, and has come to the end already.
        run = self._leases.get(chat.key)
        log = run.log if run is not None and run.message_id == taken.message_id else None
        if log is not None and not was_told_before(log, taken):
            return Reading(log)
        ids = MessageIds(user_message_id=None, message_id=taken.message_id, approval_style=turn.approval_style)
        translator = self._segments.new_translator(chat, ids, turn.sdk_version)
        records = await self._segments.records(chat.key)
        return Reading(await encode_recorded_outcome(chat, records, translator, taken, start_id, announced))

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
        await asyncio.sleep(0)  # what was just begun gets as far as it takes to be ended properly
        waiting = list(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _require_same(is_same: bool) -> None:
    if not is_same:
        raise MalformedRequest(_USED_BEFORE)
