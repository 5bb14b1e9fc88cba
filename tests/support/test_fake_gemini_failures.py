"""What ADK makes of refusals, cut connections and answers that end badly."""

import httpx
import pytest
from google.adk.agents.run_config import StreamingMode
from google.genai.errors import ClientError, ServerError

from support import releases
from support.fake_gemini import (
    CUT,
    INTERNAL_ERROR,
    QUOTA_EXCEEDED,
    Chunk,
    FakeGemini,
    HttpError,
    call,
    chunk,
    finish,
    text,
)
from support.gemini_runs import EMPTY_TEXT, STREAMED_FORECAST, part, parts, run


@pytest.mark.parametrize("refusal", [QUOTA_EXCEEDED, INTERNAL_ERROR])
@pytest.mark.parametrize("after_the_stream_began", [False, True])
def test_refusal_is_one_stored_event_with_google_s_status_and_then_raises(
    refusal: HttpError, after_the_stream_began: bool
):
    turn = [text("Hel"), refusal.body] if after_the_stream_began else refusal
    with FakeGemini([turn, [text("never asked for"), finish()]]) as gemini:
        result = run(gemini.model())

    assert len(gemini.requests) == 1  # nothing is tried again
    assert isinstance(result.error, ClientError if refusal is QUOTA_EXCEEDED else ServerError)
    assert len(result.partials) == (1 if after_the_stream_began else 0)
    (failure,) = result.wholes
    assert failure.error_code == refusal.status
    assert failure.error_message == str(result.error)
    assert refusal.message in failure.error_message
    assert (failure.content, failure.partial, failure.author) == (None, None, "agent")
    assert failure.id not in {event.id for event in result.partials}
    assert result.stored == [failure]


def test_refusal_after_a_tool_leaves_the_answered_call_in_the_session():
    with FakeGemini([[call("forecast", {"city": "Oslo"}), finish()], INTERNAL_ERROR]) as gemini:
        result = run(gemini.model())

    asked, answered, failure = result.wholes
    assert failure.error_code == "INTERNAL"
    assert result.stored == [asked, answered, failure]


@pytest.mark.parametrize("arrived", [[], [text("Hel"), text("lo")], STREAMED_FORECAST[:3]])
def test_cut_connection_leaves_only_the_http_client_s_own_exception_in_the_session(arrived: list[Chunk]):
    with FakeGemini([[*arrived, CUT]]) as gemini:
        result = run(gemini.model())

    assert len(gemini.requests) == 1
    assert len(result.partials) == len(arrived)
    assert isinstance(result.error, httpx.RemoteProtocolError)
    (failure,) = result.wholes
    assert (failure.error_code, failure.error_message) == ("RemoteProtocolError", str(result.error))
    assert failure.content is None
    assert result.stored == [failure]


def test_stream_that_just_ends_is_taken_for_a_whole_answer_without_finish_reason():
    with FakeGemini([[text("Hel"), text("lo")]]) as gemini:
        result = run(gemini.model())

    assert result.error is None
    (whole,) = result.wholes
    assert part(whole) == {"text": "Hello"}
    assert (whole.finish_reason, whole.error_code) == (None, None)


def test_answer_that_ends_badly_is_whole_and_an_error_at_once_but_raises_nothing():
    turns = [[text("Hel"), finish("MAX_TOKENS")], [text("Hel"), chunk(finishReason="SAFETY")]]
    with FakeGemini(turns) as gemini:
        too_long, blocked = run(gemini.model()), run(gemini.model())

    assert (too_long.error, blocked.error) == (None, None)
    assert [event.error_code for event in too_long.events] == [None, None, "MAX_TOKENS"]
    # A last chunk without content is an error as a partial already.
    assert [event.error_code for event in blocked.events] == [None, "SAFETY", "SAFETY"]
    assert blocked.partials[1].content is None
    assert parts(too_long.wholes[0]) == [{"text": "Hel"}, EMPTY_TEXT]
    assert parts(blocked.wholes[0]) == [{"text": "Hel"}]


@releases.empty_answers
def test_empty_answer_is_an_error_only_if_gemini_closes_it_with_empty_text():
    with FakeGemini([[finish()], [chunk(finishReason="STOP")]]) as gemini:
        with_empty_text = run(gemini.model())
        without_content = run(gemini.model())

    assert [event.error_code for event in with_empty_text.events] == [None, "MODEL_RETURNED_NO_CONTENT"]
    assert with_empty_text.error is None
    assert without_content.events == []
    assert without_content.error is None


def test_cut_answer_that_was_not_streamed_fails_like_a_streamed_one():
    with FakeGemini([[text("Hel"), CUT]]) as gemini:
        result = run(gemini.model(), mode=StreamingMode.NONE)

    assert isinstance(result.error, httpx.RemoteProtocolError)
    assert [event.error_code for event in result.events] == ["RemoteProtocolError"]
