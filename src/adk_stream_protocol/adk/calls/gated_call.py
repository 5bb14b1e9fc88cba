"""One call on its way through the gate: its record, from the question to the result.

The stored record and this process's copy of it change together. A task that is cancelled ends only after a write that
has begun is done, so that both are the same whenever a run is stopped.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from google.adk.tools import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai.types import FunctionCall

from ...errors import StoreUnavailable
from ...protocol import call_record
from ...protocol.approval_chain import BY_POLICY
from ...protocol.call_record import CallKey, CallRecord, NotAllowed, State
from ...protocol.chunks import plain_json
from ...protocol.digest import cannot_be_shown, digest_of_call, has_large_integer
from ...protocol.nul import without_nul
from ...store.base import Step, Store, advance
from ..event_parts import REQUEST_INPUT, as_dict
from .client_tools import ClientTool
from .input_requests import schema_of_answer
from .leased_chat import LeasedChat
from .live_observer import NestedCall
from .outcomes import OUTCOME_UNKNOWN, can_be_stored, ended_response
from .policy import ApprovalPolicy, Verdict

logger = logging.getLogger(__name__)

NOT_APPROVED = "This call was not run: nobody has approved it."
STORE_DOWN = "This call was not run: approvals cannot be recorded right now."
ELSEWHERE = "This call was not run: another run has taken it up."
_ID_USED_BEFORE = "This call was not run: an earlier call of this turn has the same id."
NOT_BEGUN = "This call was not run: it was stopped before it began."
_TOO_LARGE = "This call was not run: a browser cannot read an integer above 2^53 exactly. Send it as a string."

RETRIES_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Pauses between attempts to write what somebody waits for: a database that fails over is back in seconds."""

_APPROVED_BY_POLICY: dict[str, Any] = {"state": State.APPROVED, "approved": True, "decided_by": BY_POLICY}

_T = TypeVar("_T")


def new_approval_id() -> str:
    return f"adk-{uuid.uuid4()}"


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
    """
    | About | Attributes |
    |---|---|
    | where it is made | `store`, `policy`, `lease_s`, `leased`, `nested_in`, `is_delegated` |
    | the call | `key`, `tool`, `arguments` |
    | how far it is | `verdict`, `diverted`, `is_started`, `_may_have_begun` |
    """

    store: Store
    policy: ApprovalPolicy
    lease_s: float
    leased: LeasedChat
    key: CallKey
    tool: BaseTool
    arguments: dict[str, Any]
    """As the model gave them and the person sees them. Callbacks after the gate may change what the tool gets."""
    nested_in: NestedCall | None = None
    """Where it is made, if the chat's own session has no event of it."""
    is_delegated: bool = False
    """An agent that works on a call of a live session has made it. ADK cannot come back to that agent later."""
    is_started: bool = False
    _may_have_begun: bool = False
    """An attempt to record its start has failed, and may have been stored all the same."""
    diverted: ToolConfirmation | None = None
    """What its tool has asked by itself, in a workflow's node, and the gate has not seen yet."""
    verdict: Verdict | None = None
    """What the application's policy says about it; None if there is no policy."""

    @property
    def waits_inside(self) -> bool:
        """Whether it waits for answers inside ADK. ADK comes back to the others by itself."""
        return self.nested_in is not None or self.leased.live_observer is not None

    @property
    def record(self) -> CallRecord | None:
        return self.leased.records.get(self.key)

    # -- the question -------------------------------------------------------------------------------------------------

    async def ask(self, *, hint: str | None, payload: Any = None, approval_id: str | None) -> str | None:
        """Record that a person is asked. Returns why nobody can be asked, or None. `approval_id`: of our own question,
        if the call waits inside ADK; None where ADK asks."""
        return await self._add(
            executor="server",
            approval_id=approval_id,
            question_id=new_approval_id() if approval_id is None else None,
            asked_payload=payload,
            **self._question(hint),
        )

    async def ask_for_remote(self, question: FunctionCall, made_in: dict[str, Any]) -> str | None:
        """Record that a remote agent asks, under its own id. Returns why nobody can be asked, or None."""
        asked = as_dict(as_dict(question.args).get("toolConfirmation"))
        about = {"asked_payload": asked.get("payload"), "question_id": question.id, "made_in": made_in}
        return await self._add(executor="server", approval_id=None, **about, **self._question(asked.get("hint")))

    async def approve_by_policy(self) -> str | None:
        """Record that the policy asks nobody. Returns why the call cannot run, or None."""
        return await self._add(executor="server", approval_id=new_approval_id(), **_APPROVED_BY_POLICY)

    def _question(self, hint: str | None = None) -> dict[str, Any]:
        """Who is asked, how long they have, and what they read."""
        name = self.tool.name
        about: dict[str, Any] = {"state": State.PENDING, "person_s": self.policy.deadline_s}
        if isinstance(self.verdict, tuple):
            about = {"state": State.IN_CHAIN, "chain": self.verdict, "person_s": self.verdict[0].deadline_s}
        schema = self.policy.edits.get(name)
        return {
            **about,
            "hint": self.policy.hint(name, self.arguments) or hint,
            "card": self.policy.card(name, self.arguments),
            "edits": None if schema is None else dict(schema),
        }

    async def open_for_browser(self, tool: ClientTool, *, approval_id: str | None) -> str | None:
        """Record that the browser is to run it, after a person's approval if there is an `approval_id`. Returns why it
        cannot, or None."""
        if has_large_integer(self.arguments):
            return _TOO_LARGE
        about: dict[str, Any] = {"executor": "browser", "output_schema": tool.output_schema}
        if approval_id is not None and self.verdict == "nobody":
            about |= {"approval_id": approval_id, **_APPROVED_BY_POLICY}
        elif approval_id is not None:
            return await self._add(**about, approval_id=approval_id, **self._question())
        about.setdefault("state", State.APPROVED)
        return await self._add(**about, browser_s=self.policy.browser_deadline_s)

    async def ask_for_consent(self) -> str | None:
        """Record that the user is asked for consent. Returns why that cannot be, or None."""
        return await self._add(executor="browser", state=State.APPROVED, browser_s=self.policy.deadline_s)

    async def leave_to_client(self) -> str | None:
        """Record a long-running call of ADK's, which somebody else answers. That may take days, so there is no
        deadline."""
        is_question = self.tool.name == REQUEST_INPUT
        schema = schema_of_answer(self.arguments, by_model=True) if is_question else None
        return await self._add(executor="browser", state=State.APPROVED, output_schema=schema)

    async def _add(self, *, person_s: float | None = None, browser_s: float | None = None, **about: Any) -> str | None:
        """`person_s`, `browser_s`: how long the person or the browser has to answer."""
        about.setdefault("made_in", self._made_in())
        shown = [about.get("asked_payload"), about.get("card")]
        reason = cannot_be_shown(self.arguments) or cannot_be_shown(shown)
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
                decided_at=now if about.get("decided_by") else None,
                deadline=None if person_s is None else now + person_s,
                browser_deadline=None if browser_s is None else now + browser_s,
                message_id=self._message_id(),
                **self.leased.turn,
                is_nested=True if self.nested_in is not None else None,
                delivered=False,
                **about,
            )
            return await to_its_end(self._write_new(record))
        except StoreUnavailable:
            logger.error("the store is down: call %s of chat %s was not run", self.key.call_id, self.leased.key.chat_id)
            return STORE_DOWN

    def _message_id(self) -> str | None:
        if self.nested_in is None or self.leased.observer is None:
            return self.leased.message_id
        return self.leased.observer.message_id_of(self.nested_in.outer)

    def _made_in(self) -> dict[str, Any] | None:
        if self.nested_in is None:
            return {"delegated": True} if self.is_delegated else None
        outer = self.nested_in.outer
        about = {"agent": self.nested_in.agent, "outer": outer.call_id if outer is not None else None}
        return {**about, "outlives": self.tool.is_long_running}

    async def _write_new(self, record: CallRecord) -> str | None:
        try:
            is_new = await self.store.add(record)
        except BaseException:
            self.leased.not_run.add(self.key)  # it may be stored all the same
            raise
        if not is_new:
            return _ID_USED_BEFORE
        self.leased.records[self.key] = record
        if record.executor == "server" and record.approval_id is None:
            self.leased.unasked.add(self.key)
        if not record.is_decided:
            self.leased.on_asked(record)
        return None

    # -- the run ------------------------------------------------------------------------------------------------------

    async def take_up(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Somebody has confirmed the call to ADK. None if it may run now, or the response that ADK gets instead. Only
        the record counts, not the confirmation."""
        record = self.record
        if record is None or not record.is_decided or record.lacks_result:  # another worker may have changed it
            record = await self._read_again()
        digest = digest_of_call(self.tool.name, arguments)
        if record is None or record.digest != digest or not record.is_decided:
            return {"error": NOT_APPROVED}
        if record.is_final:
            return ended_response(record)
        self.leased.begin(self.key)  # from here on, whoever ends the run waits for this call
        try:
            instead = await to_its_end(self._start(digest))
        except BaseException:
            if self.is_started:  # according to the record; the tool itself has not run
                await self.fail(NOT_BEGUN, {})
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
        except BaseException:
            self._may_have_begun = True
            raise
        self.is_started = True
        return None

    async def _taken_elsewhere(self) -> dict[str, Any]:
        """Another run has the lease or the call. If it has started the call, the outcome is unknown here."""
        found = await self._read_again()
        if found is not None and found.is_final:
            return ended_response(found)
        if found is None or found.state is not State.STARTED:
            return {"error": ELSEWHERE}
        if self._may_have_begun and found.lease_token == self.leased.lease.token:
            await self.lose()  # by ourselves, it seems: nobody else would record an end
        return {"error": OUTCOME_UNKNOWN}

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
        is_storable = can_be_stored(result["response"])
        plain = plain_json(result, is_cut=not is_storable)
        token = self.leased.lease.token
        await self._move(lambda found, _: move(found, lease_token=token, result=without_nul(plain)))
        record = self.record
        if record is None:  # the chat was deleted meanwhile
            return {"error": OUTCOME_UNKNOWN}
        return None if is_storable and record.result == plain else ended_response(record)

    async def _move(self, move: Step) -> None:
        """Write the end of the call. If the record has an end already, that counts: we may have written it ourselves
        before the store failed. If nothing can be written or read, the outcome is unknown: the next holder of the lease
        records that, and we respond so, too."""
        self.is_started = False
        for pause_s in (*RETRIES_S, None):
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
