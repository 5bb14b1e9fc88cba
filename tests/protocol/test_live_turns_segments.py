"""How segments of a live session open, close and wait, step by step."""
# pyright: reportPrivateUsage=false

from typing import Any

import pytest

from adk_stream_protocol.protocol import live_effects as effects
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import QUIET_S, SILENT_S, Effect, End, Timer, Why
from adk_stream_protocol.protocol.live_facts import ModelEvent
from adk_stream_protocol.protocol.live_messages import Call, CallPhase, Message, Phase, Unwanted
from adk_stream_protocol.protocol.live_routes import Place, Turn
from adk_stream_protocol.protocol.live_segments import LiveSegments, SessionPhase

PAY, LOOK, INNER = (CallKey("inv", name) for name in ("pay", "look", "inner"))


class Segments(LiveSegments):
    """With what has been decided since somebody last asked."""

    def message(self, name: str = "A", phase: Phase = Phase.OPEN, **about: Any) -> Message:
        message = self.routes.begin(phase, name)
        for field, value in about.items():
            setattr(message, field, value)
        return message

    def call(self, message: Message, key: CallKey = PAY, phase: CallPhase = CallPhase.WAITING, **about: Any) -> Call:
        call = Call(key, message, phase, **{"is_shown": True, **about})
        self.routes.calls[key] = message.calls[key] = call
        return call

    def decided(self) -> list[Effect]:
        decided, self._effects = self._effects, []
        return decided


def timer(number: int, name: str = "quiet", message: str = "A") -> Timer:
    return Timer(name, message, number)


def quiet(number: int = 1) -> effects.StartTimer:
    return effects.StartTimer(timer(number), QUIET_S)


# -- messages and their calls -----------------------------------------------------------------------------------------


def test_an_agent_that_runs_as_a_tool_waits_while_one_of_its_calls_does() -> None:
    at = Segments()
    message = at.message()
    outer = at.call(message, PAY, CallPhase.RUNNING)
    inner = at.call(message, INNER, CallPhase.WAITING, outer=PAY)
    assert message.waiting == [outer, inner]
    inner.phase = CallPhase.RUNNING
    assert message.waiting == []


@pytest.mark.parametrize(
    ("phase", "has_begun", "is_undecided"),
    [
        (CallPhase.MADE, False, True),
        (CallPhase.RUNNING, False, True),
        (CallPhase.MADE, True, False),
        (CallPhase.RUNNING, True, False),
        (CallPhase.SETTLED, True, True),
        (CallPhase.SETTLED, False, True),
        (CallPhase.SHOWN, False, False),
        (CallPhase.ORPHANED, False, False),
        (CallPhase.WAITING, False, False),
        (CallPhase.LEFT, False, False),
    ],
)
def test_a_call_is_undecided_until_its_tool_runs_or_somebody_is_asked(
    phase: CallPhase, has_begun: bool, is_undecided: bool
) -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, phase, has_begun=has_begun)
    assert message.is_undecided is is_undecided


def test_a_call_whose_agent_waits_for_somebody_is_decided() -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, CallPhase.RUNNING)
    at.call(message, INNER, CallPhase.WAITING, outer=PAY)
    assert not message.is_undecided


# -- what is asked of it ----------------------------------------------------------------------------------------------


def test_of_several_open_messages_the_current_one_counts_while_it_is_open() -> None:
    at = Segments()
    first, second = at.message("A"), at.message("B")
    at.routes.current = second
    assert at.open_message is second
    second.phase = Phase.ENDED
    assert at.open_message is first


# -- voice ------------------------------------------------------------------------------------------------------------


def speaking(**about: Any) -> tuple[Segments, Message]:
    """The model speaks aloud in a message, and a piece of that has come."""
    at = Segments()
    message = at.message(**about)
    at.routes.current = at.routes.last = message
    at.routes._is_saying = True
    assert at.voice_came("voice") is True
    return at, message


@pytest.mark.parametrize(
    "about",
    [
        {"current": None},
        {"last": None},
        {"_is_saying": False},
        {"_speaks_of_result": True},
        {"turn": Turn.CUT},
        {"turn": Turn.HAS_RESULT},
    ],
    ids=str,
)
def test_voice_that_begins_or_ends_something_does_not_just_go_on(about: dict[str, Any]) -> None:
    at, _ = speaking()
    assert at.routes.goes_on is True
    for name, value in about.items():
        setattr(at.routes, name, value)
    assert at.routes.goes_on is False


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.OPEN])
def test_voice_of_a_message_that_is_not_open_does_not_just_go_on(phase: Phase) -> None:
    at, message = speaking()
    message.phase = phase
    assert at.routes.goes_on is False


def test_voice_that_goes_on_is_played_in_its_message_and_nothing_is_decided() -> None:
    at, message = speaking(timer=timer(1))
    assert at.voice_emitted("voice") == "A"
    assert (message.timer, at.decided(), at._places) == (None, [], {})


def test_voice_that_changes_something_is_reported_as_usual() -> None:
    at = Segments()
    at.routes.current = at.message()
    assert at.voice_came("voice") is False
    assert at._places == {}
    assert at.voice_emitted("voice") is None


@pytest.mark.parametrize("event", [ModelEvent("voice"), ModelEvent("voice", is_said=True)])
def test_only_voice_that_took_the_short_cut_goes_on_along_it(event: ModelEvent) -> None:
    at = Segments()
    at.routes.current = at.message()
    at._places["voice"] = Place(event, at.routes.current)
    assert at.voice_emitted("voice") is None
    assert "voice" in at._places


def test_voice_is_reported_if_its_message_was_closed_meanwhile() -> None:
    at, message = speaking()
    message.phase = Phase.WAITING
    assert at.voice_emitted("voice") is None


def test_voice_is_reported_if_nobody_wants_to_hear_it_any_more() -> None:
    at, message = speaking()
    message.unwanted = Unwanted.INTERRUPTED
    assert at.voice_emitted("voice") is None


def test_voice_is_reported_if_its_message_has_calls() -> None:
    at, message = speaking()
    at.call(message)
    assert at.voice_emitted("voice") is None
    assert "voice" in at._places


def test_voice_of_a_session_that_is_over_is_not_played() -> None:
    at, _ = speaking()
    at.phase = SessionPhase.CLOSED
    assert at.voice_emitted("voice") is None


# -- text past ADK ----------------------------------------------------------------------------------------------------


def writing(**about: Any) -> tuple[Segments, Message]:
    """The model is in the middle of a text, and all of its events have come out."""
    at, message = speaking(**about)
    at._places.clear()
    return at, message


def test_more_of_a_text_goes_into_its_message_and_nothing_is_decided() -> None:
    at, message = writing(timer=timer(1))
    assert at.more_said() == "A"
    assert (message.timer, at.decided(), at._places) == (None, [], {})


def test_no_text_overtakes_an_event_that_has_not_come_out() -> None:
    at, message = speaking(timer=timer(1))
    assert at.more_said() is None
    assert message.timer == timer(1)


@pytest.mark.parametrize("phase", [SessionPhase.LOST, SessionPhase.CLOSED])
def test_a_session_that_is_over_or_lost_gets_no_more_text(phase: SessionPhase) -> None:
    at, _ = writing()
    at.phase = phase
    assert at.more_said() is None


def test_text_that_begins_something_does_not_just_go_on() -> None:
    at, _ = writing()
    at.routes._is_saying = False
    assert at.more_said() is None


def test_text_that_nobody_wants_or_that_stands_beside_a_call_does_not_just_go_on() -> None:
    at, message = writing()
    message.unwanted = Unwanted.INTERRUPTED
    assert at.more_said() is None
    at, message = writing()
    at.call(message)
    assert at.more_said() is None


def test_a_model_that_is_in_no_message_has_nothing_that_goes_on() -> None:
    assert Segments().more_said() is None
    assert Segments().voice_emitted("voice") is None


def test_what_takes_the_short_cut_counts_as_something_said() -> None:
    at, message = speaking()
    assert at._places["voice"] == Place(ModelEvent("", is_said=True), message)


# -- clients ----------------------------------------------------------------------------------------------------------


def test_whoever_comes_is_told_once_what_went_on() -> None:
    at = Segments()
    at._notify("A")
    at._notify("A")
    assert at.decided() == []
    at._attend()
    assert at.decided() == [effects.Notify("A")]
    at._attend()
    assert at.decided() == []


# -- segments ---------------------------------------------------------------------------------------------------------


def test_a_segment_opens_with_the_answers_or_with_the_calls_that_wait_for_nobody() -> None:
    for answered in (frozenset[CallKey](), frozenset({LOOK})):
        at = Segments()
        message = at.message(phase=Phase.WAITING)
        at.call(message, PAY, CallPhase.RUNNING)
        at._open(message, answered)
        assert at.decided() == [effects.Open("A", answered or frozenset({PAY}))]


@pytest.mark.parametrize("unwanted", [None, *Unwanted])
def test_nobody_is_told_of_a_message_that_the_user_has_gone_on_from(unwanted: Unwanted | None) -> None:
    at = Segments()
    at._attend()
    at._open(at.message(phase=Phase.WAITING, unwanted=unwanted))
    told = [] if unwanted is Unwanted.SUPERSEDED else [effects.Notify("A")]
    assert at.decided() == [effects.Open("A", frozenset()), *told]


def test_a_segment_that_closes_names_the_calls_that_go_on() -> None:
    at = Segments()
    message = at.message(timer=timer(1), is_over=True)
    at.call(message, PAY, CallPhase.WAITING)
    at.call(message, LOOK, CallPhase.RUNNING)
    at.call(message, INNER, CallPhase.SHOWN)
    at._close(message)
    assert at.decided() == [effects.Close("A", End.FINISH, frozenset({LOOK}))]
    assert (message.timer, message.is_over, message.phase) == (None, False, Phase.WAITING)


def test_a_turn_that_is_over_is_kept_for_a_card_that_may_come() -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, CallPhase.MADE)
    at._close_when_decided(message)
    assert message.is_over
    assert at.decided() == [effects.StartTimer(timer(1, "silent"), SILENT_S)]


def test_a_segment_that_is_closed_is_kept_for_nothing() -> None:
    at = Segments()
    message = at.message(phase=Phase.ENDED)
    at.call(message, PAY, CallPhase.MADE)
    at._close_when_decided(message)
    assert (message.is_over, at.decided()) == (False, [])


@pytest.mark.parametrize("blocks", [True, False])
def test_a_segment_whose_calls_wait_closes_at_once_or_when_it_is_quiet(blocks: bool) -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, blocks=blocks)
    settled = at.call(message, LOOK, CallPhase.SETTLED, response={"seen": 1})
    at._close_if_it_waits(message)
    shown = effects.WriteResult("A", LOOK, {"seen": 1})
    assert settled.phase is CallPhase.SHOWN
    assert at.decided() == [shown, effects.Close("A", End.FINISH, frozenset()) if blocks else quiet()]


@pytest.mark.parametrize("blocks", [True, False])
def test_a_segment_stays_while_it_is_closed_or_a_tool_runs_or_a_card_is_to_come(blocks: bool) -> None:
    at = Segments()
    closed = at.message(phase=Phase.WAITING)
    at.call(closed, PAY, blocks=blocks)
    at._close_if_it_waits(closed)
    working = at.message("B")
    at.call(working, LOOK, blocks=blocks)
    at.call(working, INNER, CallPhase.RUNNING)
    at._close_if_it_waits(working)
    unseen = at.message("C")
    at.call(unseen, PAY, blocks=blocks, is_shown=False)
    at.call(unseen, LOOK, blocks=blocks, is_shown=True)
    at._close_if_it_waits(unseen)
    at._close_if_it_waits(at.message("D"))
    assert at.decided() == []
    assert closed.timer is None


@pytest.mark.parametrize(
    ("phase", "kept", "is_started"),
    [
        (Phase.OPEN, None, True),
        (Phase.OPEN, "current", False),
        (Phase.OPEN, "a call", False),
        (Phase.OPEN, "a timer", False),
        (Phase.ASKED, None, False),
        (Phase.ENDED, None, False),
    ],
)
def test_a_segment_closes_when_it_is_quiet_unless_something_keeps_it(
    phase: Phase, kept: str | None, is_started: bool
) -> None:
    at = Segments()
    message = at.message(phase=phase)
    before = message.timer = timer(9, "silent") if kept == "a timer" else None
    at.routes.current = message if kept == "current" else None
    if kept == "a call":
        at.call(message)
    at._close_when_quiet(message)
    assert at.decided() == ([quiet()] if is_started else [])
    assert message.timer == (timer(1) if is_started else before)


# -- timers -----------------------------------------------------------------------------------------------------------


def test_a_timer_that_has_fired_is_gone_though_nothing_was_open() -> None:
    at = Segments()
    message = at.message(phase=Phase.ENDED, timer=timer(1))
    at._fired(timer(1))
    assert (message.timer, at.decided()) == (None, [])


@pytest.mark.parametrize(
    ("name", "unwanted", "end", "is_over"),
    [
        ("quiet", None, End.FINISH, False),
        ("silent", Unwanted.SUPERSEDED, End.FINISH, False),
        ("silent", Unwanted.INTERRUPTED, End.FINISH, True),
        ("resumes", None, End.LOST, True),
    ],
)
def test_a_timer_closes_its_segment_and_ends_the_turn_of_a_model_that_is_gone(
    name: str, unwanted: Unwanted | None, end: End, is_over: bool
) -> None:
    at = Segments()
    message = at.message(timer=timer(1, name), unwanted=unwanted)
    at.routes.current = message
    at._fired(timer(1, name))
    assert at.decided() == [effects.Close("A", end, frozenset())]
    assert at.routes.current is (None if is_over else message)


def test_a_timer_makes_way_for_the_words_that_the_user_has_written_since() -> None:
    """The message was interrupted, and is wanted again since a call of its was answered."""
    at = Segments()
    at.routes.current, at.routes.after = at.message(timer=timer(1)), at.message("B", Phase.ASKED)
    after = at.routes.after
    at._fired(timer(1))
    assert (at.routes.current, at.routes.after) == (after, None)


@pytest.mark.parametrize(
    ("unwanted", "after"),
    [(None, None), (Unwanted.INTERRUPTED, None), (Unwanted.SUPERSEDED, Unwanted.SUPERSEDED)],
)
def test_what_was_interrupted_is_wanted_again_after_its_turn(unwanted: Unwanted | None, after: Unwanted | None) -> None:
    at = Segments()
    message = at.message(unwanted=unwanted)
    at._end_turn(message)
    assert message.unwanted is after


# -- results ----------------------------------------------------------------------------------------------------------


def test_a_result_that_nobody_waits_for_is_stored_in_its_segment_or_in_one_of_its_own() -> None:
    at = Segments()
    stored = effects.StoreResult("A", PAY, 5)
    at._store_result(at.call(at.message()), 5)
    assert at.decided() == [stored, quiet()]
    assert at.routes.calls == {}
    at = Segments()
    message = at.message(phase=Phase.ENDED)
    at._store_result(at.call(message), 5)
    closed = effects.Close("A", End.FINISH, frozenset())
    assert at.decided() == [effects.Open("A", frozenset()), stored, closed]
    assert message.calls == {}


def test_results_that_adk_would_have_stored_together_are_kept() -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, CallPhase.SETTLED, response=1)
    at.call(message, LOOK, CallPhase.SHOWN, response=2)
    beside = at.call(message, INNER, CallPhase.SETTLED, response=3, blocks=False)
    at._keep_results(message)
    assert at.decided() == [
        effects.StoreResult("A", PAY, 1, is_shown=False),
        effects.StoreResult("A", LOOK, 2, is_shown=True),
    ]
    assert at.routes.calls == message.calls == {INNER: beside}


def test_at_the_end_of_a_run_results_beside_the_conversation_are_stored() -> None:
    at = Segments()
    message = at.message()
    at.call(message, PAY, CallPhase.SETTLED, response=1, blocks=False)
    at.call(message, LOOK, CallPhase.SETTLED, response=2, blocks=True)
    at.call(message, INNER, CallPhase.SETTLED, response=3, blocks=False)
    at._store_settled({INNER})
    assert at.decided() == [effects.StoreResult("A", PAY, 1)]
    assert at.routes.calls.keys() == {LOOK, INNER}


# -- cards ------------------------------------------------------------------------------------------------------------

REFUSED = [effects.Refuse(PAY, Why.SUPERSEDED), effects.Wake()]
CLOSED = effects.Close("A", End.FINISH, frozenset())


@pytest.mark.parametrize("unwanted", list(Unwanted))
@pytest.mark.parametrize("blocks", [True, False])
def test_a_card_that_nobody_looks_at_is_refused(unwanted: Unwanted, blocks: bool) -> None:
    at = Segments()
    call = at.call(at.message(unwanted=unwanted), blocks=blocks)
    at._show_waiting(call)
    assert at.decided() == REFUSED
    assert call.message.unwanted is unwanted


@pytest.mark.parametrize("blocks", [True, False])
def test_a_card_that_the_users_words_wait_for_is_refused(blocks: bool) -> None:
    at = Segments()
    call = at.call(at.message(), blocks=blocks)
    at.message("B", Phase.ASKED)
    at._show_waiting(call)
    assert at.decided() == (REFUSED if blocks else [quiet()])
    assert call.message.unwanted is (Unwanted.SUPERSEDED if blocks else None)


def test_a_card_in_the_message_that_was_asked_is_shown() -> None:
    at = Segments()
    at._show_waiting(at.call(at.message(phase=Phase.ASKED)))
    assert at.decided() == [CLOSED]


def test_the_model_is_told_once_that_a_call_waits() -> None:
    at = Segments()
    call = at.call(at.message(), blocks=False, tells_model=True)
    at._show_waiting(call)
    assert at.decided() == [effects.TellPending(PAY), quiet()]
    at._show_waiting(call)
    assert at.decided() == [quiet(2)]


def test_a_card_that_clients_have_opens_nothing() -> None:
    at = Segments()
    message = at.message(phase=Phase.ENDED)
    call = at.call(message)
    at._show_waiting(call, is_asked=True)
    assert (message.phase, at.decided()) == (Phase.WAITING, [])
    message.phase = Phase.OPEN
    at._show_waiting(call, is_asked=True)
    assert at.decided() == [CLOSED]


def test_a_card_that_comes_late_has_a_segment_of_its_own() -> None:
    for blocks in (True, False):
        at = Segments()
        at._show_waiting(at.call(at.message(phase=Phase.ENDED), blocks=blocks))
        shown = at.decided()
        assert shown[0] == effects.Open("A", frozenset())
        assert shown[-1] == CLOSED
        assert shown[1:-1] == ([] if blocks else [quiet()])


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("is_undecided", [False, True])
def test_a_segment_that_was_kept_for_its_card_closes_with_it(is_over: bool, is_undecided: bool) -> None:
    at = Segments()
    message = at.message(is_over=is_over)
    call = at.call(message, blocks=False)
    if is_undecided:
        at.call(message, LOOK, CallPhase.MADE)
    at._show_waiting(call)
    assert at.decided() == [quiet(), *([CLOSED] if is_over and not is_undecided else [])]


def test_a_segment_in_which_a_tool_runs_stays_open_for_it() -> None:
    at = Segments()
    message = at.message(phase=Phase.ENDED)
    at.call(message, LOOK, CallPhase.RUNNING, has_begun=True)
    at._show_waiting(at.call(message, blocks=False))
    assert at.decided() == [effects.Open("A", frozenset({LOOK}))]
    assert message.is_open


@pytest.mark.parametrize("phase", Phase)
def test_a_message_may_be_told_to_stay_where_it_is(phase: Phase) -> None:
    message = Message("A", phase)
    message.move(phase)
    assert message.phase is phase
