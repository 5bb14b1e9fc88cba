"""Forms: an answer that does not fit its question is refused, and the question stays open."""

from typing import Any

import pytest
from google.adk.events.request_input import RequestInput
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import Workflow
from pydantic import BaseModel

from adk_stream_protocol.adk.calls.input_requests import schema_of_answer, value_of_answer
from adk_stream_protocol.testing import call
from live.live_pages import both_families, live_page, told_results
from support.pages import page, results_told

FORM = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
ASK = call("adk_request_input", message="How many days?", response_schema=FORM)


async def test_an_answer_to_an_agent_that_does_not_fit_is_refused_and_the_question_stays_open() -> None:
    async with page([ASK], "Have fun.", tools=(request_input,)) as at:
        await at.say("Holidays.")
        assert at.part("adk_request_input")["input"]["response_schema"] == FORM
        for wrong in ("five", {"days": "five"}, {"yes": 1}, None, {"result": "five"}):
            at.part("adk_request_input").update(state="output-available", output=wrong)
            refused = await at.answer()
            assert (refused.status, (refused.error or {})["code"]) == (422, "output-does-not-fit")
        assert [chat["waiting"] for chat in await at.chat.bridge.chats("ann")] == [True]
        at.output("adk_request_input", {"days": 5})
        assert (await at.answer()).text == "Have fun."
        assert results_told(at.chat.model)[-1] == {"result": {"days": 5}}
        await at.is_what_a_reload_shows()


class TimeOff(BaseModel):
    approved: bool
    days: int


@pytest.mark.parametrize("schema", [TimeOff, TimeOff.model_json_schema()], ids=["model", "json schema"])
async def test_an_answer_to_a_workflow_that_does_not_fit_is_refused_and_the_question_stays_open(schema: Any) -> None:
    async def ask(node_input: Any) -> Any:
        yield RequestInput(message="How many?", response_schema=schema)

    heard: list[Any] = []

    def book(node_input: Any) -> dict[str, Any]:
        heard.append(node_input)
        return {"booked": True}

    async with page(agent=Workflow(name="flow", edges=[("START", ask, book)])) as at:
        await at.say("Holidays.")
        for wrong in ({"yes": 1}, "yes", {"approved": True}):
            at.part("adk_request_input").update(state="output-available", output=wrong)
            assert (await at.answer()).status == 422
        assert heard == []
        at.output("adk_request_input", {"approved": True, "days": 3})
        assert (await at.answer()).status == 200
        assert len(heard) == 1
        await at.is_what_a_reload_shows()


@both_families
@pytest.mark.virtual_time
async def test_a_live_session_asks_and_refuses_alike(family: str) -> None:
    async with live_page([ASK], "Have fun.", family=family, tools=(request_input,)) as at:
        await at.say("Holidays.")
        at.part("adk_request_input").update(state="output-available", output={"days": "five"})
        refused = await at.answer()
        assert (refused.error or {})["code"] == "output-does-not-fit"
        at.output("adk_request_input", {"days": 5})
        assert (await at.answer()).text == "Have fun."
        assert told_results(at.model)[-1] == {"result": {"days": 5}}


FOREIGN = [
    {"$ref": "https://example.org/s.json"},
    {"$ref": 1},
    {"allOf": [{"$ref": "file:///etc/passwd"}]},
    {"$id": "x"},
]


@pytest.mark.parametrize(
    "schema",
    [*FOREIGN, None, "string", 5, [], {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"type": "object", "required": 1}],
)
def test_a_schema_that_cannot_be_used_asks_for_anything(schema: Any) -> None:
    assert schema_of_answer({"response_schema": schema}, by_model=False) is None


def test_a_schema_of_a_thousand_levels_asks_for_anything() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"not": schema}
    assert schema_of_answer({"response_schema": schema}, by_model=True) is None


def test_a_model_s_patterns_are_not_tried() -> None:
    schema = {"anyOf": [{"type": "string", "pattern": "(a+)+$"}, {"type": "integer"}]}
    assert schema_of_answer({"response_schema": schema}, by_model=False) == schema
    plain = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert schema_of_answer({"response_schema": schema}, by_model=True) == plain
    assert schema_of_answer("nothing", by_model=True) is None


def test_an_answer_may_be_wrapped_as_adk_does() -> None:
    assert [value_of_answer(each) for each in (5, {"result": 5}, {"result": 5, "more": 6})] == [
        5,
        5,
        {"result": 5, "more": 6},
    ]
