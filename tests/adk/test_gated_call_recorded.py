"""What is written down of a call beside its question: who decides, where it was made, and for whom."""

from types import MappingProxyType
from typing import Any

import pytest
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai.types import FunctionCall

from adk_stream_protocol import ApprovalPolicy, client_tool
from adk_stream_protocol.adk.calls.gated_call import STORE_DOWN, GatedCall, new_approval_id
from adk_stream_protocol.adk.calls.live_observer import NestedCall
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, State
from support.gated_calls import KEY, PAY, Gate, pay
from support.records import CHAT

pytestmark = pytest.mark.virtual_time

OUTER = CallKey("i1", "outer")
SCHEMA = {"type": "object"}


async def asked_with(verdict: Any = None, **options: Any) -> tuple[Gate, CallRecord]:
    """A question under this policy, as it is stored."""
    gate = await Gate.opened()
    call = gate.call()
    call.policy, call.verdict = ApprovalPolicy(deadline_s=100, **options), verdict
    assert await call.ask(hint=None, approval_id="a1") is None
    return gate, await gate.stored()


def test_ids_of_questions_are_all_different() -> None:
    first, second = new_approval_id(), new_approval_id()
    assert first != second
    assert first.startswith("adk-")


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
async def test_a_question_that_may_be_stored_all_the_same_was_not_asked(is_stored: bool) -> None:
    gate = await Gate.opened()
    gate.store.failures, gate.store.fails_late = [StoreUnavailable()], is_stored
    assert await gate.call().ask(hint=None, approval_id="a1") == STORE_DOWN
    assert (gate.leased.not_run, gate.leased.records) == ({KEY}, {})
    assert len((await gate.store.read(CHAT)).records) == is_stored


# -- who decides ------------------------------------------------------------------------------------------------------


async def test_a_chain_is_asked_link_by_link_each_in_its_own_time() -> None:
    chain = (ChainLink(approvers=("bob",), deadline_s=7), ChainLink(approvers=("eve",), deadline_s=9))
    gate, stored = await asked_with(chain)
    assert (stored.state, stored.chain, stored.deadline) == (State.IN_CHAIN, chain, gate.store.clock.now + 7)
    assert (stored.approval_id, stored.question_id) == ("a1", None)


async def test_what_the_policy_waives_is_approved_by_the_policy() -> None:
    gate, told = await Gate.opened(), list[CallRecord]()
    gate.leased.on_asked = told.append
    assert await gate.call().approve_by_policy() is None
    stored = await gate.stored()
    assert (stored.state, stored.approved, stored.decided_by) == (State.APPROVED, True, "by policy")
    assert (stored.executor, stored.decided_at, stored.deadline) == ("server", gate.store.clock.now, None)
    assert (stored.approval_id or "").startswith("adk-")
    assert told == []  # nobody is asked
    again = await gate.call().approve_by_policy()
    assert again == "This call was not run: an earlier call of this turn has the same id."


@pytest.mark.parametrize(("verdict", "approval_id"), [("nobody", "a1"), ("nobody", None), (None, None)])
async def test_a_browsers_call_that_the_policy_waives_is_approved_by_it(verdict: Any, approval_id: str | None) -> None:
    gate, tool = await Gate.opened(), client_tool("pay", "Pays.")
    call = gate.call(tool=tool)
    call.verdict = verdict
    assert await call.open_for_browser(tool, approval_id=approval_id) is None
    stored, now = await gate.stored(), gate.store.clock.now
    by_policy = (True, "by policy", now) if approval_id else (None, None, None)
    assert (stored.approved, stored.decided_by, stored.decided_at) == by_policy
    assert (stored.state, stored.approval_id) == (State.APPROVED, approval_id)
    assert (stored.deadline, stored.browser_deadline) == (None, now + 10)


async def test_whoever_wants_to_know_hears_of_a_question() -> None:
    gate, told = await Gate.opened(), list[CallRecord]()
    gate.leased.on_asked = told.append
    assert await gate.call().ask(hint=None, approval_id="a1") is None
    assert [record.approval_id for record in told] == ["a1"]


# -- what they read ---------------------------------------------------------------------------------------------------


async def test_a_question_has_its_card_and_what_may_be_changed() -> None:
    card: Any = {"title": "Pay?"}
    _, stored = await asked_with(cards={"pay": card}, edits={"pay": MappingProxyType(SCHEMA)})
    assert (stored.card, stored.edits) == (card, SCHEMA)
    _, plain = await asked_with()
    assert (plain.card, plain.edits) == (None, None)


async def test_a_card_that_cannot_be_shown_exactly_asks_nobody() -> None:
    gate = await Gate.opened()
    call = gate.call()
    card: Any = {"title": "Pay?", "fields": [{"label": "Rate", "value": float("inf")}]}
    call.policy = ApprovalPolicy(cards={"pay": card})
    reason = await call.ask(hint=None, approval_id="a1")
    assert reason is not None
    assert gate.leased.records == {}


async def test_a_remote_agents_question_is_recorded_under_its_own_id() -> None:
    gate = await Gate.opened()
    asked = {"toolConfirmation": {"hint": "Sure?", "payload": {"to": ""}}}
    made_in = {"agent": "cashier", "remote": True}
    assert await gate.call().ask_for_remote(FunctionCall(id="q1", args=asked), made_in) is None
    stored = await gate.stored()
    assert (stored.executor, stored.state, stored.deadline) == ("server", State.PENDING, gate.store.clock.now + 100)
    assert (stored.approval_id, stored.question_id, stored.made_in) == (None, "q1", made_in)
    assert (stored.hint, stored.asked_payload) == ("Sure?", {"to": ""})
    refusal = await gate.call().ask_for_remote(FunctionCall(id="q2", args=None), made_in)
    assert refusal == "This call was not run: an earlier call of this turn has the same id."


@pytest.mark.parametrize("asked", [None, {}, {"toolConfirmation": "?"}])
async def test_a_remote_agents_question_may_say_nothing(asked: Any) -> None:
    gate = await Gate.opened()
    assert await gate.call().ask_for_remote(FunctionCall(id="q1", args=asked), {"remote": True}) is None
    stored = await gate.stored()
    assert (stored.hint, stored.asked_payload) == (None, None)


async def test_a_form_of_a_model_is_recorded_with_its_schema_but_not_with_its_patterns() -> None:
    gate = await Gate.opened()

    def adk_request_input(message: str) -> None:
        """Asks."""

    form = {"response_schema": {"type": "string", "pattern": "^a+$"}}
    assert await gate.call(form, FunctionTool(adk_request_input)).leave_to_client() is None
    assert (await gate.stored()).output_schema == {"type": "string"}
    gate = await Gate.opened()
    assert await gate.call(form).leave_to_client() is None
    assert (await gate.stored()).output_schema is None


# -- where it was made ------------------------------------------------------------------------------------------------


class Observer:
    """Knows which message a call belongs to."""

    def message_id_of(self, outer: CallKey | None) -> str:
        return f"message of {outer.call_id if outer else None}"


async def made(nested: NestedCall | None, *, observed: bool = True, tool: Any = None, **about: Any) -> CallRecord:
    gate, observer = await Gate.opened(), Observer()
    given: Any = observer if observed else None
    gate.leased.observer, gate.leased.sdk_version = given, 7
    call = gate.call(tool=tool)
    call.nested_in = nested
    for name, value in about.items():
        setattr(call, name, value)
    assert await call.ask(hint=None, approval_id="a1") is None
    return await gate.stored()


async def test_a_nested_call_is_recorded_with_its_place() -> None:
    stored = await made(NestedCall(OUTER, "cashier", frozenset()))
    assert stored.made_in == {"agent": "cashier", "outer": "outer", "outlives": False}
    assert (stored.message_id, stored.sdk_version) == ("message of outer", 7)
    stored = await made(NestedCall(None, "cashier", frozenset()), tool=LongRunningFunctionTool(pay))
    assert stored.made_in == {"agent": "cashier", "outer": None, "outlives": True}
    assert stored.message_id == "message of None"
    assert (await made(NestedCall(OUTER, "cashier", frozenset()), observed=False)).message_id == "m1"


async def test_a_call_of_the_chats_own_is_recorded_with_its_message() -> None:
    stored = await made(None)
    assert (stored.made_in, stored.message_id) == (None, "m1")
    assert (await made(None, is_delegated=True)).made_in == {"delegated": True}


async def test_calls_wait_inside_where_adk_does_not_come_back_to_them() -> None:
    gate = await Gate.opened()
    call: GatedCall = gate.call(PAY)
    assert (call.key, call.verdict, call.diverted, call.waits_inside) == (KEY, None, None, False)
    call.nested_in = NestedCall(None, "cashier", frozenset())
    assert call.waits_inside is True
    live: Any = Observer()
    call.nested_in, gate.leased.live_observer = None, live
    assert call.waits_inside is True
