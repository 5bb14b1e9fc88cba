"""An answer to a busy chat is heard at once, told so while it waits, and never refused because the chat is busy."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adk_stream_protocol import Limits, client_tool
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import State
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import call
from support.asgi import Exchange, exchange
from support.pages import Page, Slow, Till
from support.workers import CHAT, Workers, answer_body, outputs, words_body, workers

pytestmark = pytest.mark.virtual_time

PAY = [call("pay", amount=5)]
NOTHING_RUN = "nothing was run"


class Counting(MemoryStore):
    """Counts how often it is asked for what."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked = Counter[str]()
        self.fails: str | None = None

    async def acquire(self, *args: Any, **options: Any) -> Any:
        self.asked["acquire"] += 1
        if self.fails == "before":
            raise StoreUnavailable
        acquired = await super().acquire(*args, **options)
        if self.fails == "after":
            raise StoreUnavailable
        return acquired


class Reading:
    """A request on its way, as far as its client has read."""

    def __init__(self, at: Page, body: dict[str, Any]) -> None:
        self.read = b""
        self._task = asyncio.create_task(exchange(at.chat.app, body=json.dumps(body).encode(), on_send=self._take))

    def _take(self, piece: bytes) -> None:
        self.read += piece

    @property
    def is_done(self) -> bool:
        return self._task.done()

    async def whole(self) -> Exchange:
        return await self._task


def chunks_of(answer: Exchange) -> list[dict[str, Any]]:
    lines = answer.body.decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


class Thinker(Slow):
    async def think(self) -> dict[str, Any]:
        """Takes its time."""
        return await self.pay(0)


@asynccontextmanager
async def busy_chat(*, elsewhere: bool = False, **options: Any) -> AsyncGenerator[tuple[Workers, Page, Till, Any]]:
    """A payment waits for its person, while the chat does something else: here, or on another worker. What is called
    last lets it be free."""
    till, thinker = Till(), Thinker()
    async with workers(
        PAY, [call("think")], "Thought.", "Paid.", tools=(till.gated, thinker.think), store=Counting, **options
    ) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        lease = None
        other: asyncio.Task[Any] | None = None
        if elsewhere:
            lease, _ = await staff.store.acquire(CHAT, 10_000)
            assert lease is not None
            staff.model._script[1:3] = []  # pyright: ignore
        else:
            other = asyncio.create_task(at.chat.post(words_body("Think.")))
            await thinker.started.wait()

        async def set_free() -> None:
            if lease is not None:
                await staff.store.release(lease)
            thinker.go_on.set()
            if other is not None:
                await other

        yield staff, at, till, set_free
        await set_free()


anywhere = pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "on another worker"])


# -- while the chat is busy -------------------------------------------------------------------------------------------


@anywhere
async def test_an_answer_to_a_busy_chat_gets_headers_and_a_ping_at_once(elsewhere: bool) -> None:
    async with busy_chat(elsewhere=elsewhere) as (_, at, _, set_free):
        reading = Reading(at, answer_body(at))
        await asyncio.sleep(0.01)
        assert reading.read.startswith(b":")
        assert b"data:" not in reading.read
        await set_free()
        assert (await reading.whole()).status == 200


@anywhere
async def test_an_answer_to_a_busy_chat_is_pinged_as_long_as_it_waits(elsewhere: bool) -> None:
    async with busy_chat(elsewhere=elsewhere) as (_, at, _, set_free):
        reading = Reading(at, answer_body(at))
        await asyncio.sleep(100)
        assert reading.read.count(b":") >= 4  # proxies cut after a minute of silence
        assert not reading.is_done
        await set_free()
        await reading.whole()


@anywhere
async def test_an_answer_to_a_busy_chat_gets_its_segment_when_the_chat_is_free(elsewhere: bool) -> None:
    async with busy_chat(elsewhere=elsewhere) as (_, at, till, set_free):
        reading = Reading(at, answer_body(at))
        await asyncio.sleep(5)
        assert till.paid == []
        await set_free()
        chunks = chunks_of(await reading.whole())
        assert [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"] == [{"paid": 5}]
        assert chunks[0]["messageId"] == at.messages[-1]["id"]
        assert chunks[-1]["type"] == "finish"
        assert till.paid == [5]


@anywhere
async def test_the_decision_is_recorded_while_the_answer_waits(elsewhere: bool) -> None:
    async with busy_chat(elsewhere=elsewhere) as (staff, at, _, set_free):
        reading = Reading(at, answer_body(at))
        await asyncio.sleep(0.01)
        assert await staff.states() == [State.APPROVED]
        await set_free()
        await reading.whole()


async def test_an_answer_that_waits_longer_than_any_run_is_not_refused() -> None:
    async with busy_chat(elsewhere=True, limits=Limits(max_run_s=2)) as (staff, at, _, _):
        answer = await at.chat.post(answer_body(at))
        assert (answer.status, answer.types) == (200, ["start", "error"])
        assert NOTHING_RUN not in answer.raw
        assert "recorded" in answer.chunks[-1]["errorText"]
        assert await staff.states() == [State.APPROVED]


async def test_a_client_that_leaves_while_it_waits_has_answered_all_the_same() -> None:
    async with busy_chat() as (staff, at, till, set_free):
        body = json.dumps(answer_body(at)).encode()
        left = await exchange(at.chat.app, body=body, leave_after=lambda _: True)
        assert left.status == 200
        await set_free()
        await asyncio.sleep(1)
        assert till.paid == [5]
        assert await staff.states() == [State.DONE]


# -- many of them -----------------------------------------------------------------------------------------------------


@anywhere
async def test_however_many_answers_wait_the_store_is_asked_by_one(elsewhere: bool) -> None:
    limits = Limits(max_waiting_answers_per_user=100, max_readers_per_run=100)
    async with busy_chat(elsewhere=elsewhere, limits=limits) as (staff, at, till, set_free):
        waiting = [asyncio.create_task(at.chat.post(answer_body(at))) for _ in range(100)]
        await asyncio.sleep(5)
        staff.store.asked.clear()  # pyright: ignore
        await asyncio.sleep(60)
        assert staff.store.asked["acquire"] <= (65 if elsewhere else 0)  # pyright: ignore
        await set_free()
        answers = await asyncio.gather(*waiting)
        assert {answer.status for answer in answers} == {200}
        assert all(outputs(answer) == [{"paid": 5}] for answer in answers)
        assert till.paid == [5]


class CountingLoop:
    """Counts the timers that anybody sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timers = 0
        loop = asyncio.get_running_loop()
        set_timer = loop.call_at

        def call_at(*args: Any, **options: Any) -> Any:
            self.timers += 1
            return set_timer(*args, **options)

        monkeypatch.setattr(loop, "call_at", call_at)


async def test_answers_that_wait_in_one_process_do_nothing_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async with busy_chat() as (_, at, _, set_free):
        waiting = [asyncio.create_task(at.chat.post(answer_body(at))) for _ in range(100)]
        await asyncio.sleep(5)
        counted = CountingLoop(monkeypatch)
        await asyncio.sleep(60)
        assert counted.timers <= 100 * 5  # their pings
        await set_free()
        await asyncio.gather(*waiting)


# -- refusals ---------------------------------------------------------------------------------------------------------


@anywhere
async def test_an_answer_that_is_for_nothing_is_refused_before_the_headers(elsewhere: bool) -> None:
    async with busy_chat(elsewhere=elsewhere) as (staff, at, _, _):
        body = answer_body(at)
        (part,) = [part for part in body["messages"][-1]["parts"] if "toolCallId" in part]
        part["approval"]["id"] = "no-such"
        part["toolCallId"] = "no-such"
        assert (await at.chat.post(body)).status == 404
        assert await staff.states() == [State.PENDING]


@pytest.mark.parametrize(("output", "status"), [("x" * 2000, 413), ({"wrong": 1}, 422)])
async def test_an_output_that_cannot_be_taken_is_refused_before_the_headers(output: Any, status: int) -> None:
    thinker = Thinker()

    def place() -> int:  # pyright: ignore[reportReturnType]
        """Runs in the browser."""

    tools = (client_tool(place), thinker.think)
    async with workers(
        [call("place")], [call("think")], "Thought.", tools=tools, limits=Limits(max_output_bytes=1000)
    ) as staff:
        at = staff.page()
        await at.say("Where?")
        other = asyncio.create_task(at.chat.post(words_body("Think.")))
        await thinker.started.wait()
        at.output("place", output)
        refused = await exchange(at.chat.app, body=json.dumps(answer_body(at)).encode())
        assert refused.status == status
        assert refused.headers["content-type"] == "application/json"
        thinker.go_on.set()
        await other


# -- the store fails --------------------------------------------------------------------------------------------------


async def test_a_decision_that_is_recorded_while_the_chat_is_busy_is_not_told_that_nothing_was_run() -> None:
    async with busy_chat() as (staff, at, _, set_free):
        reading = asyncio.create_task(at.chat.post(answer_body(at)))
        await asyncio.sleep(1)
        staff.store.fails = "before"  # pyright: ignore
        await set_free()
        answer = await reading
        assert answer.status == 200
        assert NOTHING_RUN not in answer.raw
        assert answer.chunks[-1]["type"] == "error"
        assert await staff.states() == [State.APPROVED]
        staff.store.fails = None  # pyright: ignore


async def test_a_decision_that_is_recorded_is_taken_up_when_the_store_is_back() -> None:
    async with busy_chat() as (staff, at, till, set_free):
        reading = asyncio.create_task(at.chat.post(answer_body(at)))
        await asyncio.sleep(1)
        staff.store.fails = "before"  # pyright: ignore
        await set_free()
        await reading
        staff.store.fails = None  # pyright: ignore
        await staff.recover(at)
        assert till.paid == [5]


@anywhere
async def test_one_answer_too_many_is_told_to_come_again_and_is_not_recorded(elsewhere: bool) -> None:
    limits = Limits(max_waiting_answers_per_user=1)
    async with busy_chat(elsewhere=elsewhere, limits=limits) as (_, at, till, set_free):
        forged = {**answer_body(at), "id": "somewhere-else"}
        first = asyncio.create_task(at.chat.post(forged))  # refused ones take no place for long
        assert (await first).status == 404
        waiting = Reading(at, answer_body(at))
        await asyncio.sleep(1)
        refused = await exchange(at.chat.app, body=json.dumps(answer_body(at)).encode())
        assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "too-many")
        assert refused.headers["retry-after"] == "5"
        other = await exchange(at.chat.app, body=json.dumps(answer_body(at)).encode(), headers={"x-user": "bob"})
        assert other.status == 404  # of somebody else's calls, but not too many
        await set_free()
        assert (await waiting.whole()).status == 200
        again = await at.chat.post(answer_body(at))
        assert (again.status, outputs(again)) == (200, [{"paid": 5}])
        assert till.paid == [5]


async def test_an_answer_that_is_refused_for_its_number_can_be_sent_again() -> None:
    """It is neither recorded nor lost."""
    till, thinker = Till(), Thinker()
    async with workers(
        PAY,
        [call("think")],
        "Thought.",
        "Paid.",
        tools=(till.gated, thinker.think),
        limits=Limits(max_runs_per_user=1),
    ) as staff:
        at = staff.page()
        await at.say("Pay.")
        at.decide("pay")
        other = asyncio.create_task(at.chat.of(chat_id="c2").say("Think."))
        await thinker.started.wait()
        refused = await exchange(at.chat.app, body=json.dumps(answer_body(at)).encode())
        assert (refused.status, json.loads(refused.body)["error"]["code"]) == (429, "too-many")
        assert await staff.states() == [State.PENDING]
        thinker.go_on.set()
        await other
        assert outputs(await at.chat.post(answer_body(at))) == [{"paid": 5}]
        assert till.paid == [5]
