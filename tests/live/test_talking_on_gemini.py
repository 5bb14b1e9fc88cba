"""Talking on with ADK's own Gemini class: what goes over the wire to a service that plays Gemini Live. The real service
was not asked."""

from typing import Any

import pytest

from adk_stream_protocol.adk.live.talking_on import PENDING
from live.test_live_gemini import play
from support.fake_gemini_live import GEMINI_2_5, GEMINI_3, WireSession
from support.live_client import LiveClient

pytestmark = pytest.mark.filterwarnings("ignore:The `session.send` method is deprecated:DeprecationWarning")

GEMINI_3_8 = "gemini-3.8-flash-live"
BY_DEFAULT: dict[str, Any] = {"live_while_waiting": None}


def declared(session: WireSession) -> dict[str, str | None]:
    found = [each for tool in session.setup["tools"] for each in tool["functionDeclarations"]]
    return {each["name"]: each.get("behavior") for each in found}


@pytest.mark.parametrize(
    ("name", "options"),
    [(GEMINI_2_5, BY_DEFAULT), (GEMINI_3_8, BY_DEFAULT), (GEMINI_3, {"live_while_waiting": "continue"})],
    ids=["2.5", "3.8", "3.1, told to"],
)
def test_a_model_that_takes_late_answers_talks_on_and_gets_the_result_under_the_same_id(
    name: str, options: dict[str, Any]
) -> None:
    def service(session: WireSession) -> None:
        assert declared(session) == {"pay": "NON_BLOCKING"}
        assert session.expect_text() == "Pay five."
        session.call("pay", {"amount": 5})
        (pending,) = session.expect_responses()
        expected = {"id": "call-1", "name": "pay", "response": PENDING, "will_continue": True, "scheduling": "SILENT"}
        assert pending == expected
        assert session.expect_text() == "What time is it?"
        session.text("It is noon.")
        session.turn_complete()
        (answer,) = session.expect_responses()
        assert (answer["id"], answer["response"]) == ("call-1", {"paid": 5})
        session.text("Paid.")
        session.turn_complete()

    async def scenario(client: LiveClient) -> None:
        asked = await client.say("Pay five.")
        assert (asked.types[-1], "tool-approval-request" in asked.types) == ("finish", True)
        assert (await client.say("What time is it?")).text == "It is noon."
        told = await client.decide(asked, approved=True)
        assert (told.message_id, told.text) == (asked.message_id, "Paid.")
        assert "tool-output-available" in told.types

    play(service, scenario, name, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [(GEMINI_3, BY_DEFAULT), (GEMINI_2_5, {"live_while_waiting": "refuse"})],
    ids=["3.1", "2.5, told to"],
)
def test_a_model_that_takes_none_gets_one_answer_and_words_refuse_the_call(name: str, options: dict[str, Any]) -> None:
    def service(session: WireSession) -> None:
        assert declared(session) == {"pay": None}
        session.expect_text()
        session.call("pay", {"amount": 5})
        (answer,) = session.expect_responses()
        assert "superseded" in answer["response"]["error"]
        assert session.expect_text() == "What time is it?"
        session.text("It is noon.")
        session.turn_complete()

    async def scenario(client: LiveClient) -> None:
        await client.say("Pay five.")
        assert "It is noon." in (await client.say("What time is it?")).text

    play(service, scenario, name, **options)
