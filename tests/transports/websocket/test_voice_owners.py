"""One microphone for each chat: the first client that opens its own owns the voice, and the others are told so."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from google.adk.tools import FunctionTool  # pyright: ignore[reportUnknownVariableType]

from adk_stream_protocol import Limits
from adk_stream_protocol.testing import LiveSession
from support.live_client import LiveClient
from transports.live_apps import LiveApp, both_forms, live_app, own, ping, sound, speak

pytestmark = pytest.mark.virtual_time

QUIET, LOUD = b"\1\0" * 320, b"\0\x40" * 320
TAKEN = "Another page of this chat has its microphone open. Close it there, then speak here."


class Listening:
    """A model that only listens."""

    def __init__(self) -> None:
        self.heard = b""

    async def __call__(self, session: LiveSession) -> None:
        while (received := await session.expect()).kind != "close":
            if received.blob:
                self.heard += received.blob.data or b""


def listening() -> tuple[Listening, AbstractAsyncContextManager[LiveApp]]:
    model = Listening()
    return model, live_app(model, speaks=True)


def owners(client: LiveClient) -> list[tuple[str, str | None]]:
    return [(frame["id"], frame["owner"]) for frame in own(client, "voice")]


def errors(client: LiveClient) -> list[str]:
    return [frame["code"] for frame in own(client, "error")]


async def start(client: LiveClient, /, **fields: Any) -> None:
    client.tell("voice-start", **fields)
    await ping(client)


# -- who owns it ------------------------------------------------------------------------------------------------------


@both_forms
async def test_only_one_of_two_open_microphones_is_heard(form: str) -> None:
    model, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        for _ in range(50):
            speak(first, QUIET, form=form)
            await ping(first)
            speak(second, LOUD, form=form)
            await ping(second)
        await asyncio.sleep(1)
        assert model.heard == QUIET * 50
        assert errors(first) == []
        assert errors(second) == ["voice-taken"]  # once, and not fifty times a second
        assert own(second, "error")[0]["message"] == TAKEN


async def test_whoever_is_attached_is_told_who_speaks() -> None:
    _, app = listening()
    async with app as live, live.attached() as first, live.attached() as second, live.attached("bob") as bob:
        await start(first, name="Phone")
        async with live.attached() as third:
            await ping(third)
            told = {"type": "voice", "requestId": "-", "id": "chat-1", "owner": "other", "name": "Phone"}
            assert own(second, "voice") == [told]
            assert own(third, "voice") == [told]
        assert owners(first) == [("chat-1", "you")]
        first.tell("voice-end")
        await ping(first)
        await ping(second)
        assert owners(first) == [("chat-1", "you"), ("chat-1", None)]
        assert owners(second) == [("chat-1", "other"), ("chat-1", None)]
        assert own(bob, "voice") == []


async def test_who_opens_a_microphone_that_another_one_owns_is_refused_and_told_who_owns_it() -> None:
    model, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        await start(first, name="Phone")
        await start(second, name="Desk")
        assert errors(second) == ["voice-taken"]
        assert [frame["name"] for frame in own(second, "voice")] == ["Phone", "Phone"]
        speak(second, LOUD)
        second.tell("activity-start")
        second.tell("activity-end")
        await ping(second)
        await asyncio.sleep(1)
        assert errors(second) == ["voice-taken"]
        assert model.heard == b""
        assert [received.kind for received in live.model.sessions[0].received] == []


@pytest.mark.parametrize("asks", ["with voice-start", "by speaking on"])
async def test_an_owner_that_has_been_quiet_for_a_while_gives_way_to_whoever_asks(asks: str) -> None:
    model, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        speak(first, QUIET)
        await ping(first)
        for _ in range(2):  # as long as it speaks, it owns the voice
            await asyncio.sleep(Limits().voice_quiet_s * 0.9)
            speak(first, QUIET)
            await ping(first)
            speak(second, LOUD)
            await ping(second)
        assert errors(second) == ["voice-taken"]
        await asyncio.sleep(Limits().voice_quiet_s + 1)
        assert owners(first)[-1] == ("chat-1", "you")  # nobody has asked
        if asks == "with voice-start":
            await start(second)
        speak(second, LOUD)
        await ping(second)
        await asyncio.sleep(1)
        assert owners(first)[-1] == ("chat-1", "other")
        assert model.heard == QUIET * 3 + LOUD
        speak(first, QUIET)
        await ping(first)
        assert errors(first) == ["voice-taken"]


async def test_anybody_may_interrupt_and_stop() -> None:
    _, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        await start(first)
        second.tell("interrupt")
        await second.own("audio-clear")
        second.tell("stop")
        await ping(second)
        await asyncio.sleep(1)
        assert errors(second) == []
        assert live.runs == 0


def ends_voice(client: LiveClient) -> None:
    client.tell("voice-end")


def detaches(client: LiveClient) -> None:
    client.tell("detach", id="chat-1")


def turns_to_another_chat(client: LiveClient) -> None:
    client.tell("attach", id="chat-2")


def disconnects(client: LiveClient) -> None:
    client.disconnect()


@pytest.mark.parametrize("leave", [ends_voice, detaches, turns_to_another_chat, disconnects])
@pytest.mark.parametrize("is_started", [True, False], ids=["started", "spoke"])
async def test_the_voice_is_free_when_its_owner_ends_it_or_leaves(
    leave: Callable[[LiveClient], None], is_started: bool
) -> None:
    model, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        first.tell("voice-start") if is_started else speak(first, QUIET)
        await ping(first)
        speak(second, LOUD)
        await ping(second)
        leave(first)
        await second.until(lambda: owners(second)[-1] == ("chat-1", None))
        speak(second, LOUD)
        await ping(second)
        await asyncio.sleep(1)
        assert owners(second)[-1] == ("chat-1", "you")
        assert model.heard == (b"" if is_started else QUIET) + LOUD


async def test_a_client_keeps_its_voice_when_it_reconnects_before_its_old_socket_is_noticed_as_dead() -> None:
    model, app = listening()
    async with app as live, live.attached() as dead, live.attached() as other:
        await start(dead, client="a1b2", name="Phone")
        async with live.attached() as again:
            await start(again, client="a1b2", name="Phone")
            assert errors(again) == []
            speak(again, QUIET)
            await start(other, client="c3d4")
            assert errors(other) == ["voice-taken"]
            await asyncio.sleep(1)
            assert model.heard == QUIET
            dead.disconnect()
            await asyncio.sleep(1)
            assert owners(other)[-1] == ("chat-1", "other")
        await other.until(lambda: owners(other)[-1] == ("chat-1", None))


async def test_each_chat_has_a_voice_of_its_own() -> None:
    _, app = listening()
    async with app as live, live.attached() as first, live.attached(chat_id="chat-2") as second:
        await start(first)
        await start(second)
        assert (errors(first), errors(second)) == ([], [])
        assert owners(first) == [("chat-1", "you")]
        assert live.runs == 2


@pytest.mark.parametrize("kind", ["voice-start", "voice-end"])
async def test_a_voice_needs_a_chat(kind: str) -> None:
    async with live_app(speaks=True) as live, live.socket(speaks=True) as client:
        client.tell(kind)
        assert (await client.own("error"))["message"] == "Attach to a chat first: send `attach` with its `id`."
        assert live.runs == 0


@pytest.mark.parametrize(
    "fields", [{"name": "x" * 65}, {"client": "x" * 129}, {"sdkVersion": 4}, {"approvalStyle": "none"}, {"name": 7}]
)
async def test_a_voice_that_is_not_described_rightly_does_not_start(fields: dict[str, Any]) -> None:
    async with live_app(speaks=True) as live, live.attached() as client:
        await start(client, **fields)
        assert errors(client) == ["malformed"]
        assert own(client, "voice") == []
        assert live.runs == 0


async def test_the_end_of_a_voice_that_another_one_owns_changes_nothing() -> None:
    _, app = listening()
    async with app as live, live.attached() as first, live.attached() as second:
        await start(first)
        second.tell("voice-end")
        await ping(second)
        assert owners(second) == [("chat-1", "other")]


# -- how spoken turns are shown ---------------------------------------------------------------------------------------


def pay(amount: int) -> dict[str, int]:
    """Pays."""
    return {"paid": amount}


async def pays(session: LiveSession) -> None:
    while (received := await session.expect()).kind != "close":
        if received.kind == "audio" or received.text == "Pay":
            await session.call("pay", amount=5)
        elif received.asks_for_reply:
            await session.answer("Done.")


@pytest.mark.parametrize(
    ("style", "asks_with"),
    [
        ({"sdkVersion": 5}, "confirmation-tool"),
        ({"approvalStyle": "confirmation-tool"}, "confirmation-tool"),
        ({"sdkVersion": 6}, "approval"),
        ({}, "approval"),
    ],
)
@pytest.mark.parametrize("is_running", [False, True], ids=["opened by the voice", "opened before"])
async def test_a_spoken_turn_is_shown_as_its_client_wants_it(
    style: dict[str, Any], asks_with: str, is_running: bool
) -> None:
    tools = (FunctionTool(pay, require_confirmation=True),)
    async with live_app(pays, family="3", speaks=True, tools=tools) as live, live.attached() as client:
        if is_running:
            await client.say("Hello", body={"sdkVersion": 7})
        client.tell("voice-start", **style)
        speak(client, sound(20))
        await client.own("turn")
        asked = await client.resume()
        tools_shown = {chunk["toolName"] for chunk in asked.of_type("tool-input-available")}
        is_tool = "adk_request_confirmation" in tools_shown
        assert ("confirmation-tool" if is_tool else "approval") == asks_with
        assert bool(asked.of_type("tool-approval-request")) is not is_tool


async def test_speech_behind_a_written_message_is_shown_as_that_message_was() -> None:
    tools = (FunctionTool(pay, require_confirmation=True),)
    async with live_app(pays, family="3", speaks=True, tools=tools) as live, live.attached() as client:
        await client.say("Hello", body={"sdkVersion": 5})
        speak(client, sound(20))
        await client.own("turn")
        asked = await client.resume()
        assert asked.of_type("tool-approval-request") == []
