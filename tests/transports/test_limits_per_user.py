"""What one user may have at once: readers of a run, runs, and bytes of requests that are not decoded yet."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from google.adk.tools import FunctionTool
from starlette.types import ASGIApp, Message

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.testing import call
from support.apps import app_of, bridge_with, model_of, runner_of
from support.asgi import Exchange, exchange
from transports.live_apps import live_app, resume, said, talks_for_ever
from transports.test_http import turn_body

KIB = 1024


def code_of(answer: Exchange) -> tuple[int, str, str | None]:
    return answer.status, json.loads(answer.body)["error"]["code"], answer.headers.get("retry-after")


TOO_MANY = (429, "too-many", "5")


class Slow:
    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()

    async def work(self) -> dict[str, str]:
        """Takes its time."""
        self.started.set()
        await self.go_on.wait()
        return {}


@dataclass
class Running:
    """A bridge with one chat that is answering."""

    bridge: ChatBridge
    app: ASGIApp
    slow: Slow
    first: asyncio.Task[Exchange]
    body: bytes

    def read(self) -> asyncio.Task[Exchange]:
        return asyncio.create_task(exchange(self.app, method="GET", path="/api/chat/c1/stream"))

    async def until_read_by(self, count: int) -> None:
        log = self.bridge._service.running("ann", "c1")
        assert log is not None
        while len(log._wakers) != count:  # pyright: ignore
            await asyncio.sleep(0)


@asynccontextmanager
async def answering(*replies: Any, tools: tuple[Any, ...] = (), **limits: Any) -> AsyncGenerator[Running]:
    slow = Slow()
    bridge = bridge_with([call("work")], "Done.", *replies, tools=(slow.work, *tools), limits=Limits(**limits))
    app, body = app_of(bridge), turn_body()
    first = asyncio.create_task(exchange(app, body=body))
    await slow.started.wait()
    yield Running(bridge, app, slow, first, body)
    slow.go_on.set()
    assert b"Done." in (await first).body


# -- readers ----------------------------------------------------------------------------------------------------------


async def test_one_reader_too_many_is_refused_before_the_stream() -> None:
    async with answering(max_readers_per_run=2) as running:
        second = running.read()
        await running.until_read_by(2)
        assert code_of(await running.read()) == TOO_MANY
        assert code_of(await exchange(running.app, body=running.body)) == TOO_MANY  # the same message again
        second.cancel()
        await running.until_read_by(1)
        third = running.read()
        await running.until_read_by(2)
        running.slow.go_on.set()
        assert b"Done." in (await third).body


async def test_a_replay_gives_way_to_others_piece_by_piece() -> None:
    """A server with room for all of it takes it without a pause."""
    async with answering(max_send_bytes=1000) as running:
        log = running.bridge._service.running("ann", "c1")
        assert log is not None
        log.append([b'{"type":"text-delta","id":"t","delta":"word"}'] * 10_000)
        turns, pieces = 0, 0

        def count(_: bytes) -> None:
            nonlocal pieces
            pieces += 1
            assert pieces <= turns + 2

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(others())
        path = "/api/chat/c1/stream"
        for headers in ({}, {"last-event-id": f"{log.segment}-0"}):
            turns = pieces = 0
            reading = asyncio.create_task(
                exchange(running.app, method="GET", path=path, headers=headers, on_send=count)
            )
            while pieces < 10_000 * 45 // 1100 and not reading.done():
                await asyncio.sleep(0)
            assert not reading.done()
            reading.cancel()
        other.cancel()


async def test_an_answer_that_finds_too_many_readers_is_recorded_and_its_stream_says_so() -> None:
    paid: list[int] = []
    slow = Slow()

    async def pay(amount: int) -> dict[str, int]:
        """Pays."""
        await slow.work()
        paid.append(amount)
        return {"paid": amount}

    bridge = bridge_with(
        [call("pay", amount=1)],
        "Paid.",
        tools=(FunctionTool(pay, require_confirmation=True),),
        limits=Limits(max_readers_per_run=1),
    )
    app = app_of(bridge)
    lines = (await exchange(app, body=turn_body())).body.decode().split("\n")
    got = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    asked = next(chunk for chunk in got if chunk["type"] == "tool-approval-request")
    part = {
        "type": "tool-pay",
        "toolCallId": asked["toolCallId"],
        "state": "approval-responded",
        "input": {"amount": 1},
        "approval": {"id": asked["approvalId"], "approved": True},
    }
    message = {"id": got[0]["messageId"], "role": "assistant", "parts": [part]}
    body = json.dumps({"id": "c1", "messages": [message]}).encode()
    first = asyncio.create_task(exchange(app, body=body))
    await slow.started.wait()
    second = await exchange(app, body=body)
    assert second.status == 200
    assert b'"type":"error","errorText":"This answer is read in too many places' in second.body
    assert second.body.endswith(b"data: [DONE]\n\n")
    slow.go_on.set()
    assert b"Paid." in (await first).body
    assert paid == [1]


@pytest.mark.virtual_time
async def test_one_reader_too_many_on_a_socket_gets_an_error_frame() -> None:
    limits = Limits(max_readers_per_run=1, live_grace_s=1)
    async with live_app(talks_for_ever, limits=limits) as live, live.socket() as client:
        request_id = client.start_send(said("Hello"))
        await client.until(lambda: client.frames.get(request_id))
        for name in ("other", request_id):
            async with live.socket() as other:
                (refused,) = await resume(other, name)
                assert (refused["type"], refused["code"]) == ("error", "too-many")


# -- runs -------------------------------------------------------------------------------------------------------------


async def test_one_run_too_many_leaves_no_trace_and_may_come_when_another_has_ended() -> None:
    async with answering("Hello.", "Hello again.", max_runs_per_user=1) as running:
        refused = await exchange(running.app, body=turn_body(chat_id="c2"))
        assert code_of(refused) == TOO_MANY
        runner = runner_of(running.bridge)
        listed = await runner.session_service.list_sessions(app_name=runner.app_name)
        assert [session.id for session in listed.sessions] == ["c1"]
        running.slow.go_on.set()
        await running.first
        while running.bridge._service.running("ann", "c1"):
            await asyncio.sleep(0)
        assert b"Hello." in (await exchange(running.app, body=turn_body(chat_id="c2"))).body
        assert len(model_of(running.bridge).requests) == 3


async def test_runs_are_counted_by_their_users() -> None:
    slow = Slow()
    bridge = bridge_with([call("work")], "Hello.", "Done.", tools=(slow.work,), limits=Limits(max_runs_per_user=1))
    app = app_of(bridge)
    first = asyncio.create_task(exchange(app, body=turn_body()))
    await slow.started.wait()
    assert b"Hello." in (await exchange(app, body=turn_body(), headers={"x-user": "bob"})).body
    slow.go_on.set()
    assert b"Done." in (await first).body


@pytest.mark.virtual_time
async def test_a_live_session_is_a_run() -> None:
    limits = Limits(max_runs_per_user=1, live_grace_s=1)
    async with live_app(talks_for_ever, limits=limits) as live, live.socket() as client:
        request_id = client.start_send(said("Hello"))
        await client.until(lambda: client.frames.get(request_id))
        second = client.start_send(said("And here"), id="chat-2")
        await client.until(lambda: client.frames.get(second))
        (refused,) = client.frames[second]
        assert (refused["type"], refused["code"]) == ("error", "too-many")
        answer = await exchange(live.app, body=turn_body(chat_id="chat-3"))
        assert code_of(answer) == TOO_MANY


# -- bytes ------------------------------------------------------------------------------------------------------------


class Upload:
    """A request that arrives as the test lets it."""

    def __init__(self, app: ASGIApp, user: str = "ann") -> None:
        self.taken = 0
        self._pieces: asyncio.Queue[Message] = asyncio.Queue()
        self.answer: asyncio.Task[Exchange] = asyncio.create_task(self._post(app, user))

    async def _post(self, app: ASGIApp, user: str) -> Exchange:
        return await exchange(_receiving(app, self._receive), headers={"x-user": user})

    async def _receive(self) -> Message:
        message = await self._pieces.get()
        self.taken += len(message.get("body", b""))
        return message

    async def send(self, data: bytes, *, more: bool = True) -> None:
        self._pieces.put_nowait({"type": "http.request", "body": data, "more_body": more})
        while not self._pieces.empty() and not self.answer.done():
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)

    def leave(self) -> None:
        self._pieces.put_nowait({"type": "http.disconnect"})


def _receiving(app: ASGIApp, receive: Callable[[], Awaitable[Message]]) -> ASGIApp:
    async def given(scope: Any, _: Any, send: Any) -> None:
        await app(scope, receive, send)

    return given


HEAD = b'{"id": "c1", "x": "'


@pytest.mark.virtual_time
async def test_a_request_that_does_not_arrive_in_time_is_refused_and_its_connection_closed() -> None:
    bridge = bridge_with(limits=Limits(body_timeout_s=10))
    upload = Upload(app_of(bridge))
    await upload.send(HEAD)
    for _ in range(9):  # it is not a silence that counts
        await asyncio.sleep(1)
        await upload.send(b"x")
    assert not upload.answer.done()
    answer = await upload.answer
    assert code_of(answer) == (408, "too-slow", None)
    assert answer.headers["connection"] == "close"


async def test_unfinished_requests_of_one_user_are_bounded_until_they_are_decoded_or_gone() -> None:
    bridge = bridge_with("One.", "Two.", limits=Limits(max_unfinished_bytes_per_user=100 * KIB))
    app = app_of(bridge)
    first, second = Upload(app), Upload(app)
    await first.send(HEAD + b"x" * 60 * KIB)
    await second.send(HEAD + b"x" * 30 * KIB)
    other = Upload(app, "bob")
    await other.send(HEAD + b"x" * 60 * KIB)
    await second.send(b"x" * 20 * KIB)
    assert code_of(await second.answer) == TOO_MANY
    assert not first.answer.done()
    first.leave()
    assert (await first.answer).status == 400
    assert not other.answer.done()
    third = Upload(app)
    await third.send(turn_body("x" * 90 * KIB), more=False)
    assert b"One." in (await third.answer).body
    fourth = Upload(app)
    await fourth.send(turn_body("x" * 90 * KIB), more=False)
    assert b"Two." in (await fourth.answer).body
    other.leave()
    await other.answer
    assert not bridge._surface.unfinished._of_users  # pyright: ignore
    assert bridge._surface.unfinished._of_all == 0  # pyright: ignore


async def test_unfinished_requests_of_all_are_bounded_and_words_get_through() -> None:
    bridge = bridge_with("Hello.", limits=Limits(max_unfinished_bytes=100 * KIB))
    app = app_of(bridge)
    uploads = [Upload(app, f"user-{number}") for number in range(3)]
    for upload in uploads[:2]:
        await upload.send(HEAD + b"x" * 100 * KIB)
    await uploads[2].send(HEAD + b"x" * 100 * KIB)
    assert code_of(await uploads[2].answer) == (503, "busy", "5")
    assert b"Hello." in (await exchange(app, body=turn_body())).body
    for upload in uploads[:2]:
        assert not upload.answer.done()
        upload.leave()
        await upload.answer
    assert bridge._surface.unfinished._of_all == 0  # pyright: ignore


@pytest.mark.parametrize("length", [100, 100_000])
async def test_a_cursor_of_any_length_is_only_a_cursor(length: int) -> None:
    async with answering() as running:
        headers = {"last-event-id": "9" * length}
        read = asyncio.create_task(exchange(running.app, method="GET", path="/api/chat/c1/stream", headers=headers))
        await running.until_read_by(2)
        running.slow.go_on.set()
        assert b'"type":"start"' in (await read).body
