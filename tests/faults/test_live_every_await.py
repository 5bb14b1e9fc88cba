"""A live session in which each call of a store or of the session service fails once, or from then on for a while:
nobody is left in the dark, no payment is made twice or unapproved, and all who speak of it say the same."""

import asyncio
import json
from itertools import count
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import ChatKey
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, LiveSession, ScriptedLiveModel
from faults.unsteady import Fault
from live.live_pages import approved
from support import virtual_time
from support.apps import app_of, user_of
from support.asgi import exchange
from support.evidence import Said, World, look
from support.live_client import LiveClient, live_socket
from support.tool_log import ToolLog
from support.truth import disagreements

CHAT = ChatKey("helper", "ann", "c1")
OUTAGE_S = 20
_NUMBERS = count()
LIMITS = Limits(live_grace_s=30, live_silence_s=60)
LONGER_THAN_A_SESSION_AND_ITS_RECOVERY_S = 600
LONGER_THAN_A_MODEL_IS_WAITED_FOR_S = LIMITS.live_silence_s + 60


async def model(session: LiveSession) -> None:
    """Pays when it is told to, and says yes to everything else."""
    while (received := await session.expect()).kind != "close":
        if received.kind == "content" and received.text == "Pay.":
            await session.call("pay", amount=5)
        elif received.asks_for_reply or received.final_responses:
            await session.answer("Yes.")


class Chat:
    """One page on a live session, over whichever socket it has."""

    def __init__(self, fault: Fault, error: type[Exception], **options: Any) -> None:
        loop = asyncio.get_running_loop()
        self.healthy = MemoryStore(clock=lambda: 1_000_000 + loop.time())
        store = fault.in_service(MemoryStore, error)()
        vars(store).update(vars(self.healthy))
        self.sessions = fault.in_service(InMemorySessionService, ConnectionError)()
        self.log, self.said, self._fault = ToolLog(), list[Said](), fault

        async def pay(amount: int, tool_context: ToolContext) -> dict[str, int]:
            """Pays."""
            with self.log.running("pay", tool_context, amount=amount):
                await asyncio.sleep(1)
                return {"paid": amount}

        agent = LlmAgent(
            name="helper", model=ScriptedLiveModel(model), tools=[FunctionTool(pay, require_confirmation=True)]
        )
        self.bridge = ChatBridge(
            agent,
            user_id=user_of,
            store=store,
            session_service=self.sessions,
            run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
            approvals=ApprovalPolicy(deadline_s=10_000),
            limits=LIMITS,
            **options,
        )
        self.app = app_of(self.bridge)

    async def history(self) -> list[dict[str, Any]]:
        """A page asks again if it was not answered."""
        while True:
            read = await exchange(self.app, method="GET", path="/api/chat/c1/messages", headers={"x-user": "ann"})
            if read.status in (200, 404):
                return json.loads(read.body) if read.status == 200 else []
            await asyncio.sleep(1)

    async def say(self, client: LiveClient, words: str) -> Answer:
        """A stream that does not end while a model and a server could speak is a frozen one."""
        message = {"id": f"u{next(_NUMBERS)}", "role": "user", "parts": [{"type": "text", "text": words}]}
        return await self._ended(client, client.start_send(message, messages=[message]))

    async def _ended(self, client: LiveClient, request: str) -> Answer:
        def has_ended() -> bool:
            return bool(told := client.frames.get(request)) and told[-1]["type"] in ("end", "error", "no-active")

        async with asyncio.timeout(LONGER_THAN_A_MODEL_IS_WAITED_FOR_S):
            while not has_ended():
                await asyncio.sleep(1)
        return await client.answer(request)

    async def approve_all(self, client: LiveClient) -> None:
        """What a reload shows as waiting, until nothing waits any more."""
        for _ in range(20):
            waiting = [
                (message["id"], part)
                for message in await self.history()
                for part in message["parts"]
                if part.get("state") == "approval-requested"
            ]
            if not waiting:
                return
            for message_id, part in waiting:
                self.said.append(Said(tool="pay", arguments=part["input"], approved=True))
                message = {"id": message_id, "role": "assistant", "parts": [approved(part)]}
                await self._ended(client, client.start_send(message, messages=[message], messageId=message_id))
            await asyncio.sleep(10)
        raise AssertionError("a card can be pressed, and nothing happens")

    async def looked_at(self) -> World:
        seen = {"said": self.said, "record_was_unreadable": bool(self._fault.hit)}
        return await look(self.app, self.healthy, self.sessions, CHAT, runs=self.log.runs(), is_settled=False, **seen)


async def talk(fault: Fault, error: type[Exception], options: dict[str, Any]) -> list[str]:
    chat = Chat(fault, error, **options)
    fault.arm()
    loop = asyncio.get_running_loop()
    loop.call_later(OUTAGE_S, fault.disarm)
    async with live_socket(chat.app, client=LiveClient("c1")) as client:
        try:
            await chat.say(client, "Pay.")
            await chat.approve_all(client)
            for number in count():
                if (await chat.say(client, "And?")).text.endswith("Yes."):
                    break
                if number > 20:
                    return ["the chat takes no turn any more"]
                await asyncio.sleep(10)
            await chat.approve_all(client)
        except TimeoutError:
            return [f"a stream never ends: {client.everything[-3:]}"]
        finally:
            fault.disarm()
    await asyncio.sleep(LONGER_THAN_A_SESSION_AND_ITS_RECOVERY_S)
    found = disagreements(await chat.looked_at())
    open_calls = [record for record in (await chat.healthy.read(CHAT)).records if not record.is_final]
    found += [f"is left as {record.state}" for record in open_calls]
    await chat.bridge.aclose()
    return found


KINDS: dict[str, dict[str, bool]] = {
    "once": {},
    "for a while": {"is_lasting": True},
    "after its work was done": {"is_late": True},
}


@pytest.mark.figures
@pytest.mark.parametrize("store_error", [StoreUnavailable, ConnectionError])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("while_waiting", ["continue", "refuse"])
def test_a_failure_at_any_await_of_a_live_session_leaves_one_truth_and_nobody_in_the_dark(
    while_waiting: str, kind: str, store_error: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong: dict[str, list[str]] = {}
    hit: list[str] = []
    for at in count(1):
        fault = Fault(at, **KINDS[kind])
        found = virtual_time.run(talk(fault, store_error, {"live_while_waiting": while_waiting}))
        if not fault.hit or at > 400:
            break
        hit.append(fault.hit[0])
        if found:
            wrong[f"{at} {fault.hit[0]}"] = found
    with capsys.disabled():
        print(f"\n{len(hit)} failures {kind}: {', '.join(dict.fromkeys(hit))}")
    assert not wrong, f"{len(wrong)} of {len(hit)}: {wrong}"
    assert len(hit) > 10
