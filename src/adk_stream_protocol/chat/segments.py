"""The segments of request mode: how a run is started, and how a message goes on after answers or after a crash."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..adk.calls.leased_chat import LeasedChat
from ..adk.calls.session_calls import SessionCall, calls_made, find_session_calls
from ..adk.request.request_run import RequestRun, RunRequest
from ..adk.run_config import effective_run_config
from ..adk.session import Chat, MessageIds, find_event, message_id_of
from ..adk.translate.translator import Translator
from ..chunk_log import ChunkLog
from ..limits import Limits
from ..protocol.answers import CallAnswer
from ..protocol.call_record import CallKey, ChatKey, Records
from ..protocol.chunks import SdkVersion
from ..protocol.messages import ApprovalStyle
from ..store.base import Store, load_results
from .answers import MessageToContinue, continue_message, with_results
from .leases import ChatLeases
from .prepared import Prepared, decode_prepared, encode_prepared

if TYPE_CHECKING:
    from google.adk.agents.run_config import RunConfig
    from google.adk.events import Event

_KEPT_S = 60  # how long after its end an answer can still be read by its id


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """What a bridge is set to, where a request says nothing else."""

    run_config: "RunConfig | None"
    sdk_version: SdkVersion
    approval_style: ApprovalStyle | None


@dataclass(frozen=True)
class Asked:
    """What a request says of the message that goes on. After a crash nobody asks."""

    message_id: str
    start_id: str
    prepared: Prepared
    answers: Sequence[CallAnswer[SessionCall]] = ()
    sdk_version: SdkVersion | None = None
    approval_style: ApprovalStyle | None = None


class Segments:
    def __init__(self, store: Store, leases: ChatLeases, limits: Limits, defaults: Defaults) -> None:
        self._store = store
        self._leases = leases
        self._limits = limits
        self._defaults = defaults
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

    async def records(self, chat: ChatKey, calls: Collection[CallKey] | None = None) -> Records:
        """All of the chat's; with the results of these calls, or of all."""
        records = {record.call: record for record in (await self._store.read(chat)).records}
        await load_results(self._store, chat, records, list(records) if calls is None else calls)
        return records

    async def continue_lost(self, chat: Chat, choose: Callable[[Sequence[SessionCall]], SessionCall | None]) -> None:
        """Go on with a message whose run was lost, if there is anything to go on with."""
        leased = await self._leases.begin(chat.key)
        if leased is None:
            return
        async with self.ending_at_failure(leased):
            events, calls = await self.read_session(chat, leased)
            lost = choose([call for call in calls if call.is_undelivered and call.is_asked])
        if lost is None:
            await self._leases.end(leased)
            return
        prepared = decode_prepared(lost.record.prepared)
        await self.go_on(chat, leased, Asked(lost.message_id, lost.message_id, prepared), events, calls)

    @asynccontextmanager
    async def ending_at_failure(self, leased: LeasedChat) -> AsyncGenerator[None]:
        try:
            yield
        except BaseException:
            await self._leases.end(leased)
            raise

    async def read_session(self, chat: Chat, leased: LeasedChat) -> "tuple[list[Event], list[SessionCall]]":
        session = await chat.load()
        events = session.events if session else []
        calls = await find_session_calls(chat, events, leased.records.values())
        await self._leases.take_back(leased, await calls_made(events))
        return events, calls

    async def go_on(
        self, chat: Chat, leased: LeasedChat, asked: Asked, events: "list[Event]", calls: Sequence[SessionCall]
    ) -> ChunkLog | None:
        """The log of the next segment; None if there is nothing that ADK has not been told."""
        async with self.ending_at_failure(leased):
            of_message = [call for call in calls if call.message_id == asked.message_id]
            calls = await with_results(self._store, chat.key, of_message, leased.records)
            first = await find_event(events, lambda event: message_id_of(event) == asked.message_id)
            shown = MessageIds.of(first) if first else MessageIds(user_message_id=None, message_id=None)
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
                asked_by=shown,
                run_config=self.run_config(ids, asked.prepared),
                state_delta=asked.prepared.get("state_delta"),
            )
        if segment is None:
            await self._leases.end(leased)
            return None
        leased.prepared = encode_prepared(asked.prepared)
        log, request = segment
        self.start(chat, leased, request, translator, log)
        return log

    # -- runs ---------------------------------------------------------------------------------------------------------

    def start(
        self, chat: Chat, leased: LeasedChat, request: RunRequest, translator: Translator, log: ChunkLog
    ) -> RequestRun:
        name = chat.key, request.ids.message_id or ""

        async def let_go(leased: LeasedChat) -> None:
            await self._leases.end_run(leased, request.answered)
            asyncio.get_running_loop().call_later(_KEPT_S, self._forget_log, name, log)

        run = RequestRun(chat, leased, request, translator, log, self._limits, let_go)
        self._logs[name] = log
        self._leases.put(chat.key, run)
        run.start()
        return run

    def log_of(self, chat: ChatKey, message_id: str) -> ChunkLog | None:
        """The last segment of an answer that runs here, or has ended a moment ago."""
        return self._logs.get((chat, message_id))

    def _forget_log(self, name: tuple[ChatKey, str], log: ChunkLog) -> None:
        if self._logs.get(name) is log:
            del self._logs[name]

    def run_config(self, ids: MessageIds, prepared: Prepared) -> "RunConfig":
        custom_metadata = {**prepared.get("custom_metadata", {}), **ids.metadata()}
        return effective_run_config(self._defaults.run_config, prepared.get("run_config", {}), custom_metadata)
