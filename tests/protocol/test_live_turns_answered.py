"""What is done when a client answers calls, and when the user interrupts: all effects, in their order."""

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import End
from protocol.live_talk import LOOK, PAY, Table, quiet, silent

BOTH = frozenset({PAY, LOOK})

# -- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_opens_a_segment_and_its_tool_goes_on() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY)
    assert table.answer(PAY) == [effects.Open("A", frozenset({PAY})), effects.Notify("A"), effects.Wake()]
    assert table.turns.is_at_work


@pytest.mark.parametrize(
    ("done", "delivered", "closes"),
    [((), [], [quiet(2)]), ((PAY,), [PAY], [quiet(2)]), ((PAY, LOOK), [PAY, LOOK], [])],
    ids=str,
)
def test_calls_of_the_clients_are_delivered_when_they_wait_for_nothing_more(
    done: tuple[CallKey, ...], delivered: list[CallKey], closes: list[effects.StartTimer]
) -> None:
    table = Table()
    table.ask_for(PAY, LOOK)
    table.feed(facts.LeftToClient(PAY))
    (timer,) = table.feed(facts.LeftToClient(LOOK))
    assert timer == quiet(1)
    assert table.fire(quiet(1)) == [effects.Close("A", End.FINISH)]
    opened, notified, *middle, woken = table.answer(PAY, LOOK, done=done)
    assert [opened, notified, woken] == [effects.Open("A", BOTH), effects.Notify("A"), effects.Wake()]
    count = len(delivered)
    assert sorted(effect.call for effect in middle[:count] if isinstance(effect, effects.Deliver)) == sorted(delivered)
    assert middle[count:] == closes
    assert table.turns.calls_of("A") == [call for call in (PAY, LOOK) if call not in delivered]


def test_an_answer_that_comes_after_the_end_of_the_tool_loses_no_result() -> None:
    table = Table()
    table.ask_for(PAY)
    table.wait(PAY, blocks=False)
    table.go_on(PAY)
    table.settle(PAY, {"paid": 7})
    table.answer(PAY)
    assert table.feed(facts.HandedOver())[0] == effects.StoreResult("A", PAY, {"paid": 7})


# -- interruptions ----------------------------------------------------------------------------------------------------


def test_a_model_that_has_said_all_is_not_waited_for_after_an_interruption() -> None:
    table = Table()
    table.ask_for(PAY)
    table.event(is_turn_complete=True)
    table.feed(facts.LeftToClient(PAY))
    table.answer(PAY)
    assert table.interrupt() == [effects.ClearVoice(), effects.Close("A", End.INTERRUPTED)]
    begun = [effects.Open("begun-1"), effects.Notify("begun-1")]
    assert table.says() == [*begun, effects.Write("begun-1", "e")]


def test_a_model_that_is_not_at_its_end_is_waited_for_after_an_interruption() -> None:
    table = Table()
    table.ask_for(PAY)
    assert table.wait(PAY, blocks=False) == [quiet(1)]
    assert table.interrupt() == [effects.ClearVoice(), effects.Close("A", End.INTERRUPTED), silent(2)]
    assert table.says() == [silent(3)]
