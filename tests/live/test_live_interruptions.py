"""What a model does that was interrupted and does not know it: its calls are shown, or refused so that it goes on."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol.testing import LiveSession
from live.live_pages import both_families
from support.live_client import LiveClient
from support.pages import Till
from transports.live_apps import chunks, live_app, own, said, sound

pytestmark = pytest.mark.virtual_time


class Payment:
    """A model that is about to pay when it is interrupted."""

    def __init__(self, *, spoken: bool, by_model: bool = False) -> None:
        self.goes_on = asyncio.Event()
        self.results: list[Any] = []
        self._spoken = spoken
        self._by_model = by_model

    async def __call__(self, session: LiveSession) -> None:
        if self._spoken:
            await session.expect_audio()
            await session.input_transcript("Pay five", finished=True)
            await session.output_transcript("I am going to pay ")
        else:
            await session.expect_text()
            await session.say("I am going to pay ")
        await self.goes_on.wait()
        if self._by_model:
            await session.interrupted()
        await session.call("pay", amount=5)
        while (received := await session.expect()).kind != "close":
            if received.kind == "response":
                self.results.append(received.responses[0].response)
                await session.answer("Done.")
            elif received.kind == "content":
                await session.answer("Fine.")


async def begin_payment(client: LiveClient, *, spoken: bool) -> str:
    if spoken:
        client.send_frame(sound(20))
        await client.own("turn")
        request_id = client.new_request()
        client.send_frame({"type": "resume", "requestId": request_id, "id": "chat-1"})
    else:
        request_id = client.start_send(said("Pay five", "pay"))
    await client.until(lambda: len(chunks(client, request_id)) >= 3)
    return request_id


@both_families
@pytest.mark.parametrize("spoken", [True, False], ids=["spoken", "typed"])
@pytest.mark.parametrize("by_model", [True, False], ids=["the model notices", "the client says so"])
async def test_a_call_after_an_interruption_is_shown_with_its_approval(
    family: str, spoken: bool, by_model: bool
) -> None:
    till, server = Till(), Payment(spoken=spoken, by_model=by_model)
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_app(server, speaks=spoken, family=family, tools=(tool,)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=spoken)
        if not by_model:
            client.tell("interrupt")
            await client.answer(request_id)
        told = len(own(client, "turn"))
        server.goes_on.set()
        if by_model and not spoken:
            await client.answer(request_id)
        await client.own("turn", told + 1)
        asked = await client.resume()
        assert asked.types[-4:] == ["tool-approval-request", "data-adk-approval", "finish-step", "finish"]
        answer = await client.decide(asked, approved=True)
        assert answer.text.endswith("Done.")
        assert (till.paid, server.results) == ([5], [{"paid": 5}])


@both_families
async def test_a_call_after_an_interruption_is_refused_if_the_user_has_written_something_else(family: str) -> None:
    till, server = Till(), Payment(spoken=False)
    tool = FunctionTool(till.pay, require_confirmation=True)
    async with live_app(server, family=family, tools=(tool,)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=False)
        client.tell("interrupt")
        await client.answer(request_id)
        other = client.start_send(said("Never mind", "other"))
        await client.until(lambda: chunks(client, other))
        server.goes_on.set()
        assert (await client.answer(other)).text
        assert till.paid == []
        assert "superseded" in str(server.results)


@both_families
async def test_a_tool_that_needs_nobody_is_shown_after_an_interruption(family: str) -> None:
    till, server = Till(), Payment(spoken=False)
    async with live_app(server, family=family, tools=(FunctionTool(till.pay),)) as live, live.attached() as client:
        request_id = await begin_payment(client, spoken=False)
        client.tell("interrupt")
        await client.answer(request_id)
        server.goes_on.set()
        await client.own("turn")
        shown = await client.resume()
        assert [chunk["output"] for chunk in shown.of_type("tool-output-available")] == [{"paid": 5}]
