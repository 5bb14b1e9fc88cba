"""The scenarios of the baselines: what a person does at a client, in both modes, and what is then on the wire."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from starlette.types import ASGIApp

from adk_stream_protocol.testing import Answer, ChatClient
from support.live_client import LiveClient, live_socket

HERE = {"latitude": 35.68, "longitude": 139.77, "accuracy": 12, "timestamp": 1_700_000_000_000}
AFTER_ANY_DEADLINE_S = 1_000_000


Mode = Literal["sse", "bidi"]


class LiveChatClient(ChatClient):
    """Sends over a socket what others post."""

    def __init__(self, app: ASGIApp, socket: LiveClient) -> None:
        super().__init__(app, chat_id=socket.chat_id)
        self._socket = socket

    async def post(self, body: Mapping[str, Any] | bytes) -> Answer:
        assert not isinstance(body, bytes)
        request_id = _new_id("request")
        self._socket.send_frame({"type": "send", "requestId": request_id, **body})
        return await self._socket.answer(request_id)

    async def hear(self) -> Answer:
        """What the server tells without being asked."""
        await self._socket.own("turn")
        return await self._socket.resume(requestId=_new_id("request"))


def _new_id(kind: str) -> str:
    """Nothing else in a recording may look like one."""
    return f"{kind}-{uuid4().hex}"


@asynccontextmanager
async def client_of(app: ASGIApp, mode: Mode) -> AsyncGenerator[ChatClient]:
    if mode == "sse":
        yield ChatClient(app)
        return
    async with live_socket(app, headers={"host": "localhost"}, chat_id=_new_id("chat")) as socket:
        yield LiveChatClient(app, socket)


@dataclass
class Person:
    """Somebody at a client, and the clock that their approvals run by."""

    client: ChatClient
    clock: list[float]

    async def approves(self, asked: Answer) -> Answer:
        return await self.client.approve(asked)

    async def answers(self, asked: Answer, *approved: bool, output: Any = None) -> Answer:
        """All calls of a message in one request; with the browser's output where there is one."""
        parts: list[dict[str, Any]] = []
        for part, agreed in zip(asked.approvals, approved, strict=True):
            decided = {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": agreed}}
            parts.append(decided if output is None else {**decided, "state": "output-available", "output": output})
        return await self.client.reply(asked, parts)

    async def waits_too_long(self, asked: Answer) -> Answer:
        """A live session goes on by itself, request mode with the late answer."""
        self.clock[0] += AFTER_ANY_DEADLINE_S
        return await (self.client.hear() if isinstance(self.client, LiveChatClient) else self.approves(asked))


async def weather(person: Person) -> None:
    await person.client.send("What is the weather in Tokyo?")


async def music(person: Person) -> None:
    asked = await person.client.send("Change BGM to track 1")
    await person.client.output(asked, {"success": True, "track": 1, "message": "Now playing track 1."})


async def payment_approved(person: Person) -> None:
    await person.approves(await person.client.send("Send 50 dollars to Hanako"))


async def payment_denied(person: Person) -> None:
    await person.client.deny(await person.client.send("Send 50 dollars to Hanako"), "Too much.")


async def payment_expired(person: Person) -> None:
    await person.waits_too_long(await person.client.send("Send 50 dollars to Hanako"))


async def two_payments_approved(person: Person) -> None:
    await person.approves(await person.client.send("Pay Alice 30 dollars and Bob 40 dollars"))


async def two_payments_mixed(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.answers(asked, True, False)


async def two_payments_approved_one_by_one(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.approves(await person.approves(asked))


async def two_payments_mixed_one_by_one(person: Person) -> None:
    asked = await person.client.send("Pay Alice 30 dollars and Bob 40 dollars")
    await person.client.deny(await person.approves(asked))


async def one_payment_then_another(person: Person) -> None:
    first = await person.client.send("Pay Alice 30 dollars, then Bob 40 dollars")
    await person.approves(await person.approves(first))


async def location_approved(person: Person) -> None:
    freed = await person.approves(await person.client.send("Where am I?"))
    await person.client.output(freed, HERE)


async def location_approved_with_output(person: Person) -> None:
    await person.answers(await person.client.send("Where am I?"), True, output=HERE)


async def location_denied(person: Person) -> None:
    await person.client.deny(await person.client.send("Where am I?"))


@dataclass(frozen=True)
class Scenario:
    play: Callable[[Person], Awaitable[None]]
    sequence: str
    """I: tool-input-start and -available; i: -start and -delta; A: tool-approval-request; O, D, E:
    tool-output-available, -denied, -error; X: a text part; F: finish and [DONE]; ||: the client answers, and the same
    message goes on."""
    live_play: Callable[[Person], Awaitable[None]] | None = None
    """For live mode, where that is not the same: its model makes one call at a time."""
    live_sequence: str | None = None

    def player(self, mode: Mode) -> Callable[[Person], Awaitable[None]]:
        return self.play if mode == "sse" else self.live_play or self.play

    def sequence_in(self, mode: Mode) -> str:
        return self.sequence if mode == "sse" else self.live_sequence or self.sequence


ONE_BY_ONE = "start I1 A1 F || start O1 I2 A2 F || start {}2 X F"

SCENARIOS = {
    "get_weather": Scenario(weather, "start I O X F"),
    "change_bgm": Scenario(music, "start I F || start X F"),
    "process_payment-approved": Scenario(payment_approved, "start I A F || start O X F"),
    "process_payment-denied": Scenario(payment_denied, "start I A F || start D X F"),
    "process_payment-expired": Scenario(
        payment_expired,
        "start I A F || start E X F",
        # A turn that nobody has asked for is read from the beginning of its message.
        live_sequence="start I A F || start i A E X F",
    ),
    "process_payment-two-approved": Scenario(
        two_payments_approved,
        "start I1 I2 A1 A2 F || start O1 O2 X F",
        live_play=two_payments_approved_one_by_one,
        live_sequence=ONE_BY_ONE.format("O"),
    ),
    "process_payment-two-mixed": Scenario(
        two_payments_mixed,
        "start I1 I2 A1 A2 F || start O1 D2 X F",
        live_play=two_payments_mixed_one_by_one,
        live_sequence=ONE_BY_ONE.format("D"),
    ),
    "process_payment-then-approved": Scenario(one_payment_then_another, ONE_BY_ONE.format("O")),
    "get_location-approved": Scenario(location_approved, "start i A F || start I F || start X F"),
    "get_location-pattern-a-approved": Scenario(location_approved_with_output, "start i A F || start X F"),
    "get_location-denied": Scenario(location_denied, "start i A F || start D X F"),
}
