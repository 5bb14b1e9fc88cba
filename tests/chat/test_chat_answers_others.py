"""Answers that a client may not give, or not alone: calls of approvers, and those that the application answers."""

from typing import Any

import pytest

from adk_stream_protocol import Limits
from adk_stream_protocol.chat.answers import AnswerDecoder, DecodedAnswers
from adk_stream_protocol.errors import MalformedRequest, NotFound, OutputDoesNotFit
from adk_stream_protocol.protocol.approval_chain import ChainLink
from adk_stream_protocol.protocol.call_keys import CallKey, work_key
from adk_stream_protocol.protocol.call_record import CallRecord, State
from adk_stream_protocol.protocol.turn import Turn
from adk_stream_protocol.store.memory import MemoryStore
from support.pages import Clock
from support.records import record
from support.session_events import asking, calling, chat_with, pay

PAY = {"amount": 5}
KEY = CallKey("i1", "1")
ANN, BOB = ChainLink(approvers=("ann",)), ChainLink(approvers=("bob",))
BOB_APPROVED = ChainLink(approvers=("bob",), approved=True, decided_by="bob")


def decided(approved: bool = True, approval_id: str = "q1", **fields: Any) -> dict[str, Any]:
    word = {"id": approval_id, "approved": approved, **fields}
    return {"type": "tool-pay", "toolCallId": "1", "state": "approval-responded", "input": PAY, "approval": word}


def output(value: Any = "ok", tool: str = "pay", **fields: Any) -> dict[str, Any]:
    part = {"type": f"tool-{tool}", "toolCallId": "1", "state": "output-available", "input": PAY, "output": value}
    return {**part, **fields}


async def decode(found: CallRecord, *parts: dict[str, Any], tool: str = "pay") -> DecodedAnswers:
    store = MemoryStore(clock=Clock())
    await store.add(found)
    events = [calling(pay("1", tool), long_running_tool_ids={"1"}), asking("q1", {"id": "1"})]
    turn = Turn("c1", "m1", (), None, None, answers=parts)
    return await AnswerDecoder(store, Limits(), 60).decode(await chat_with(*events), turn)


def chained(*chain: ChainLink, state: State = State.IN_CHAIN, **fields: Any) -> CallRecord:
    return record(state=state, chain=chain, **fields)


# -- approvers --------------------------------------------------------------------------------------------------------


async def test_an_owner_decides_where_a_link_names_him_and_nowhere_else() -> None:
    ((_, new),) = (await decode(chained(ANN), decided())).changes
    assert (new.state, new.decided_by) == (State.APPROVED, "ann")
    for waits_for_others in (chained(BOB), chained(BOB, ANN)):
        with pytest.raises(NotFound):
            await decode(waits_for_others, decided())
    ((_, new),) = (await decode(chained(BOB_APPROVED, ANN), decided(approved=False))).changes
    assert new.state is State.DENIED


async def test_one_link_is_nothing_to_go_on_with() -> None:
    decoded = await decode(chained(ANN, BOB), decided())
    ((_, new),) = decoded.changes
    assert new.state is State.IN_CHAIN
    assert decoded.open_calls == frozenset()
    assert (await decode(chained(ANN), decided())).open_calls == {KEY}


@pytest.mark.parametrize("state", [State.IN_CHAIN, State.APPROVED])
async def test_a_browser_may_answer_when_the_others_have_approved(state: State) -> None:
    approved = state is State.APPROVED
    chain = BOB_APPROVED if approved else BOB
    found = chained(chain, state=state, executor="browser", approval_id="a1", approved=approved or None)
    if not approved:
        with pytest.raises(NotFound):
            await decode(found, output())
        return
    ((_, new),) = (await decode(found, output())).changes
    assert (new.state, new.result) == (State.DONE, {"output": "ok"})
    with pytest.raises(NotFound):
        await decode(found, decided(approval_id="a1"))  # he was not asked


async def test_a_servers_call_that_others_have_approved_is_not_the_owners_to_answer() -> None:
    with pytest.raises(NotFound):
        await decode(chained(BOB_APPROVED, state=State.APPROVED, approved=True), decided())


async def test_in_a_chain_a_change_must_be_one_that_the_tool_takes() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    takes = chained(ANN, edits=schema)
    ((_, new),) = (await decode(takes, decided(payload={"to": "Bob"}))).changes
    assert new.payload == {"to": "Bob"}
    for found in (takes, chained(ANN), record(edits=schema)):
        with pytest.raises(OutputDoesNotFit):
            await decode(found, decided(payload={"to": 5}))
        assert len((await decode(found, decided(approved=False, payload={"to": 5}))).changes) == 1
        assert len((await decode(found, decided())).changes) == 1
    assert len((await decode(record(), decided(payload={"to": 5}))).changes) == 1


async def test_whoever_only_approves_gets_what_was_asked() -> None:
    asked = record(asked_payload={"to": "Bob"})
    ((_, new),) = (await decode(asked, decided())).changes
    assert new.payload == {"to": "Bob"}
    ((_, new),) = (await decode(asked, decided(payload={"to": ""}))).changes
    assert new.payload == {"to": ""}


# -- the application --------------------------------------------------------------------------------------------------


async def test_a_client_tells_no_end_of_work() -> None:
    going_on = record(
        "1", State.APPROVED, work_key(KEY).invocation_id, executor="browser", arguments=PAY, delivered=False
    )
    with pytest.raises(NotFound):
        await decode(going_on, output())


async def test_a_client_gives_no_credential() -> None:
    tool = "adk_request_credential"
    asked = record(state=State.APPROVED, executor="browser", tool=tool, arguments=PAY)
    with pytest.raises(NotFound):
        await decode(asked, output(tool=tool), tool=tool)
    ((_, new),) = (await decode(record(state=State.APPROVED, executor="browser"), output())).changes
    assert new.state is State.DONE


# -- what is in an answer ---------------------------------------------------------------------------------------------


async def test_an_answer_with_nul_characters_is_refused() -> None:
    browsers = record(state=State.APPROVED, executor="browser")
    with pytest.raises(OutputDoesNotFit) as refused:
        await decode(browsers, output("a\0b"))
    assert str(refused.value) == (
        "The output has a NUL character in it. The call is still open: send an output without it."
    )
    for said in ({"reason": "a\0b"}, {"payload": {"to": "\0"}}):
        with pytest.raises(MalformedRequest) as malformed:
            await decode(record(), decided(**said))
        assert str(malformed.value) == "A decision must not have NUL characters in it."


@pytest.mark.parametrize(("value", "fits"), [("a", True), ({"result": "a"}, True), (5, False), ({"result": 5}, False)])
async def test_an_answer_to_a_form_may_be_wrapped_as_adk_does(value: Any, fits: bool) -> None:
    schema = {"type": "string"}
    tool = "adk_request_input"
    asked = record(state=State.APPROVED, executor="browser", tool=tool, arguments=PAY, output_schema=schema)
    if fits:
        assert len((await decode(asked, output(value, tool), tool=tool)).changes) == 1
    else:
        with pytest.raises(OutputDoesNotFit):
            await decode(asked, output(value, tool), tool=tool)
    plain = record(state=State.APPROVED, executor="browser", output_schema=schema)
    with pytest.raises(OutputDoesNotFit):
        await decode(plain, output({"result": "a"}))
