"""New turns of request mode: a new message, a message that comes again, an answer to be given anew."""

import asyncio
import hashlib
import secrets
from dataclasses import replace

from ..adk.calls.delivery import deliver_again
from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.session_calls import calls_made
from ..adk.content import encode_content
from ..adk.request.request_run import RequestRun
from ..adk.request.run_request import RunRequest, SaidBefore
from ..adk.run import Run
from ..adk.session import Chat, MessageIds, before_invocation, find_event, message_id_of
from ..adk.translate.history import PastTurn, find_turn, replay_to_its_end
from ..chunk_log import Reading
from ..errors import MalformedRequest, NotFound, RunActive
from ..limits import Limits
from ..protocol.turn import FileInput, Turn
from ..store.base import Store
from .background import BackgroundWork, Opened
from .closed_logs import closed_log, new_log
from .leases import ChatLeases
from .prepared import Prepared, encode_prepared, presentation
from .segments import Segments

_DISCONNECT_S = 2  # how long the server may take to notice that a client has stopped reading
_USED_BEFORE = "This message id was used for something else before. Send the message under a new id."


class ChatTurns:
    def __init__(
        self, store: Store, leases: ChatLeases, segments: Segments, background: BackgroundWork, limits: Limits
    ) -> None:
        self._store = store
        self._leases = leases
        self._segments = segments
        self._background = background
        self._limits = limits

    async def open(self, chat: Chat, turn: Turn, prepared: Prepared) -> Opened:
        """Start the run of one turn. Refuses before anything is stored."""
        self._leases.require_room(chat.key, self._limits.max_runs_per_user)
        leased = await self._leases.begin(chat.key)
        if leased is not None:
            return await self._begin(chat, turn, prepared, leased)
        run = await self._leases.wait_for_start(chat.key, _DISCONNECT_S)
        if run is None:
            raise RunActive
        log = run.log_of(run.message_id or "") if run.asked_by is not None else None
        if log is not None and _is_repeated(turn, run.asked_by):
            return Reading(log, is_replay=True)
        if not await run.is_abandoned(_DISCONNECT_S):
            raise RunActive
        return self._background.start(self._begin_after(run, chat, turn, prepared), None)

    async def _begin_after(self, run: Run, chat: Chat, turn: Turn, prepared: Prepared) -> Reading:
        """Nobody reads the running answer any more: a stock `stop()` only disconnects."""
        await run.stop_after_tools()
        leased = await self._leases.begin(chat.key)
        if leased is None:
            raise RunActive
        return await self._begin(chat, turn, prepared, leased)

    async def _begin(self, chat: Chat, turn: Turn, prepared: Prepared, leased: LeasedChat) -> Reading:
        await self._segments.deliver_outcomes(chat, leased)
        async with self._segments.ending_at_failure(leased):
            run = await self._new_run(chat, turn, prepared, leased)
        try:
            await asyncio.shield(run.is_accepted)
        except SaidBefore as before:
            return await self._read_again(chat, turn, prepared, before)
        return Reading(run.last_log)

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
        return Reading(await closed_log(chunks), is_replay=True)

    async def _new_run(self, chat: Chat, turn: Turn, prepared: Prepared, leased: LeasedChat) -> RequestRun:
        content, user_message_id, said = encode_content(turn), turn.message_id, digest_of_message(turn)
        if turn.again is not None:
            past = await self._take_back(chat, turn, leased)
            if past is not None and turn.again == "regenerate":
                content, user_message_id, said = past.content, past.user_message_id, past.said
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
        leased.prepared, leased.sdk_version = encode_prepared(prepared), turn.sdk_version
        return self._segments.start(chat, leased, request, translator, new_log())

    async def _take_back(self, chat: Chat, turn: Turn, leased: LeasedChat) -> PastTurn | None:
        """Rewind the session to before the turn that is given again. None if the session does not have it."""
        session = await chat.load()
        events = session.events if session else []
        # Another tab may have asked for a new answer meanwhile. The message that it answers is still there.
        names = [name for name in (turn.target_id, turn.message_id) if name is not None]
        past = await find_turn(events, names)
        if past is not None:
            if not past.is_alone:
                raise MalformedRequest("Messages of a live session cannot be regenerated or edited.")
            if not await chat.rewind_before(past.invocation_id):
                raise NotFound
            events = before_invocation(events, past.invocation_id)
        elif not turn.parts:
            raise NotFound
        # Without such a turn, the message is taken as a new one: it never arrived, its chat was deleted, or a request
        # that failed after its rewind has left the rest to this one.
        await self._leases.calls.take_back(leased, await calls_made(events))
        await deliver_again(self._store, chat, leased, events)
        return past


def _is_repeated(turn: Turn, asked_by: MessageIds | None) -> bool:
    """Whether the turn is the one that the run answers, sent again."""
    if turn.again is not None or turn.message_id is None or asked_by is None:
        return False
    if turn.message_id != asked_by.user_message_id:
        return False
    _require_same(asked_by.said in (None, digest_of_message(turn)))
    return True


def _require_same(is_same: bool) -> None:
    if not is_same:
        raise MalformedRequest(_USED_BEFORE)


def digest_of_message(turn: Turn) -> str:
    """Differs between a repeated request and a new one under the same id."""
    digest = hashlib.sha256()
    for part in turn.parts:
        if isinstance(part, FileInput):
            content = part.content.encode() if isinstance(part.content, str) else part.content
            digest.update(hashlib.sha256(content).digest())
        else:
            digest.update(hashlib.sha256(part.text.encode()).digest())
    return digest.hexdigest()[:32]
