"""Rows of the live table that the exploration does not reach: unsent words, calls of strangers, late news."""

import pytest

from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.live_effects import End, Why
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Message, Phase
from adk_stream_protocol.protocol.live_routes import Turn
from protocol.live_talk import INNER, LOOK, PAY, STRANGE, Table, of

# -- what is asked of it ----------------------------------------------------------------------------------------------


def test_the_open_message_is_that_of_the_open_segment() -> None:
    table = Table()
    assert table.turns.open_message is None
    table.feed(facts.Wrote("A"))
    assert (found := table.turns.open_message) is not None
    assert found.name == "A"
    table.event(is_said=True, is_turn_complete=True)
    assert table.turns.open_message is None


def test_a_message_that_is_not_the_models_can_be_open() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.turns.routes.current = None
    assert (found := table.turns.open_message) is not None
    assert found.name == "A"


def test_a_tool_is_at_work_until_it_has_ended() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    assert not table.turns.is_at_work
    table.call(LOOK)
    assert table.turns.is_at_work
    table.feed(facts.Settled(LOOK, {}))
    assert not table.turns.is_at_work


def test_calls_are_found_by_their_message_until_their_outcome_is_shown() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY)
    table.feed(facts.Settled(LOOK, {}))
    table.wait(PAY)
    assert table.turns.find_message(frozenset({PAY, LOOK})) == "A"
    assert table.turns.find_message(frozenset({LOOK})) is None
    assert table.turns.find_message(frozenset({STRANGE})) is None
    assert [table.turns.has_shown(call) for call in (LOOK, PAY, STRANGE)] == [True, False, False]
    assert table.turns.calls_of("A") == [PAY]
    assert not table.turns.is_orphan(PAY)
    assert not table.turns.is_orphan(STRANGE)


def test_a_segment_goes_on_after_no_call_that_still_waits() -> None:
    """Its record may be ahead: the model has taken the call back. The segment would tell an outcome of its own."""
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY)
    table.wait(LOOK, blocks=False)
    table.wait(PAY)
    table.feed(facts.GoesOn(LOOK))
    done = table.feed(facts.Settled(LOOK, {}))
    assert of(effects.Open, done) == [effects.Open("A", frozenset({LOOK}))]
    assert of(effects.Close, done) == [effects.Close("A", End.FINISH)]
    table.feed(facts.GoesOn(PAY))
    table.feed(facts.Settled(PAY, {}))
    assert of(effects.Open, table.event(is_said=True, results=(PAY,))) == [effects.Open("A", frozenset({PAY}))]


def test_results_that_adk_keeps_back_for_a_call_that_it_gives_up_are_kept() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY)
    table.feed(facts.Settled(LOOK, {"balance": 7}))
    table.wait(PAY)
    assert table.feed(facts.Abandoned(PAY)) == [effects.StoreResult("A", LOOK, {"balance": 7}, is_shown=True)]
    assert table.phase("A") is Phase.ENDED


def test_a_result_that_clients_do_not_have_yet_is_shown_when_it_is_kept() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY, INNER)
    table.feed(facts.Settled(LOOK, {"balance": 7}))
    table.wait(PAY)  # the third one is at work, so the segment is still open
    done = table.feed(facts.Abandoned(PAY))
    assert of(effects.StoreResult, done) == [effects.StoreResult("A", LOOK, {"balance": 7})]


def test_a_call_beside_the_conversation_that_is_given_up_costs_no_results() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY)
    table.feed(facts.Settled(LOOK, {"balance": 7}))
    table.wait(PAY, blocks=False)
    assert of(effects.StoreResult, table.feed(facts.Abandoned(PAY))) == []


def test_what_a_tool_beside_the_conversation_has_ended_with_is_stored_when_the_run_is_over() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK, PAY)
    for call in (LOOK, PAY):
        table.feed(facts.Began(call, beside=True))
        table.feed(facts.Settled(call, {"of": call.call_id}))
    table.feed(facts.Came(ModelEvent("result", is_said=True, results=(PAY,))))  # ADK has stored it
    done = table.feed(facts.HandedOver())
    assert of(effects.StoreResult, done) == [effects.StoreResult("A", LOOK, {"of": "look"})]


def test_a_message_moves_only_along_its_phases() -> None:
    message = Message("A", Phase.HEARD)
    with pytest.raises(LocalProtocolError, match="from heard to waiting"):
        message.move(Phase.WAITING)


# -- words that cannot be sent ----------------------------------------------------------------------------------------


def test_words_whose_refusals_failed_are_taken_back_and_the_call_waits_on() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.wait(PAY)
    done = table.feed(facts.Wrote("B"))
    assert of(effects.Refuse, done) == [effects.Refuse(PAY, Why.SUPERSEDED)]
    assert of(effects.Send, done) == []
    done = table.feed(facts.NotSent("B"))
    assert of(effects.Close, done) == [effects.Close("B", End.UNSENT)]
    assert (table.phase("A"), table.phase("B")) == (Phase.WAITING, Phase.ENDED)
    done = table.feed(facts.Answered(frozenset({PAY}), frozenset({PAY})))
    assert of(effects.Open, done) == [effects.Open("A", frozenset({PAY}))]
    assert of(effects.Send, table.feed(facts.ResultSent())) == []


def test_words_that_were_not_sent_leave_a_model_where_it_was() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.event(is_said=True)
    table.feed(facts.InterruptedByUser())
    table.feed(facts.Wrote("B"))
    table.feed(facts.NotSent("B"))
    table.event(is_turn_complete=True)
    assert of(effects.Write, table.event(is_said=True))[0].message not in ("A", "B")


# -- events -----------------------------------------------------------------------------------------------------------


def test_what_was_recorded_of_a_voice_is_stored_and_not_shown() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.event(is_said=True, is_turn_complete=True)
    done = table.event(is_said=True, is_recording=True)
    assert [(effect.message, type(effect)) for effect in done] == [("A", effects.Belongs)]


def test_a_call_that_comes_twice_is_one_call() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.call(PAY)
    assert table.turns.calls_of("A") == [PAY]


def test_an_event_of_nobody_changes_nothing() -> None:
    table = Table()
    assert [type(effect) for effect in table.event()] == [effects.Belongs]
    assert table.feed(facts.Emitted("unknown")) == []


def test_an_answer_that_was_interrupted_in_its_last_word_is_not_played_on() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.event(is_said=True)
    (written,) = of(effects.Write, table.event(is_said=True, is_interrupted=True))
    assert not written.plays


def test_the_whole_text_of_a_cut_answer_belongs_to_it_and_so_does_the_result_of_its_call() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.event(is_said=True, is_partial=True)
    table.call(LOOK)
    table.event(is_interrupted=True)
    assert of(effects.Write, table.event(results=(LOOK,), is_said=True))[0].message == "A"
    assert of(effects.Write, table.event(is_said=True))[0].message == "A"
    assert table.turns.routes.turn is Turn.CUT


@pytest.mark.parametrize("has_reason", [False, True])
def test_the_end_of_what_was_interrupted_between_two_turns_ends_no_other_turn(has_reason: bool) -> None:
    table = Table()
    table.event(is_interrupted=True)
    table.event(is_turn_complete=True, has_reason=has_reason)
    table.feed(facts.Wrote("A"))
    assert of(effects.Close, table.event(is_turn_complete=True))  # an empty answer
    table.event(is_interrupted=True)
    table.feed(facts.Wrote("B"))
    assert not of(effects.Close, table.event(is_turn_complete=True))


def test_pieces_of_an_utterance_are_one_message() -> None:
    table = Table()
    heard = [of(effects.Hear, table.event(heard=is_all))[0].message for is_all in (False, False, True, True)]
    assert heard == ["begun-1", "begun-1", "begun-1", "begun-2"]


# -- the gate ---------------------------------------------------------------------------------------------------------


def test_a_call_that_nobody_can_be_shown_is_refused() -> None:
    table = Table()
    assert table.wait(STRANGE) == [effects.Refuse(STRANGE, Why.UNSEEN), effects.Wake()]


@pytest.mark.parametrize(
    "fact",
    [
        facts.Began(STRANGE, beside=True),
        facts.LeftToClient(STRANGE),
        facts.GoesOn(STRANGE),
        facts.Abandoned(STRANGE),
        facts.Settled(STRANGE),
        facts.Answered(frozenset({STRANGE}), frozenset()),
        facts.SaidAgain(),
        facts.ConnectionLost(),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_news_of_what_is_not_known_change_nothing(fact: facts.Fact) -> None:
    assert Table().feed(fact) == []


def test_a_call_that_is_given_up_before_anybody_was_asked_ends_its_message_when_it_is_quiet() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    (timer,) = of(effects.StartTimer, table.feed(facts.Abandoned(PAY)))
    assert of(effects.Close, table.feed(facts.TimerFired(timer.timer))) == [effects.Close("A", End.FINISH)]


def test_a_call_that_the_client_answers_is_shown_first() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    event = ModelEvent("late", is_said=True, calls=(PAY,))
    table.feed(facts.Came(event))
    assert table.feed(facts.LeftToClient(PAY)) == []
    table.feed(facts.Emitted("late"))
    assert table.turns.routes.calls[PAY].is_shown


def test_calls_that_the_model_took_back_are_withdrawn_and_others_are_not() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.wait(PAY)
    assert table.feed(facts.Withdrawn((PAY, STRANGE))) == [effects.Withdraw(PAY), effects.Wake()]


def test_a_call_that_is_given_up_before_it_is_shown_waits_for_nobody() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.feed(facts.Came(ModelEvent("late", is_said=True, calls=(PAY,))))
    table.feed(facts.Abandoned(PAY))
    assert of(effects.Close, table.feed(facts.Emitted("late"))) == []
    assert table.turns.calls_of("A") == []


def test_a_call_that_is_given_up_beside_a_tool_leaves_its_message_open() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY, LOOK)
    assert table.feed(facts.Abandoned(PAY)) == []
    assert table.phase("A") is Phase.OPEN


def test_whoever_listens_is_told_that_an_open_message_goes_on_after_an_answer() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.wait(PAY, blocks=False)
    assert table.phase("A") is Phase.OPEN
    assert of(effects.Notify, table.feed(facts.Answered(frozenset({PAY}), frozenset({PAY})))) == [effects.Notify("A")]


def test_tools_beside_the_conversation_are_orphans_when_the_run_of_their_agent_is_over() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY, LOOK)
    table.feed(facts.Began(LOOK, beside=True))
    table.feed(facts.HandedOver())
    assert (table.turns.is_orphan(LOOK), table.turns.is_orphan(PAY)) == (True, False)


# -- lost connections -------------------------------------------------------------------------------------------------


def test_words_that_are_said_again_are_waited_for() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    (timer,) = of(effects.StartTimer, table.feed(facts.ConnectionLost()))
    assert timer.seconds == 10
    assert table.feed(facts.SaidAgain()) == []
    assert table.feed(facts.TimerFired(timer.timer)) == []
    assert table.phase("A") is Phase.ASKED


def test_an_answer_that_had_begun_is_given_up_also_if_words_are_said_again() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.event(is_said=True)
    (timer,) = of(effects.StartTimer, table.feed(facts.ConnectionLost()))
    table.feed(facts.SaidAgain())
    assert of(effects.Close, table.feed(facts.TimerFired(timer.timer))) == [effects.Close("A", End.LOST)]


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_session_that_lost_its_lease_does_not_drain() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    table.wait(PAY)
    table.feed(facts.LeaseLost())
    table.feed(facts.Shutdown())
    assert of(effects.Refuse, table.feed(facts.Stopped())) == []
    assert table.feed(facts.Answered(frozenset({PAY}), frozenset({PAY}))) == []


# -- calls that the model took back -----------------------------------------------------------------------------------


def test_a_call_of_the_clients_that_was_taken_back_is_told_and_stored_and_nobody_else_is() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY, LOOK)
    table.feed(facts.LeftToClient(PAY))
    table.wait(LOOK)
    assert table.phase("A") is Phase.WAITING
    for other in (LOOK, STRANGE):  # its waiting tool gets it, or nobody does
        assert table.feed(facts.WithdrawalRecorded(other, "taken back")) == []
    done = table.feed(facts.WithdrawalRecorded(PAY, "taken back"))
    assert of(effects.StoreResult, done) == [effects.StoreResult("A", PAY, "taken back")]
    assert [type(effect) for effect in done] == [effects.Open, effects.Notify, effects.StoreResult, effects.Close]
    assert table.phase("A") is Phase.WAITING
    assert table.feed(facts.WithdrawalRecorded(PAY, "taken back")) == []


# -- a call that waits while the model talks on -----------------------------------------------------------------------


def test_a_call_waits_until_it_is_answered() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(PAY)
    assert not table.turns.is_waiting(PAY)
    assert not table.turns.is_waiting(STRANGE)
    table.wait(PAY, blocks=False)
    assert table.turns.is_waiting(PAY)
    table.feed(facts.GoesOn(PAY))
    assert not table.turns.is_waiting(PAY)


def test_a_call_of_an_agent_blocks_as_the_agent_does() -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK)
    table.feed(facts.Began(LOOK, beside=True))
    table.wait(INNER, outer=LOOK)
    assert not table.turns.routes.messages["A"].is_blocked


@pytest.mark.parametrize("beside", [False, True])
def test_an_agent_that_works_on_a_call_waits_as_long_as_its_own_call_does(beside: bool) -> None:
    table = Table()
    table.feed(facts.Wrote("A"))
    table.call(LOOK)
    table.feed(facts.Began(LOOK, beside=beside))
    [first] = of(effects.Belongs, table.call(LOOK))
    [other] = of(effects.Belongs, table.event(is_said=True, calls=(PAY,), inside=LOOK))
    assert first.step != other.step  # another model has made it
    done = table.wait(PAY, blocks=not beside, tells_model=beside)
    assert of(effects.TellPending, done) == []  # the live model does not know this call
    assert table.turns.routes.messages["A"].is_blocked is not beside
    if not beside:
        assert of(effects.Close, done) == [effects.Close("A", End.FINISH, frozenset({LOOK}))]
