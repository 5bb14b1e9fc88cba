"""The work of long-running calls: who waits for it, and who ends it."""

from typing import Any

import pytest

from adk_stream_protocol.protocol import call_record
from adk_stream_protocol.protocol.call_keys import work_key
from adk_stream_protocol.protocol.call_record import CallKey, CallRecord, NotAllowed, State
from protocol.approval_calls import BROWSER, SERVER, changed

LEFT = changed(BROWSER, state=State.APPROVED, approval_id=None, output_schema=None, deadline=None)
WORK = changed(LEFT, call=work_key(LEFT.call))
LATER = 10.0**12


def test_the_work_of_a_call_is_recorded_beside_the_call() -> None:
    assert work_key(CallKey("e-1", "c1")) == CallKey("work:e-1", "c1")  # so it stands in the stores
    assert WORK.is_work
    assert not LEFT.is_work


def test_nobody_is_asked_about_work_and_it_is_never_late() -> None:
    assert not WORK.waits(0.0)
    assert WORK.due_at == 0
    assert call_record.expire(WORK, now=LATER) is WORK
    assert LEFT.waits(0.0)


@pytest.mark.parametrize("call", [LEFT, WORK], ids=["left", "work"])
def test_the_first_end_counts(call: CallRecord) -> None:
    ended = call_record.complete(call, result={"output": 1})
    assert ended == changed(call, state=State.DONE, result={"output": 1}, version=call.version + 1)
    assert call_record.complete(ended, result={"output": 2}) is ended
    assert call_record.report(ended, output=2) is ended


@pytest.mark.parametrize("call", [LEFT, WORK], ids=["left", "work"])
def test_progress_is_no_move(call: CallRecord) -> None:
    reported = call_record.report(call, output={"percent": 1})
    assert reported == changed(call, result={"output": {"percent": 1}}, version=call.version + 1)


NOT_LEFT: list[dict[str, Any]] = [{"approval_id": "a1"}, {"output_schema": {"type": "object"}}, {"executor": "server"}]


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("change", NOT_LEFT, ids=["approval", "schema", "server"])
def test_no_other_call_is_ended_by_the_application(state: State, change: dict[str, Any]) -> None:
    call = changed(LEFT, state=state, **change)
    with pytest.raises(NotAllowed, match=r"^not a long-running call$"):
        call_record.complete(call, result={"output": 1})
    with pytest.raises(NotAllowed, match=r"^not a long-running call$"):
        call_record.report(call, output=1)
    assert not SERVER.is_work
