"""Whoever approves a call sees exactly what will run. What cannot be shown exactly is not asked, and not run."""

import json
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import client_tool
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.pages import Page, page, results_told

CHAT = ChatKey("helper", "ann", "c1")
ACCOUNT = 12345678901234567  # JavaScript makes ...568 of it
SHOWN = str(ACCOUNT)
ROUNDED = 12345678901234568
STYLES = ("approval-request", "confirmation-tool")


class Desk:
    """Transfers to whatever account it is given, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    async def transfer(self, data: dict[str, Any]) -> dict[str, Any]:
        """Transfers."""
        self.given.append(data)
        return {"ok": True}

    @property
    def gated(self) -> FunctionTool:
        return FunctionTool(self.transfer, require_confirmation=True)


def large() -> list[Any]:
    return [call("transfer", data={"account": ACCOUNT})]


def agree(at: Page, style: str) -> None:
    if style == "confirmation-tool":
        at.output("adk_request_confirmation", {"confirmed": True})
    else:
        at.decide("transfer")


# -- whole numbers that JavaScript would round ------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
async def test_a_large_number_that_somebody_approves_is_shown_as_text(style: str) -> None:
    async with page(large(), "Done.", tools=(Desk().gated,)) as at:
        answer = await at.say("Transfer.", approvalStyle=style)
        assert at.part("transfer")["input"] == {"data": {"account": SHOWN}}
        if style == "confirmation-tool":
            question = at.part("adk_request_confirmation")["input"]
            assert question["originalFunctionCall"]["args"] == {"data": {"account": SHOWN}}
        assert f":{ACCOUNT}" not in answer.raw


async def test_the_record_of_a_large_number_has_the_number() -> None:
    store = MemoryStore()
    async with page(large(), "Done.", tools=(Desk().gated,), record=store) as at:
        await at.say("Transfer.")
        (record,) = (await store.read(CHAT)).records
        assert record.arguments == {"data": {"account": ACCOUNT}}


@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_that_echoes_the_text_is_taken_and_the_tool_gets_the_number(style: str) -> None:
    desk = Desk()
    async with page(large(), "Done.", tools=(desk.gated,)) as at:
        await at.say("Transfer.", approvalStyle=style)
        agree(at, style)
        assert (await at.answer()).text == "Done."
        assert desk.given == [{"account": ACCOUNT}]
        assert type(desk.given[0]["account"]) is int


@pytest.mark.parametrize("echoed", [ROUNDED, str(ROUNDED), float(ACCOUNT)])
@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_that_shows_a_rounded_number_is_for_another_call(style: str, echoed: Any) -> None:
    desk = Desk()
    async with page(large(), "Done.", tools=(desk.gated,)) as at:
        await at.say("Transfer.", approvalStyle=style)
        agree(at, style)
        if style == "confirmation-tool":
            shown = at.part("adk_request_confirmation")["input"]["originalFunctionCall"]
            shown["args"] = {"data": {"account": echoed}}
        else:
            at.part("transfer")["input"] = {"data": {"account": echoed}}
        assert (await at.answer()).status == 404
        assert desk.given == []


@pytest.mark.parametrize("style", STYLES)
async def test_a_reload_shows_a_large_number_as_the_same_text_and_it_can_be_approved(style: str) -> None:
    desk = Desk()
    async with page(large(), "Done.", tools=(desk.gated,)) as at:
        await at.say("Transfer.", approvalStyle=style)
        await at.is_what_a_reload_shows()
        tab = await at.second_tab()
        assert tab.part("transfer")["input"] == {"data": {"account": SHOWN}}
        agree(tab, style)
        assert (await tab.answer()).status == 200
        await tab.is_what_a_reload_shows()
        assert desk.given == [{"account": ACCOUNT}]


@pytest.mark.parametrize(("number", "shown"), [(2**53 - 1, 2**53 - 1), (2**53, str(2**53)), (-(2**53), str(-(2**53)))])
async def test_only_numbers_that_would_be_rounded_are_shown_as_text(number: int, shown: Any) -> None:
    reply = [call("transfer", data={"deep": [{"account": number}]})]
    async with page(reply, "Done.", tools=(Desk().gated,)) as at:
        await at.say("Transfer.")
        assert at.part("transfer")["input"] == {"data": {"deep": [{"account": shown}]}}


async def test_the_number_of_a_tool_that_nobody_approves_is_told_as_it_is() -> None:
    desk = Desk()
    async with page(large(), "Done.", tools=(desk.transfer,)) as at:
        answer = await at.say("Transfer.")
        (told,) = answer.of_type("tool-input-available")
        assert told["input"] == {"data": {"account": ACCOUNT}}
        assert desk.given == [{"account": ACCOUNT}]
        await at.is_what_a_reload_shows()


def draw(data: dict[str, Any]) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Runs in the browser."""


@pytest.mark.parametrize("approve", [False, True])
async def test_a_browser_is_not_given_a_number_that_it_cannot_hold(approve: bool) -> None:
    store = MemoryStore()
    reply = [call("draw", data={"account": ACCOUNT})]
    tool = client_tool(draw, approve=approve)
    async with page(reply, "As text, then.", tools=(tool,), record=store) as at:
        answer = await at.say("Draw.")
        assert answer.text == "As text, then."
        (told,) = results_told(at.chat.model)
        assert "2^53" in told["error"]
        assert (await store.read(CHAT)).records == []
        assert not answer.of_type("tool-approval-request")
        await at.is_what_a_reload_shows()


# -- what no page could show ------------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    value: Any = "Eve"
    for _ in range(levels):
        value = [value]
    return value


UNSHOWABLE = {
    "not a number": ({"amount": float("nan")}, "not a number"),
    "infinity": ({"amount": float("inf")}, "infinite"),
    "minus infinity": ({"amount": [float("-inf")]}, "infinite"),
    "half a character": ({"to": "Bob\ud800"}, "half a character"),
    "half a character in a key": ({"to": "Bob", "\ud800": "Eve", "?": "Bob"}, "half a character"),
    "300 levels": ({"x": nested(300)}, "deeper"),
}


@pytest.mark.parametrize("kind", UNSHOWABLE)
async def test_what_cannot_be_shown_is_refused_to_the_model_and_nobody_is_asked(kind: str) -> None:
    data, reason = UNSHOWABLE[kind]

    desk, store = Desk(), MemoryStore()
    async with page([call("transfer", data=data)], "Not so.", tools=(desk.gated,), record=store) as at:
        answer = await at.say("Transfer.")
        assert (answer.status, answer.text) == (200, "Not so.")
        assert not answer.of_type("tool-approval-request")
        (told,) = results_told(at.chat.model)
        assert reason in told["error"]
        assert (await store.read(CHAT)).records == []
        assert desk.given == []


@pytest.mark.parametrize("kind", UNSHOWABLE)
async def test_what_cannot_be_shown_is_a_failed_call_after_a_reload_too(kind: str) -> None:
    data, reason = UNSHOWABLE[kind]

    async with page([call("transfer", data=data)], "Not so.", tools=(Desk().gated,)) as at:
        await at.say("Transfer.")
        (part,) = [part for part in (await at.chat.messages())[-1]["parts"] if "toolCallId" in part]
        assert part["state"] == "output-error"
        assert reason in part["errorText"]
        assert (await at.chat.chats())[0]["waiting"] is False


@pytest.mark.parametrize("kind", UNSHOWABLE)
@pytest.mark.parametrize("approve", [False, True])
async def test_what_cannot_be_shown_is_not_given_to_a_browser(kind: str, approve: bool) -> None:
    data, reason = UNSHOWABLE[kind]

    tool = client_tool(draw, approve=approve)
    async with page([call("draw", data=data)], "Not so.", tools=(tool,)) as at:
        answer = await at.say("Draw.")
        assert (answer.status, answer.text) == (200, "Not so.")
        (told,) = results_told(at.chat.model)
        assert reason in told["error"]


async def test_whatever_is_sent_is_json_that_every_client_reads() -> None:
    async with page([call("transfer", data={"amount": float("inf")})], "No.", tools=(Desk().gated,)) as at:
        answer = await at.say("Transfer.")

        def refuse(constant: str) -> None:
            raise AssertionError(constant)

        for line in answer.raw.split("\n"):
            if line.startswith("data: {"):
                json.loads(line.removeprefix("data: "), parse_constant=refuse)
