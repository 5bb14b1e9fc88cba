"""A live session waits for a chain of approvers: the call waits inside ADK, and goes on after the last decision."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.tools import FunctionTool
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, Link, Nobody, client_tool
from adk_stream_protocol.testing import ScriptedLiveModel, call
from live.live_pages import LivePage, both_families, live_page, live_world, told_results, until
from support.approvers import Approver, groups_of, in_chain
from support.apps import app_of
from support.live_client import live_socket
from support.pages import Till
from support.workers import workers

pytestmark = pytest.mark.virtual_time

CHAINED: dict[str, Any] = {"approvals": in_chain("group:managers", "eva"), "groups": groups_of}


def of(at: LivePage, user: str, *groups: str) -> Approver:
    return Approver(at.chat.app, user, *groups)


@both_families
@pytest.mark.parametrize("is_gated", [True, False])
async def test_manager_then_executive_decide_and_the_session_goes_on_by_itself(family: str, is_gated: bool) -> None:
    till = Till()
    tool = till.gated if is_gated else FunctionTool(till.pay)
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(tool,), **CHAINED) as at:
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        (data,) = asked.of_type("data-adk-approval")
        assert (data["data"]["status"], len(data["data"]["chain"])) == ("pending", 2)
        assert (await of(at, "max", "managers").decide()).json()["status"] == "pending"
        assert till.paid == []
        assert (await of(at, "eva").decide()).json()["status"] == "approved"
        await until(lambda: till.paid == [5])
        assert told_results(at.model) == [{"paid": 5}]


@both_families
async def test_a_denial_ends_it_and_the_model_is_told(family: str) -> None:
    till = Till()
    async with live_page([call("pay", amount=5)], "Not paid.", family=family, tools=(till.gated,), **CHAINED) as at:
        await at.say("Pay.")
        await of(at, "max", "managers").decide(False, reason="No.")
        await until(lambda: len(at.model.requests) == 2)
        assert told_results(at.model) == [{"error": "This call was not run: an approver denied it. Reason: No."}]
        assert till.paid == []


@both_families
async def test_a_decision_on_another_worker_is_left_to_the_session(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    till, text = Till(), RunConfig(response_modalities=[types.Modality.TEXT])
    model = ScriptedLiveModel([[call("pay", amount=5)], "Paid."], family=family)
    async with workers(model=model, tools=(till.gated,), run_config=text, approvals=in_chain("max")) as staff:
        here, elsewhere = staff.bridge(), staff.bridge()
        async with live_socket(app_of(here), chat_id="c1") as live:
            await live.say("Pay.")
            await Approver(app_of(elsewhere), "max").decide()
            await until(lambda: not elsewhere._service._unasked._going_on)  # pyright: ignore
            await until(lambda: len(model.requests) == 2)
            assert (till.paid, told_results(model)) == ([5], [{"paid": 5}])
    assert "did not go on" not in caplog.text


@both_families
async def test_a_link_that_is_late_ends_it_by_itself(family: str) -> None:
    till = Till()
    policy = in_chain(Link(["max"], deadline_s=20))
    async with live_page([call("pay", amount=5)], "Late.", family=family, tools=(till.gated,), approvals=policy) as at:
        await at.say("Pay.")
        await asyncio.sleep(25)
        await until(lambda: len(at.model.requests) == 2)
        assert "expired" in told_results(at.model)[0]["error"]
        assert till.paid == []


@both_families
async def test_the_policy_waives_the_question_of_a_tool(family: str) -> None:
    till = Till()
    policy = ApprovalPolicy(decide=lambda _: Nobody)
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,), approvals=policy) as at:
        answer = await at.say("Pay.")
        assert answer.of_type("tool-approval-request") == []
        assert till.paid == [5]
        (first, *_) = await at.chat.bridge.audit("ann", at.chat.chat_id)
        assert (first.state, first.by, first.approved) == ("approved", "by policy", True)


@both_families
async def test_the_owner_who_is_named_answers_in_the_session(family: str) -> None:
    till = Till()
    options: dict[str, Any] = {"approvals": in_chain("ann", "eva")}
    async with live_page([call("pay", amount=5)], "Paid.", family=family, tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        at.decide("pay")
        answered = await at.answer()
        assert answered.types == ["start", "data-adk-approval", "finish"]
        assert till.paid == []
        await of(at, "eva").decide()
        await until(lambda: till.paid == [5])


@both_families
async def test_a_browsers_tool_waits_for_the_chain(family: str) -> None:
    tool = client_tool("locate", "Where?", output={"type": "string"})
    options: dict[str, Any] = {"approvals": in_chain("max")}
    async with live_page([call("locate")], "There.", family=family, tools=(tool,), **options) as at:
        asked = await at.say("Where?")
        assert asked.of_type("tool-input-available") == asked.of_type("tool-approval-request") == []
        await of(at, "max").decide()
        assert (await at.chat.messages())[-1]["parts"][-1]["type"] == "data-adk-approval"


@pytest.mark.parametrize("is_asked_by_voice", [False, True])
async def test_what_goes_on_after_the_session_is_prepared_as_its_turn_was(is_asked_by_voice: bool) -> None:
    till = Till()
    options: dict[str, Any] = {
        **CHAINED,
        "tools": (till.gated,),
        "prepare": lambda connection, body: {"custom_metadata": {"tenant": "t1"}},
    }
    async with live_world([call("pay", amount=5)], "Paid.", **options) as world:
        async with world.socket(sdk_version=7) as at:
            if is_asked_by_voice:
                at.client.tell("attach", id="c1")
                at.client.tell("voice-start", sdkVersion=7)
                at.client.tell("activity-start")
                at.client.send_frame(bytes(3200))
                at.client.tell("activity-end")
            else:
                await at.say("Pay.")
            await until_asked(at)
        await world.run_ended()
        for person in (of(at, "max", "managers"), of(at, "eva")):
            await person.decide()
        async with asyncio.timeout(60):
            while "Paid." not in str(await world.chat.messages()):
                await asyncio.sleep(0.01)
        session = await world.chat.session()
        assert session is not None
        after = [event for event in session.events if event.author == "helper" and not event.live_session_id]
        assert {(event.custom_metadata or {}).get("tenant") for event in after[-2:]} == {"t1"}
        (record,) = await world.records()
        assert record.sdk_version == 7


async def until_asked(at: LivePage) -> None:
    async with asyncio.timeout(60):
        while not await of(at, "max", "managers").inbox():
            await asyncio.sleep(0.01)
