"""Which message an event of a live session belongs to, and when a message is over: a table of what models do.

A line is what happens and where it belongs: to the message A, B that the user has written, or to one that was begun
unasked, 1, 2; `-` is none in particular. `!`: the message is over with this. `A! 1`: A turns out to have been over
before, and this belongs to 1.
"""

from typing import Any

import pytest
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_stream_protocol.adk.live.model_events import read_event
from adk_stream_protocol.protocol import live_facts as facts
from adk_stream_protocol.protocol.call_record import CallKey
from adk_stream_protocol.protocol.live_effects import Belongs, Effect
from adk_stream_protocol.protocol.live_messages import Unwanted
from adk_stream_protocol.protocol.live_turns import LiveTurns

TABLE: dict[str, list[tuple[str, str]]] = {
    # -- typed words ---------------------------------------------------------------------------------------------------
    "an answer": [("write A", ""), ("text", "A"), ("text", "A"), ("TEXT", "A"), ("done", "A!")],
    "an answer whose last piece ends the turn": [("write A", ""), ("text", "A"), ("TEXT done", "A!")],
    "two answers": [
        ("write A", ""), ("text", "A"), ("done", "A!"),
        ("write B", ""), ("text", "B"), ("done", "B!"),
    ],
    "a spoken answer to typed words": [("write A", ""), ("audio", "A"), ("said", "A"), ("done", "A!")],
    "an error": [("write A", ""), ("error", "A"), ("done", "A!")],
    "usage and the like before the end": [("write A", ""), ("TEXT", "A"), ("usage", "A"), ("done", "A!")],
    "nothing asked and nothing said": [("usage", "-"), ("done", "-"), ("interrupted", "-")],
    "an answer that was refused before a word": [("write A", ""), ("done for a reason", "A!")],
    "an answer without a word": [("write A", ""), ("done", "A!"), ("write B", ""), ("text", "B"), ("done", "B!")],
    "an answer without a word, of a model that says that it is over": [("write A", ""), ("done IDLE", "A!")],
    "a transcript that comes after the interruption": [
        ("heard", "1"), ("audio", "1"), ("saying", "1"), ("interrupted", "1"), ("saying", "1"), ("said", "1"),
        ("done", "1!"),
    ],
    "a transcript that comes after the user was heard again": [
        ("heard", "1"), ("saying", "1"), ("interrupted", "1"), ("heard", "2"), ("saying", "1! 2"), ("said", "2"),
        ("done", "2!"),
    ],
    # -- calls: Gemini 2.5 ends the turn of the call, Gemini 3 does not ------------------------------------------------
    "2.5 calls a tool": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("done", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "3 calls a tool": [("write A", ""), ("call c1", "A"), ("result c1", "A"), ("TEXT", "A"), ("done", "A!")],
    "2.5 calls again": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("done", "A"),
        ("call c2", "A"), ("result c2", "A"), ("done", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "3 calls again": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("call c2", "A"), ("result c2", "A"), ("TEXT", "A"),
        ("done", "A!"),
    ],
    "2.5 has nothing to say to a result": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("done", "A"), ("done", "A!"),
    ],
    "2.5 calls two tools": [
        ("write A", ""), ("call c1 c2", "A"), ("result c1 c2", "A"), ("done", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "2.5 talks before it calls": [
        ("write A", ""), ("text", "A"), ("TEXT", "A"), ("call c1", "A"), ("result c1", "A"), ("done", "A"),
        ("TEXT", "A"), ("done", "A!"),
    ],
    "a model that says that it goes on": [
        ("write A", ""), ("TEXT", "A"), ("done IN_PROGRESS", "A"), ("TEXT", "A"), ("done IDLE", "A!"),
    ],
    "a model that says that it does not, after a result": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("done IDLE", "A!"),
    ],
    "a call of ADK's own has no result of its own": [
        ("write A", ""), ("call transfer_to_agent", "A"), ("result transfer_to_agent", "A"), ("TEXT", "A"),
        ("done", "A!"),
    ],
    # -- results from beside the conversation --------------------------------------------------------------------------
    "a result after the turn": [
        ("write A", ""), ("call c1", "A"), ("done", "A!"), ("result c1", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "a result while another answer is told": [
        ("write A", ""), ("call c1", "A"), ("done", "A!"),
        ("write B", ""), ("text", "B"), ("result c1", "A"), ("text", "B"), ("TEXT", "B"), ("done", "B!"),
    ],
    "results of calls of two messages": [
        ("write A", ""), ("call c1", "A"), ("done", "A!"), ("write B", ""), ("call c2", "B"), ("done", "B!"),
        ("result c2", "B"), ("TEXT", "B"), ("done", "B!"), ("result c1", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    # -- speech --------------------------------------------------------------------------------------------------------
    "speech is answered unasked": [("hear", "1"), ("heard", "1"), ("audio", "1"), ("said", "1"), ("done", "1!")],
    "what was said is told after the answer has begun": [
        ("audio", "1"), ("heard", "1"), ("audio", "1"), ("done", "1!"),
    ],
    "what was said is told after the answer is over": [("audio", "1"), ("done", "1!"), ("heard", "1"), ("audio", "2")],
    "speech after speech": [
        ("heard", "1"), ("audio", "1"), ("done", "1!"), ("heard", "2"), ("audio", "2"), ("done", "2!"),
    ],
    "two utterances before an answer": [
        ("hear", "1"), ("heard", "1"), ("heard", "2"), ("audio", "2"), ("done", "2!"),
    ],
    "two utterances, and a turn without a word between them": [
        ("heard", "1"), ("done", "-"), ("heard", "2"), ("audio", "2"), ("done", "2!"),
    ],
    "speech while the answer to typed words is told": [
        ("write A", ""), ("text", "A"), ("hear", "1"), ("text", "A"), ("done", "A!"), ("heard", "1"), ("audio", "1"),
        ("done", "1!"),
    ],
    # -- interruptions -------------------------------------------------------------------------------------------------
    "an interrupted answer": [("write A", ""), ("text", "A"), ("interrupted", "A"), ("done", "A!")],
    "an interrupted answer, told with its text": [
        ("write A", ""), ("text", "A"), ("TEXT interrupted", "A"), ("done", "A!"),
    ],
    "an interrupted answer whose end is not told": [
        ("heard", "1"), ("audio", "1"), ("interrupted", "1"), ("hear", "2"), ("partial call c1", "1! 2"),
        ("done", "2!"),
    ],
    "the rest of what was interrupted is still its own": [
        ("write A", ""), ("text", "A"), ("interrupted", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "typed words interrupt the model before it answers them": [
        ("write A", ""), ("interrupted", "A"), ("done", "A"), ("text", "A"), ("TEXT", "A"), ("done", "A!"),
    ],
    "an interrupted answer to a result": [
        ("write A", ""), ("call c1", "A"), ("result c1", "A"), ("interrupted", "A"), ("done", "A!"),
    ],
    "an interruption between two turns, and its end after the next words": [
        ("write A", ""), ("text", "A"), ("done", "A!"), ("interrupted", "-"), ("write B", ""), ("done", "B"),
        ("text", "B"), ("done", "B!"),
    ],
    "an interruption between two turns, and its end before the next words": [
        ("write A", ""), ("text", "A"), ("done", "A!"), ("interrupted", "-"), ("done", "-"), ("write B", ""),
        ("done", "B!"),
    ],
    # -- written instead of an answer to a call ------------------------------------------------------------------------
    "words instead of an answer, 2.5": [
        ("write A", ""), ("call c1", "A"), ("write B", ""), ("result c1", "A"), ("done", "B"), ("TEXT", "B"),
        ("done", "B!"),
    ],
    "words instead of an answer, 3": [
        ("write A", ""), ("call c1", "A"), ("write B", ""), ("result c1", "A"), ("TEXT", "B"), ("done", "B!"),
    ],
    "words instead of an answer, and the model is interrupted by them": [
        ("write A", ""), ("call c1", "A"), ("write B", ""), ("result c1", "A"), ("interrupted", "B"), ("done", "B"),
        ("TEXT", "B"), ("done", "B!"),
    ],
    # -- what the user wants to hear no more of ------------------------------------------------------------------------
    "words after an answer that is no longer wanted wait for its end": [
        ("write A", ""), ("text", "A"), ("unwanted A", ""), ("write B", ""), ("text", "A"), ("done", "A!"),
        ("text", "B"),
        ("done", "B!"),
    ],
}  # fmt: skip


class Table:
    """Messages by their names, and the events of one live session."""

    def __init__(self) -> None:
        self.turns = LiveTurns()
        self.turns.receive(facts.Attached())
        self.effects: list[Effect] = []

    def happens(self, what: str) -> str:
        kind, _, rest = what.partition(" ")
        if kind == "write":
            self._feed(facts.Wrote(rest))
            return ""
        if kind == "unwanted":
            self._feed(facts.InterruptedByUser())
            return ""
        event = read_event(event_of(kind, rest))
        self._feed(facts.Came(event))
        (belongs,) = (effect for effect in self.effects if isinstance(effect, Belongs))
        self._feed(facts.Emitted(event.id))
        before = f"{short(belongs.over_before)}! " if belongs.over_before else ""
        return f"{before}{short(belongs.message)}{'!' if belongs.is_over else ''}"

    def _feed(self, fact: facts.Fact) -> None:
        self.effects = self.turns.receive(fact)


def short(name: str | None) -> str:
    return "-" if name is None else name.removeprefix("begun-")


def event_of(kind: str, rest: str) -> Event:
    fields: dict[str, Any] = {"turn_complete": True} if rest == "done" else {}
    fields |= {"interrupted": True} if rest == "interrupted" else {}
    match kind:
        case "text" | "TEXT":
            fields |= {"content": _content(types.Part(text="word")), "partial": kind == "text"}
        case "audio":
            fields["content"] = _content(types.Part(inline_data=types.Blob(data=b"12", mime_type="audio/pcm")))
        case "saying" | "said":
            is_all = kind == "said"
            fields |= {
                "output_transcription": types.Transcription(text="words", finished=is_all),
                "partial": not is_all,
            }
        case "hear" | "heard":
            fields["input_transcription"] = types.Transcription(text="words", finished=kind == "heard")
        case "call" | "partial":
            ids = rest.removeprefix("call ").split()
            calls = [types.Part(function_call=types.FunctionCall(id=id, name=_name(id))) for id in ids]
            fields |= {"content": _content(*calls), "partial": kind == "partial"}
        case "result":
            answers = [types.FunctionResponse(id=id, name=_name(id), response={}) for id in rest.split()]
            fields["content"] = _content(*(types.Part(function_response=answer) for answer in answers))
        case "done":
            fields["turn_complete"] = True
            if rest in ("IDLE", "IN_PROGRESS"):
                fields["interaction_status"] = rest
            if rest == "for a reason":
                fields["turn_complete_reason"] = types.TurnCompleteReason.RESPONSE_REJECTED
        case "interrupted":
            fields["interrupted"] = True
        case "error":
            fields["error_code"] = "500"
        case "usage":
            fields["usage_metadata"] = types.GenerateContentResponseUsageMetadata(prompt_token_count=1)
        case _:
            raise AssertionError(kind)
    return Event(author="helper", invocation_id="inv", actions=EventActions(), **fields)


def _name(call_id: str) -> str:
    return "transfer_to_agent" if call_id == "transfer_to_agent" else "pay"


def _content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


@pytest.mark.parametrize("story", TABLE)
def test_events_find_their_messages(story: str) -> None:
    table = Table()
    told = [(what, table.happens(what)) for what, _ in TABLE[story]]
    assert told == TABLE[story]


def test_a_call_belongs_to_its_message_until_it_has_its_result() -> None:
    table = Table()
    for what in ("write A", "call c1", "done", "write B"):
        table.happens(what)
    key = CallKey("inv", "c1")
    assert table.turns.find_message(frozenset({key})) == "A"
    table.happens("result c1")
    assert table.turns.find_message(frozenset({key})) is None


def test_one_model_call_is_one_step_and_the_next_one_another() -> None:
    table = Table()
    steps: list[str] = []
    for what in ("write A", "text", "TEXT", "call c1", "result c1", "done", "text", "TEXT", "done", "write B", "text"):
        table.happens(what)
        steps.append(table.turns.routes.step)
    said = dict(zip(("text", "TEXT", "call"), steps[1:4], strict=True))
    assert len(set(said.values())) == 1
    assert steps[6] == steps[7]
    assert len({steps[1], steps[6], steps[10]}) == 3


@pytest.mark.parametrize(
    "is_speaking", [True, False], ids=["while the model says something else", "while it is silent"]
)
def test_an_answered_message_gets_the_models_next_words_unless_it_is_speaking(is_speaking: bool) -> None:
    table = Table()
    key = CallKey("inv", "c1")
    for what in ("write A", "call c1"):
        table.happens(what)
    table.turns.receive(facts.Waits(key, blocks=False))
    for what in ("done", "write B", "text") if is_speaking else ("done", "write B", "text", "done"):
        table.happens(what)
    table.turns.receive(facts.Answered(frozenset({key}), done=frozenset({key})))
    assert table.happens("text") == ("B" if is_speaking else "A")


def answered_while_the_model_says_something_else() -> Table:
    """A call of A was answered, and its result has come, while the model speaks in B."""
    table, key = Table(), CallKey("inv", "c1")
    for what in ("write A", "call c1"):
        table.happens(what)
    table.turns.receive(facts.Waits(key, blocks=False))
    for what in ("done", "write B", "text"):
        table.happens(what)
    table.turns.receive(facts.Answered(frozenset({key}), done=frozenset({key})))
    assert table.happens("result c1") == "A"
    return table


@pytest.mark.parametrize("more", [[], ["text"]], ids=["which ends", "which goes on"])
def test_whoever_has_answered_a_call_and_reads_on_gets_what_the_model_says_of_it_next(more: list[str]) -> None:
    table = answered_while_the_model_says_something_else()
    assert [table.happens(what) for what in more] == ["B"] * len(more)
    assert [table.happens(what) for what in ("done", "text", "done")] == ["B!", "A", "A!"]
    assert table.happens("text") not in ("A", "B")


def test_if_nobody_reads_on_what_the_model_says_of_a_late_result_is_a_message_of_its_own() -> None:
    table = answered_while_the_model_says_something_else()
    timer = table.turns.routes.messages["A"].timer
    assert timer is not None
    table.turns.receive(facts.TimerFired(timer))
    assert table.happens("done") == "B!"
    assert table.happens("text") not in ("A", "B")


def test_what_the_user_says_aloud_is_answered_before_a_late_result() -> None:
    table = answered_while_the_model_says_something_else()
    table.happens("done")
    heard = table.happens("heard")
    assert heard not in ("A", "B")
    assert table.happens("text") == heard
    table.happens("done")
    assert table.happens("text") not in ("A", "B", heard)


def test_what_the_user_writes_is_answered_before_a_late_result() -> None:
    table = answered_while_the_model_says_something_else()
    assert [table.happens(what) for what in ("done", "write C", "text", "done")][2:] == ["C", "C!"]
    assert table.happens("text") not in ("A", "B", "C")


def test_what_nobody_wants_to_hear_is_not_told_of_a_late_result() -> None:
    table = answered_while_the_model_says_something_else()
    table.turns.routes.messages["A"].unwanted = Unwanted.SUPERSEDED
    table.happens("done")
    assert table.happens("text") not in ("A", "B")


def test_a_long_conversation_is_forgotten_but_for_its_end() -> None:
    table = Table()
    for _ in range(100):
        for what in ("heard", "audio", "done"):
            table.happens(what)
    assert len(table.turns.routes.messages) <= 3
