"""One call on its way through the gate: its record, from the question to the result.

The stored record and this process's copy of it change together. A task that is cancelled ends only after a write that
has begun is done, so that both are the same whenever a run is stopped.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from google.adk.tools import BaseTool

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.call_record import CallKey, CallRecord, NotAllowed, State
from ...protocol.chunks import encode_json
from ...protocol.digest import cannot_be_shown, digest_of_call, has_large_integer
from ...protocol.nul import without_nul
from ...store.base import Step, Store, advance
from .client_tools import ClientTool
from .leased_chat import LeasedChat
from .outcomes import OUTCOME_UNKNOWN, ended_response
from .policy import ApprovalPolicy

logger = logging.getLogger(__name__)

NOT_APPROVED = "This call was not run: nobody has approved it."
STORE_DOWN = "This call was not run: approvals cannot be recorded right now."
_ELSEWHERE = "This call was not run: another run has taken it up."
_ID_USED_BEFORE = "This call was not run: an earlier call of this turn has its id."
_STOPPED = "This call was not run: it was stopped before it began."
_TOO_LARGE = "This call was not run: a browser cannot hold an integer beyond 2^53 exactly. Send it as a string."

_RETRIES_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Pauses between attempts to write a result: the tool has run, and a database that fails over is back in seconds."""

_T = TypeVar("_T")


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """Await the work. If the caller is cancelled meanwhile, the work is finished first."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass(eq=False, kw_only=True)
class GatedCall:
    store: Store
    policy: ApprovalPolicy
    lease_s: float
    leased: LeasedChat
    key: CallKey
    tool: BaseTool
    arguments: dict[str, Any]
    """As the model gave them and the person sees them. Callbacks after the gate may change what the tool gets."""
    is_nested: bool = False
    """It is made by an agent that runs as a tool."""
    is_started: bool = False

    @property
    def record(self) -> CallRecord | None:
        return self.leased.records.get(self.key)

    # -- the question -------------------------------------------------------------------------------------------------

    async def ask(self, *, hint: str | None, payload: Any = None, approval_id: str | None) -> str | None:
        """Record that a person is asked. Returns why nobody can be asked, or None. `approval_id`: of our own question,
        in live mode; None in request mode, where ADK asks."""
        return await self._add(
            executor="server",
            state=State.PENDING,
            person_s=self.policy.deadline_s,
            approval_id=approval_id,
            hint=self.policy.hint(self.tool.name, self.arguments) or hint,
            asked_payload=payload,
        )

    async def open_for_browser(self, tool: ClientTool, *, approval_id: str | None) -> str | None:
        """Record that the browser is to run it, after a person's approval if there is an `approval_id`. Returns why it
        cannot, or None."""
        if has_large_integer(self.arguments):
            return _TOO_LARGE
        if approval_id is None:
            return await self._add(
                executor="browser",
                state=State.APPROVED,
                browser_s=self.policy.browser_deadline_s,
                output_schema=tool.output_schema,
            )
        return await self._add(
            executor="browser",
            state=State.PENDING,
            person_s=self.policy.deadline_s,
            approval_id=approval_id,
            hint=self.policy.hint(tool.name, self.arguments),
            output_schema=tool.output_schema,
        )

    async def leave_to_client(self) -> str | None:
        """Record a long-running call of ADK's, which somebody else answers. That may take days, so there is no
        deadline."""
        return await self._add(executor="browser", state=State.APPROVED)

    async def _add(self, *, person_s: float | None = None, browser_s: float | None = None, **about: Any) -> str | None:
        """`person_s`, `browser_s`: how long the person or the browser has to answer."""
        reason = cannot_be_shown(self.arguments) or cannot_be_shown(about.get("asked_payload"))
        if reason is not None:
            return f"This call was not run: {reason}."
        try:
            now = (await self.store.read(self.leased.key, self.key)).now
            record = CallRecord(
                chat=self.leased.key,
                call=self.key,
                tool=self.tool.name,
                arguments=self.arguments,
                asked_at=now,
                deadline=None if person_s is None else now + person_s,
                browser_deadline=None if browser_s is None else now + browser_s,
                message_id=self.leased.message_id,
                prepared=self.leased.prepared,
                is_nested=self.is_nested or None,
                delivered=False,
                **about,
            )
            return await to_its_end(self._write_new(record))
        except StoreUnavailable:
            logger.error("the store is down: call %s of chat %s was not run", self.key.call_id, self.leased.key.chat_id)
            return STORE_DOWN

    async def _write_new(self, record: CallRecord) -> str | None:
        if not await self.store.add(record):
            return _ID_USED_BEFORE
        self.leased.records[self.key] = record
        if record.executor == "server" and record.approval_id is None:
            self.leased.unasked.add(self.key)
        return None

    # -- the run ------------------------------------------------------------------------------------------------------

    async def take_up(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Somebody has confirmed the call to ADK. None if it may run now, or the response that ADK gets instead. Only
        the record counts, not the confirmation."""
        record = self.record
        if record is None or record.state is State.PENDING or record.lacks_result:  # another worker may have changed it
            record = await self._read_again()
        digest = digest_of_call(self.tool.name, arguments)
        if record is None or record.digest != digest or record.state is State.PENDING:
            return {"error": NOT_APPROVED}
        if record.is_final:
            return ended_response(record)
        self.leased.begin(self.key)  # from here on, whoever ends the run waits for this call
        try:
            instead = await to_its_end(self._start(digest))
        except BaseException:
            if self.is_started:  # according to the record; the tool itself has not run
                await self.fail(_STOPPED, {})
            self.leased.end(self.key, has_result=False)
            raise
        if instead is not None:
            self.leased.end(self.key, has_result=False)
        return instead

    async def _start(self, digest: str) -> dict[str, Any] | None:
        lease = self.leased.lease
        try:
            # This process may have been too busy to renew the lease. If nobody else has taken it, it is still ours.
            await self.store.renew(lease, self.lease_s)
            self.leased.records[self.key] = await advance(
                self.store,
                self.leased.key,
                self.key,
                lambda found, _: call_record.claim(found, digest=digest, lease_token=lease.token),
                lambda found, _: call_record.start(found, lease_token=lease.token),
                lease=lease,
                known=self.leased.known(),
            )
        except NotAllowed:
            return await self._taken_elsewhere()
        self.is_started = True
        return None

    async def _taken_elsewhere(self) -> dict[str, Any]:
        """Another run has the lease or the call. If it has started the call, the outcome is unknown here."""
        found = await self._read_again()
        if found is None:
            return {"error": _ELSEWHERE}
        if found.is_final:
            return ended_response(found)
        return {"error": OUTCOME_UNKNOWN if found.state is State.STARTED else _ELSEWHERE}

    async def _read_again(self) -> CallRecord | None:
        found = (await self.store.read(self.leased.key, self.key)).find(self.key)
        if found is None:
            self.leased.records.pop(self.key, None)
        else:
            self.leased.records[self.key] = found
        return found

    # -- the result ---------------------------------------------------------------------------------------------------

    async def finish(self, result: Any, state: dict[str, Any]) -> dict[str, Any] | None:
        """Record what the tool returned, before anybody gets it. None, or the response that ADK gets instead."""
        return await to_its_end(self.end(call_record.finish, {"response": result, "state": state}))

    async def fail(self, text: str, state: dict[str, Any]) -> dict[str, Any] | None:
        return await to_its_end(self.end(call_record.fail, {"response": {"error": text}, "state": state}))

    async def lose(self) -> None:
        """Record that the tool was cancelled half-way: it may have had its effect."""
        await to_its_end(self._move(lambda found, _: call_record.lose_run(found, living_run=None)))

    async def end(self, move: Callable[..., CallRecord], result: dict[str, Any]) -> dict[str, Any] | None:
        plain = msgspec.json.decode(encode_json(result))
        token = self.leased.lease.token
        await self._move(lambda found, _: move(found, lease_token=token, result=without_nul(plain)))
        record = self.record
        if record is None:  # the chat was deleted meanwhile
            return {"error": OUTCOME_UNKNOWN}
        return None if record.result == plain else ended_response(record)

    async def _move(self, move: Step) -> None:
        """Write the end of the call. If the record has an end already, that counts: we may have written it ourselves
        before the store failed. If nothing can be written or read, the outcome is unknown: the next holder of the lease
        records that, and we respond so, too."""
        self.is_started = False
        for pause_s in (*_RETRIES_S, None):
            try:
                try:
                    moved = await advance(self.store, self.leased.key, self.key, move, known=self.leased.known())
                    self.leased.records[self.key] = moved
                    return
                except NotAllowed:
                    found = await self._read_again()
                    if found is None or found.is_final:
                        return
                    break
            except Exception as error:  # whatever a store raises
                logger.error("the end of call %s was not recorded: %s", self.key.call_id, type(error).__qualname__)
                if pause_s is not None:
                    await asyncio.sleep(pause_s)
        record = self.record
        if record is not None:
            self.leased.records[self.key] = msgspec.structs.replace(record, state=State.UNKNOWN)
