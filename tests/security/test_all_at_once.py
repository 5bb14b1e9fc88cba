"""Whatever a person's tabs ask for at once - approve, deny, go on, take back, stop, delete - in whatever order it comes
to the store: nothing runs unapproved or twice, nobody meets a failure of the server's, and nothing stays behind."""

import asyncio
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest

from adk_stream_protocol.protocol.call_record import TABLE, State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from faults.tabs import chunks_of
from security.bank import Asked, Bank, approval_of, output_of
from support.apps import figure
from support.asgi import Exchange, exchange
from support.evidence import ClientStream, look
from support.truth import disagreements

SCHEDULES = 500

ANSWERS = ("approve", "approve one", "deny", "output")
OTHERS = ("say", "regenerate", "stop", "delete", "read", "resume")


class UnsteadyStore(MemoryStore):
    """Takes its time, never the same."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def unsteady(*args: Any, **options: Any) -> Any:
            await some_turns(self._random, 6)
            result = await found(*args, **options)
            await some_turns(self._random, 6)
            return result

        return unsteady


async def some_turns(random: Random, most: int) -> None:
    """Of the event loop."""
    for _ in range(random.randint(0, most)):
        await asyncio.sleep(0)


def reply(request: LlmRequest) -> Any:
    if any(part.function_response for part in request.contents[-1].parts or ()):
        return "Done."
    return [call("pay", amount=1, to="Hanako"), call("pay", amount=2, to="Taro"), call("play", track=1)]


async def act(asked: Asked, action: str, random: Random) -> Exchange:
    bank, parts = asked.bank, asked.answer.approvals
    match action:
        case "approve":
            return await bank.post(asked.body(*map(approval_of, parts)))
        case "approve one":
            return await bank.post(asked.body(approval_of(random.choice(parts))))
        case "deny":
            return await bank.post(asked.body(*(approval_of(part, approved=False) for part in parts)))
        case "output":
            return await bank.post(asked.body(output_of(asked.browser_part, {"plays": 1})))
        case "say" | "regenerate":
            message = {"id": "m-2", "role": "user", "parts": [{"type": "text", "text": "And now?"}]}
            again = {"trigger": "regenerate-message", "messageId": asked.message_id} if action == "regenerate" else {}
            return await bank.post({"id": asked.chat_id, "messages": [message], **again})
        case _:
            method, path = {
                "stop": ("POST", "/stop"),
                "delete": ("DELETE", ""),
                "read": ("GET", "/messages"),
                "resume": ("GET", "/stream"),
            }[action]
            return await exchange(bank.app, method=method, path=f"/api/chat/{asked.chat_id}{path}")


async def check(asked: Asked, done: list[tuple[str, Exchange]]) -> None:
    bank = asked.bank
    for action, answer in done:
        assert answer.status < 500, (action, answer.body)
        assert answer.status != 409 or action in ("say", "regenerate"), action
        if answer.status == 200 and action in ANSWERS:
            assert answer.body.endswith(b"data: [DONE]\n\n")
    trail = await bank.store.audit(asked.chat)
    for found in {entry.call for entry in trail}:
        moves = pairwise(State(entry.state) for entry in trail if entry.call == found)
        assert set(moves) <= {(before, after) for (before, _), after in TABLE.items()}
    assert bank.bridge._service.running("ann", asked.chat_id) is None
    actions = {action for action, _ in done}
    if not actions & {"say", "regenerate"} and any(a == "delete" and e.status == 204 for a, e in done):
        assert (await bank.store.read(asked.chat)).records == []
        assert (await bank.sessions.list_sessions(app_name="bank", user_id="ann")).sessions == []
    streams = [streamed(action, answer) for action, answer in done]
    known: dict[str, Any] = {"runs": bank.log.runs(), "streams": streams, "browser_tools": frozenset({"play"})}
    world = await look(bank.app, bank.store, bank.sessions, asked.chat, is_settled=False, **known)
    assert disagreements(world) == []
    last_words = {"id": "m-3", "role": "user", "parts": [{"type": "text", "text": "Bye."}]}
    assert (await bank.post({"id": asked.chat_id, "messages": [last_words]})).status == 200, "a lease stays behind"


def streamed(action: str, answer: Exchange) -> ClientStream:
    is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
    chunks = chunks_of(answer.body) if is_stream else []
    return ClientStream(request=action, status=answer.status, chunks=chunks)


@pytest.mark.figures
def test_requests_of_all_kinds_at_once_do_no_harm() -> None:
    async def scenario(seed: int) -> None:
        random = Random(seed)
        bank = Bank(*[reply] * 20, store=UnsteadyStore(random))
        asked = await bank.asks()

        async def soon(action: str) -> Exchange:
            await some_turns(random, 60)
            return await act(asked, action, random)

        actions = [random.choice(ANSWERS), *(random.choice(ANSWERS + OTHERS) for _ in range(random.randint(1, 5)))]
        answers = await asyncio.gather(*map(soon, actions))
        try:
            await check(asked, list(zip(actions, answers, strict=True)))
        except AssertionError as error:
            raise AssertionError(f"{actions} with seed {seed}") from error

    for seed in range(figure(SCHEDULES)):
        asyncio.run(scenario(seed))
