"""A deletion stops what runs in the chat, whoever else waits for it."""

import asyncio
from typing import Any

import pytest
from google.adk.agents import LlmAgent

from adk_stream_protocol.testing import ScriptedModel, call
from support.pages import Till, page
from support.workers import CHAT, answer_body, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]


async def test_a_deletion_does_not_wait_behind_an_answer_that_waits_for_the_same_run() -> None:
    till, thinks, go_on = Till(), asyncio.Event(), asyncio.Event()
    model = ScriptedModel([PAY, "Thought.", "Paid."])

    async def think(**_: Any) -> None:
        if model.requests:
            thinks.set()
            await go_on.wait()

    agent = LlmAgent(name="helper", model=model, tools=[till.gated], before_model_callback=think)
    async with page(agent=agent) as at:
        await at.say("Pay.")
        at.decide("pay")
        thinking = asyncio.create_task(at.chat.post(words_body("Think.")))
        await thinks.wait()
        waiting = asyncio.create_task(at.chat.post(answer_body(at)))
        await asyncio.sleep(1)
        deleting = asyncio.create_task(at.chat.request("DELETE"))
        await asyncio.sleep(10)
        is_done = deleting.done()
        go_on.set()
        await asyncio.gather(thinking, waiting, deleting)
        assert is_done
        assert till.paid == []


async def test_a_deletion_does_not_wait_behind_an_answer_that_waits_for_another_worker() -> None:
    async with workers(PAY, "Paid.", tools=(Till().gated,)) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        lease, _ = await staff.store.acquire(CHAT, 1000)
        assert lease is not None
        waiting = asyncio.create_task(at.chat.post(answer_body(at)))
        await asyncio.sleep(1)
        deleting = asyncio.create_task(at.chat.request("DELETE"))
        await asyncio.sleep(10)
        is_done = deleting.done()
        await staff.store.release(lease)
        await asyncio.gather(waiting, deleting)
        assert is_done
        assert deleting.result().status_code == 409
