"""What seldom happens to a live session: nobody listens, the user interrupts, the model hands over, the run is over."""

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.live_effects import End
from adk_stream_protocol.protocol.live_messages import Phase
from protocol.live_talk import LOOK, PAY, Table, of


def test_a_run_that_is_over_closes_what_is_open_and_does_nothing_more() -> None:
    table = Table()
    table.ask_for(LOOK)
    assert table.feed(facts.Over()) == [effects.Close("A", End.RUN, frozenset({LOOK}))]
    assert table.write("B") == []
    assert table.settle(LOOK) == []


def test_messages_that_begin_when_nobody_listens_are_told_to_who_comes_next() -> None:
    table = Table()
    table.feed(facts.Left())
    assert of(effects.Notify, table.write("A")) == []
    assert table.feed(facts.Attached()) == [effects.Notify("A")]


def test_an_interruption_while_nothing_is_said_silences_the_voice_alone() -> None:
    table = Table()
    assert table.interrupt() == [effects.ClearVoice()]


def test_a_message_that_the_user_interrupted_is_shown_again_if_the_model_calls_a_tool_in_it() -> None:
    table = Table()
    table.write("A")
    table.says()
    assert of(effects.Close, table.interrupt()) == [effects.Close("A", End.INTERRUPTED)]
    assert of(effects.Open, table.says(calls=(PAY,))) == [effects.Open("A", frozenset({PAY}))]


def test_after_a_handover_the_result_of_a_tool_beside_the_conversation_is_stored_at_once() -> None:
    """ADK has no agent any more that would store it."""
    table = Table()
    table.ask_for(LOOK)
    table.begin(LOOK, beside=True)
    table.shows(hands_over=True)
    assert table.settle(LOOK, {"balance": 7}) == [effects.StoreResult("A", LOOK, {"balance": 7})]


def test_of_an_interrupted_answer_nothing_more_comes_after_a_lost_connection() -> None:
    table = Table()
    table.write("A")
    table.says()
    table.interrupt()
    table.feed(facts.ConnectionLost())
    assert table.phase("A") is Phase.ENDED
    assert of(effects.Open, table.says()) == [effects.Open(next(reversed(table.turns.routes.messages)), frozenset())]
