"""What ADK says of the open calls of an aborted run, set right by the record."""

from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.calls.seals import seal_as_recorded
from adk_stream_protocol.protocol.call_record import CallRecord
from support.records import paid, record

CONFIRMATION = "adk_request_confirmation"
ABORTED = {"error": "aborted"}
PAID = {"paid": 5}


def sealing(*ids: str | None) -> Event:
    parts = [types.Part(function_response=types.FunctionResponse(id=id, name="pay", response=ABORTED)) for id in ids]
    return Event(author="a", invocation_id="i1", content=types.Content(role="user", parts=parts))


def asking(
    question_id: str, call_id: str, *, invocation_id: str = "i1", name: str = "adk_request_confirmation"
) -> Event:
    question = types.FunctionCall(id=question_id, name=name, args={"originalFunctionCall": {"id": call_id}})
    content = types.Content(role="model", parts=[types.Part(function_call=question)])
    return Event(author="a", invocation_id=invocation_id, content=content)


def told(seal: Event, *records: CallRecord, events: tuple[Event, ...] = ()) -> dict[str | None, object]:
    seal_as_recorded(seal, events, {found.call: found for found in records})
    return {response.id: response.response for response in seal.get_function_responses()}


def test_a_call_without_a_record_is_aborted() -> None:
    seal = sealing("1", "2")
    assert told(seal, record("2", invocation_id="i2")) == {"1": ABORTED, "2": ABORTED}
    assert seal.content
    assert seal.content.role == "user"


def test_a_recorded_end_is_told_instead_and_an_open_call_stays_open() -> None:
    seal = sealing("1", "2", "3")
    assert told(seal, paid("1"), record("2")) == {"1": PAID, "3": ABORTED}
    assert [response.name for response in seal.get_function_responses()] == ["pay", "pay"]
    assert seal.content
    assert seal.content.role == "user"


def test_a_seal_of_open_calls_alone_says_nothing() -> None:
    seal = sealing("1")
    assert told(seal, record("1")) == {}
    assert seal.content is None


def test_a_question_is_closed_with_its_call_and_not_before() -> None:
    assert told(sealing("q1"), paid("1"), events=(asking("q1", "1"),)) == {"q1": ABORTED}
    assert told(sealing("q1"), record("1"), events=(asking("q1", "1"),)) == {}
    both = sealing("1", "q1", "2", "q2")
    assert told(both, paid("1"), record("2"), events=(asking("q1", "1"), asking("q2", "2"))) == {
        "1": PAID,
        "q1": ABORTED,
    }


def test_only_adks_questions_of_the_same_run_count() -> None:
    for event in (asking("q1", "1", invocation_id="i0"), asking("q1", "1", name="pay")):
        assert told(sealing("q1"), record("1"), paid("q1"), events=(event,)) == {"q1": PAID}


def test_a_question_about_nothing_is_no_call() -> None:
    question = types.FunctionCall(id="q1", name=CONFIRMATION, args=None)
    event = Event(author="a", invocation_id="i1", content=types.Content(parts=[types.Part(function_call=question)]))
    assert told(sealing("q1"), record("1"), events=(event,)) == {"q1": ABORTED}


def test_other_parts_are_kept() -> None:
    seal = sealing("1")
    assert seal.content
    assert seal.content.parts
    seal.content.parts.insert(0, types.Part(text="Hm."))
    told(seal, record("1"))
    assert [part.text for part in seal.content.parts] == ["Hm."]


def test_a_response_without_an_id_means_the_call_without_one() -> None:
    assert told(sealing(None), paid("")) == {None: PAID}


def test_a_seal_without_parts_stays_as_it_is() -> None:
    for content in (None, types.Content(role="user"), types.Content(role="user", parts=[])):
        seal = Event(author="a", invocation_id="i1", content=content)
        seal_as_recorded(seal, (), {})
        assert seal.content is content


def test_what_was_done_inside_of_an_aborted_call_is_told_with_it() -> None:
    inside = paid("5", made_in={"agent": "b", "outer": "1", "outlives": False}, is_nested=True)
    seal = sealing("1", "2")
    done = {"name": "pay", "args": {"amount": 5}, "response": PAID}
    assert told(seal, inside) == {"1": {**ABORTED, "calls": [done]}, "2": ABORTED}
    # A call with a record of its own is told as that says.
    assert told(sealing("1"), inside, paid("1")) == {"1": PAID}
    bare = sealing("1")
    bare.get_function_responses()[0].response = None
    assert told(bare, inside) == {"1": {"calls": [done]}}
