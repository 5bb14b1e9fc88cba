"""Recovery runs wherever a bridge does, and keeps what the application chose for the run that was lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response
from google.adk.tools import FunctionTool, ToolContext

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import call
from live.live_pages import until
from support.apps import app_of
from support.conversations import Conversation
from support.pages import Till
from support.workers import Workers, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
LEASE_S = 10
LIMITS = Limits(lease_s=LEASE_S)


# -- where it runs ----------------------------------------------------------------------------------------------------


async def left_behind(staff: Workers) -> None:
    """An approved payment whose worker has died."""
    first = staff.page()
    await first.say("Pay.")
    await first.chat.bridge.aclose()
    staff.bridges.remove(first.chat.bridge)
    await staff.approve_and_die()
    staff.clock.now += LEASE_S + 1


async def test_recovery_starts_with_the_first_request_on_a_route_of_ones_own() -> None:
    till = Till()
    async with workers(PAY, "Hello.", "Paid.", tools=(till.gated,), limits=LIMITS) as staff:
        await left_behind(staff)
        with ThreadPoolExecutor() as thread:  # where there is no loop; this one waits, so that its clock stands still
            bridge = thread.submit(staff.bridge).result()
        app = FastAPI()

        @app.post("/chat")
        async def chat(request: Request) -> Response:
            return await bridge.respond(request)

        await asyncio.sleep(2 * LEASE_S)
        assert till.paid == []
        body = {**words_body("Hello."), "id": "c2"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            assert (await http.post("/chat", json=body)).status_code == 200
        await until(lambda: till.paid == [5])


async def test_recovery_starts_with_a_bridge_that_is_built_in_a_running_loop() -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,), limits=LIMITS) as staff:
        await left_behind(staff)
        staff.bridge()
        await until(lambda: till.paid == [5])


@pytest.mark.parametrize("path", ["/messages", "/stream"])
async def test_recovery_starts_with_any_request(path: str) -> None:
    till = Till()
    async with workers(PAY, "Paid.", tools=(till.gated,), limits=LIMITS) as staff:
        await left_behind(staff)
        bridge = await asyncio.to_thread(staff.bridge)
        app = FastAPI()
        app.mount("/sub", app_of(bridge))  # whose lifespan nobody runs
        chat = Conversation(app, bridge)
        chat.prefix = "/sub/api/chat"
        await chat.request("GET", path)
        await until(lambda: till.paid == [5])


# -- what it keeps ----------------------------------------------------------------------------------------------------


async def test_a_recovered_run_keeps_what_prepare_chose() -> None:
    configs: list[Any] = []

    async def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pays."""
        configs.append(tool_context._invocation_context.run_config)  # pyright: ignore
        tool_context.state["seen"] = amount
        return {"paid": amount}

    def prepare(*_: Any) -> Any:
        return {
            "run_config": {"max_llm_calls": 7},
            "custom_metadata": {"tenant": "north"},
            "send_state": ["seen"],
        }

    tools = (FunctionTool(pay, require_confirmation=True),)
    async with workers(PAY, "Paid.", tools=tools, limits=LIMITS, prepare=prepare) as staff:
        await left_behind(staff)
        at = staff.page()
        await until(lambda: configs)
        await until(lambda: not at.chat.is_running)
        assert configs[0].max_llm_calls == 7
        assert configs[0].custom_metadata["tenant"] == "north"
        session = await staff.sessions.get_session(app_name="helper", user_id="ann", session_id="c1")
        assert session is not None
        assert (session.events[-1].custom_metadata or {})["tenant"] == "north"
        shown = [part for part in (await at.chat.messages())[-1]["parts"] if part["type"] == "data-adk-state"]
        assert [part["data"] for part in shown] == [{"seen": 5}]
