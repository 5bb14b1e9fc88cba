"""Words that came in pieces, whole again when the connection that sent them is lost, or the model calls a tool."""

from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.adk.live.unfinished_texts import UnfinishedTexts


def text(*said: str, thought: bool | None = None, partial: bool = True) -> LlmResponse:
    parts = [types.Part(text=each, thought=thought) for each in said]
    return LlmResponse(content=types.Content(parts=parts), partial=partial)


def spoken(said: str, *, finished: bool = False) -> LlmResponse:
    return LlmResponse(output_transcription=types.Transcription(text=said, finished=finished))


def heard(said: str, *, finished: bool = False) -> LlmResponse:
    return LlmResponse(input_transcription=types.Transcription(text=said, finished=finished))


def wholes_of(*responses: LlmResponse) -> list[Any]:
    texts = UnfinishedTexts()
    for response in responses:
        texts.feed(response)
    wholes = texts.take_wholes()
    assert texts.take_wholes() == []
    assert all(whole.partial is False for whole in wholes)
    found: list[Any] = []
    for whole in wholes:
        if whole.content is not None:
            (part,) = whole.content.parts or []
            found.append((whole.content.role, part.text, part.thought))
        for transcript in (whole.input_transcription, whole.output_transcription):
            if transcript is not None:
                assert transcript.finished
                found.append(transcript.text)
    return found


def test_pieces_are_put_together() -> None:
    assert wholes_of(text("Half "), text("an ", "answer")) == [("model", "Half an answer", None)]
    assert wholes_of(text("Hm"), text("m", thought=True)) == [("model", "Hmm", True)]
    assert wholes_of(spoken("Half "), spoken("said")) == ["Half said"]
    assert wholes_of(heard("Half "), heard("heard"), spoken("Yes")) == ["Half heard", "Yes"]


def test_what_has_come_whole_is_not_given_again() -> None:
    assert wholes_of(text("Half "), text("Half whole", partial=False)) == []
    assert wholes_of(spoken("All"), spoken("All said", finished=True), heard("A"), heard("A", finished=True)) == []
    assert wholes_of(text("One"), text("One", partial=False), text("Two")) == [("model", "Two", None)]


def test_what_has_no_text_changes_nothing() -> None:
    voice = types.Part(inline_data=types.Blob(data=b"12", mime_type="audio/pcm"))
    others = [LlmResponse(content=types.Content(parts=[voice])), LlmResponse(turn_complete=True), spoken("")]
    assert wholes_of(text("Half"), *others) == [("model", "Half", None)]
    assert wholes_of(*others) == []


# -- calls in mid-turn ------------------------------------------------------------------------------------------------

CALL = LlmResponse(content=types.Content(parts=[types.Part(function_call=types.FunctionCall(name="pay"))]))


def given_for(*responses: LlmResponse) -> list[Any]:
    """What ADK gets: whole transcripts, and calls."""
    texts = UnfinishedTexts()
    given = [each for response in responses for each in texts.feed(response)]
    wholes = (each.output_transcription for each in given if not each.partial)
    assert texts.take_wholes() == []
    return ["call" if whole is None else whole.text for whole in wholes if whole is None or whole.finished]


def test_what_was_said_aloud_before_a_call_is_given_before_it_and_once() -> None:
    moment, paid = spoken("One moment. "), spoken("Paid.")
    assert given_for(moment, CALL, paid, spoken("One moment. Paid.", finished=True)) == [
        "One moment. ",
        "call",
        "Paid.",
    ]
    assert given_for(moment, CALL, spoken("One moment. ", finished=True)) == ["One moment. ", "call"]
    twice = given_for(moment, CALL, paid, CALL, spoken("Yes."), spoken("One moment. Paid.Yes.", finished=True))
    assert twice == ["One moment. ", "call", "Paid.", "call", "Yes."]
    next_turn = given_for(
        moment, CALL, spoken("One moment. ", finished=True), moment, spoken("One moment. ", finished=True)
    )
    assert next_turn == ["One moment. ", "call", "One moment. "]


def test_what_came_whole_before_a_call_and_calls_without_words_are_given_as_they_are() -> None:
    whole = spoken("One moment.", finished=True)
    assert given_for(spoken("One moment."), whole, CALL, spoken("Paid.", finished=True)) == [
        "One moment.",
        "call",
        "Paid.",
    ]
    assert given_for(CALL, spoken("Paid."), spoken("Paid.", finished=True)) == ["call", "Paid."]
