"""Which ids the calls of a live model have: no two of a chat the same, and for the model its own."""

import asyncio
from typing import Any

import pytest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol.adk.calls.call_ids import CallIds
from adk_stream_protocol.adk.live.model_call_ids import ModelCallIds
from adk_stream_protocol.testing import LiveSession, ScriptedLiveModel
from live.live_pages import LivePage, approved, beside, both_families, live_page
from support.pages import Till


def pays(amount: int, id: str = "0") -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=id, name="pay", args={"amount": amount}))


def said(*parts: types.Part, partial: bool = False) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=list(parts)), partial=partial)


def renamed(ids: ModelCallIds, *parts: types.Part, partial: bool = False) -> list[str | None]:
    response = said(*parts, partial=partial)
    ids.rename_repeated(response)
    assert response.content is not None
    return [part.function_call.id for part in response.content.parts or () if part.function_call]


def results(*ids: str) -> types.Content:
    made = [types.FunctionResponse(id=id, name="pay", response={"id": id}) for id in ids]
    return types.Content(role="user", parts=[types.Part(function_response=result) for result in made])


def ids_in(content: types.Content) -> list[str | None]:
    return [part.function_response.id for part in content.parts or () if part.function_response]


def test_each_call_has_an_id_of_its_own_and_the_model_gets_results_under_its_own() -> None:
    ids = ModelCallIds(CallIds(["0"]))
    assert renamed(ids, pays(5, "1"), pays(6, "1")) == ["1", "1-2"]
    assert renamed(ids, pays(7, "1"), pays(8)) == ["1-3", "0-2"]
    stored = results("1", "1-2", "1-3", "0-2", "other")
    assert ids_in(ids.with_own_ids(stored)) == ["1", "1", "1", "0", "other"]
    assert ids_in(stored) == ["1", "1-2", "1-3", "0-2", "other"]
    assert ids.given(["1"]) == ["1", "1-2", "1-3"]


def test_what_has_streamed_comes_again_under_its_id() -> None:
    ids = ModelCallIds(CallIds(["0"]))
    assert renamed(ids, pays(5), partial=True) == ["0-2"]
    assert renamed(ids, pays(5)) == ["0-2"]
    assert renamed(ids, pays(5)) == ["0-3"]


def test_what_has_no_calls_or_no_repeated_ones_stays_as_it_is() -> None:
    ids = ModelCallIds(CallIds(()))
    words = said(types.Part(text="Hello"))
    before = words.content
    ids.rename_repeated(words)
    ids.rename_repeated(LlmResponse(turn_complete=True))
    assert words.content is before
    told = results("0")
    assert ids.with_own_ids(told) is told
    hello = types.Content(role="user", parts=[types.Part(text="Hello")])
    assert ids.with_own_ids(hello) is hello


# -- with a model that gives two calls one id --------------------------------------------------------------------------


class Numbering:
    """A model that calls twice under one id, in one message or in two."""

    def __init__(self, *, in_one: bool) -> None:
        self.results: list[tuple[str | None, Any]] = []
        self._in_one = in_one

    async def __call__(self, session: LiveSession) -> None:
        await session.expect_text()
        for calls in [(pays(5), pays(7))] if self._in_one else [(pays(5),), (pays(7),)]:
            await session.calls(*calls)
        while (received := await session.expect()).kind != "close":
            self.results += [(result.id, result.response) for result in received.final_responses]
            if received.kind == "content" or received.final_responses:
                await session.answer("Done.")

    def model(self, family: str) -> ScriptedLiveModel:
        return ScriptedLiveModel(self.__call__, family=family)  # pyright: ignore[reportArgumentType]


async def approve_all(at: LivePage) -> None:
    """As a person does who looks at one card after the other, and whose streams have the result of that card."""
    for _ in range(5):
        await asyncio.sleep(30)
        for message in await at.chat.messages():
            cards = [part for part in message["parts"] if part.get("state") == "approval-requested"]
            for card in cards[:1]:
                answer = await at.send_parts(message["id"], approved(card))
                told = [chunk["toolCallId"] for chunk in answer.of_type("tool-output-available")]
                assert card["toolCallId"] in told
                assert answer.of_type("tool-output-error") == []


@both_families
@pytest.mark.virtual_time
@pytest.mark.parametrize("in_one", [True, False], ids=["in one message", "in two"])
@pytest.mark.parametrize("is_beside", [True, False], ids=["beside the conversation", "in it"])
@pytest.mark.parametrize("is_gated", [True, False], ids=["gated", "free"])
async def test_two_calls_with_one_id_are_two_calls(family: str, in_one: bool, is_beside: bool, is_gated: bool) -> None:
    till, server = Till(), Numbering(in_one=in_one)
    tool = (beside if is_beside else FunctionTool)(till.pay, require_confirmation=is_gated)
    async with live_page(model=server.model(family), tools=(tool,)) as at:
        await at.say("Pay.")
        await approve_all(at)
        assert sorted(till.paid) == [5, 7]
        assert sorted(server.results, key=str) == [("0", {"paid": 5}), ("0", {"paid": 7})]
        shown = [part for message in await at.chat.messages() for part in message["parts"] if "toolCallId" in part]
        told = [(part["toolCallId"], part["input"], part.get("output")) for part in shown]
        assert told == [("0", {"amount": 5}, {"paid": 5}), ("0-2", {"amount": 7}, {"paid": 7})]
        assert (await at.say("Still there?")).text == "Done."
