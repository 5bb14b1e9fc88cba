"""Runs that no request has asked for are made for the clients of the turn that made the call."""

import json
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, Link, Nobody, Owner
from adk_stream_protocol.testing import Answer, call
from chat.test_completions import ROWS, Exports
from chat.test_consents import Calendar, Provider, callback_of
from chat.test_consents import provider as provider  # a fixture
from support.approvers import of, until
from support.pages import Page, Till, page

pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning")  # ADK's own


def decide(request: ApprovalRequest) -> Any:
    """Max about the first payment, the owner about the next."""
    if request.tool != "pay":
        return Nobody
    return Chain([Link(["max"])]) if request.arguments["amount"] == 5 else Owner


class World:
    """A chat that waits for something from elsewhere, and then asks its owner for a payment."""

    def __init__(self, provider: Provider) -> None:
        self.exports, self.till, self.calendar = Exports(), Till(), Calendar(provider.config())
        self.tools = (self.exports.tool, self.till.gated, FunctionTool(self.calendar.read_calendar))

    def replies(self, way: str) -> list[Any]:
        first = {"decision": [call("pay", amount=5)], "work": [call("export")], "consent": [call("read_calendar")]}
        return [first[way], *(["Started."] if way == "work" else []), [call("pay", amount=6)], "Paid."]

    async def go_on(self, way: str, at: Page, asked: Answer) -> None:
        match way:
            case "decision":
                await of(at, "max").decide()
            case "work":
                await at.chat.bridge.complete_call(self.exports.refs[0], ROWS)
            case _:
                await at.chat.bridge.complete_auth("ann", callback_of(asked))


async def resumed(at: Page) -> list[str]:
    """The types of the chunks that a client reads that comes back."""
    response = await at.chat.request("GET", f"/stream?message={at.messages[-1]['id']}")
    lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line)["type"] for line in lines]


@pytest.mark.parametrize("way", ["decision", "work", "consent"])
@pytest.mark.parametrize(("sdk_version", "style"), [(5, None), (7, None), (6, "confirmation-tool")])
async def test_they_speak_the_version_and_the_style_of_their_clients(
    provider: Provider, way: str, sdk_version: int, style: str | None
) -> None:
    world, body = World(provider), {"approvalStyle": style} if style else {}
    options = {"tools": world.tools, "approvals": ApprovalPolicy(decide=decide)}
    async with page(*world.replies(way), sdk_version=sdk_version, **options) as at:
        asked = await at.say("Go.", **body)
        await world.go_on(way, at, asked)

        async def is_asked() -> bool:
            return bool(await of(at, "ann").inbox())

        await until(is_asked)
        await until(lambda: not at.chat.is_running)
        types = await resumed(at)
        assert ("tool-approval-request" in types) is (sdk_version == 7)
        shown = await at.chat.messages(x_ai_sdk_version=str(sdk_version))
        asks = [part["type"] for part in shown[-1]["parts"] if part.get("input", {}).get("toolConfirmation")]
        assert asks == ([] if sdk_version == 7 else ["tool-adk_request_confirmation"])


@pytest.mark.parametrize("way", ["decision", "work", "consent"])
async def test_they_run_with_what_was_prepared_for_the_turn(provider: Provider, way: str) -> None:
    world = World(provider)
    options = {"tools": world.tools, "approvals": ApprovalPolicy(decide=decide)}
    prepared: list[Any] = []

    def prepare(connection: Any, body: Any) -> Any:
        prepared.append(body)
        return {"custom_metadata": {"tenant": "t1"}}

    async with page(*world.replies(way), prepare=prepare, **options) as at:
        await world.go_on(way, at, await at.say("Go."))

        async def is_asked() -> bool:
            return bool(await of(at, "ann").inbox())

        await until(is_asked)
        session = await at.chat.session()
        assert session is not None
        assert {(event.custom_metadata or {}).get("tenant") for event in session.events} == {"t1"}
        assert len(prepared) == 1
