"""A turn reads what it needs of a chat's calls: the outputs of all earlier ones stay where they are."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.store.base import STORE_CONTRACT_VERSION, Store
from adk_stream_protocol.testing import Answer, call
from store.stores import EVERYWHERE
from support.pages import Page, page

LARGE = {"png": "A" * 50_000}
TURNS = 6


def shot() -> None:
    """Runs in the browser."""


class Weighed:
    """Counts the bytes that a store gives to the bridge."""

    contract_version = STORE_CONTRACT_VERSION

    def __init__(self, store: Store) -> None:
        self.read_bytes = 0
        self._store = store

    def for_another_loop(self) -> Store:
        """What renews leases is not counted."""
        return self._store.for_another_loop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        async def weighed(*args: Any, **options: Any) -> Any:
            given = await method(*args, **options)
            pairs = list(given.items()) if isinstance(given, dict) else given
            self.read_bytes += len(msgspec.json.encode(pairs))
            return given

        return weighed


async def a_turn_with_output(at: Page, number: int) -> None:
    await at.say("Look.")
    at.output("shot", {**LARGE, "number": number}, number)
    await at.answer()


async def sent_again(at: Page) -> Answer:
    """The newest answer as the page has it, past the page's own eyes."""
    return await at.chat.post({"id": "c1", "messages": at.messages, "messageId": at.messages[-1]["id"]})


async def bytes_per_turn(store: Store) -> list[int]:
    weighed = Weighed(store)
    replies = [reply for _ in range(TURNS) for reply in ([call("shot")], "Seen.")]
    figures: list[int] = []
    async with page(*replies, tools=(client_tool(shot),), record=weighed) as at:
        for number in range(TURNS):
            weighed.read_bytes = 0
            await a_turn_with_output(at, number)
            figures.append(weighed.read_bytes)
        await at.is_what_a_reload_shows()
    return figures


@pytest.mark.parametrize("kind", EVERYWHERE)
async def test_what_a_turn_reads_does_not_grow_with_the_outputs_before_it(kind: str) -> None:
    with EVERYWHERE[kind]() as stores:
        async with stores.open() as store:
            figures = await bytes_per_turn(store)
    assert figures[-1] < figures[0] + 10_000, figures


async def test_an_output_that_is_sent_again_is_known_again_and_another_one_is_refused() -> None:
    replies = [reply for _ in range(2) for reply in ([call("shot")], "Seen.")]
    async with page(*replies, tools=(client_tool(shot),)) as at:
        await a_turn_with_output(at, 0)
        again = await sent_again(at)
        assert (again.status, again.of_type("tool-output-available")[0]["output"]) == (200, {**LARGE, "number": 0})
        at.part("shot")["output"] = {"png": "another"}
        assert (await sent_again(at)).status == 404


async def test_a_message_with_an_earlier_output_goes_on_as_it_was_seen() -> None:
    """The next segment of a message is told to new readers from its beginning."""
    replies = [[call("shot")], [call("shot")], "Both."]
    async with page(*replies, tools=(client_tool(shot),)) as at:
        await at.say("Look twice.")
        at.output("shot", 1, 0)  # no object: the session wraps it
        await at.answer()
        at.output("shot", [2], 1)
        assert (await at.answer()).text == "Both."
        await at.is_what_a_reload_shows()
        again = await sent_again(at)
        assert [chunk["output"] for chunk in again.of_type("tool-output-available")] == [1, [2]]
        assert [part["output"] for part in at.parts("shot")] == [1, [2]]


async def test_an_output_whose_delivery_was_taken_back_is_told_to_the_model_again() -> None:
    replies = [[call("shot")], "Well?", "Seen.", "Anew.", "On."]
    async with page(*replies, tools=(client_tool(shot),)) as at:
        await at.say("Look.")
        await at.say("Are you there?")
        at.output("shot", {"n": 1}, 0)
        await at.answer(0)
        user_messages = [message["id"] for message in at.messages if message["role"] == "user"]
        assert (await at.chat.edit(user_messages[1], "Hello?")).status == 200
        shown = [part for message in await at.chat.messages() for part in message["parts"] if "toolCallId" in part]
        assert [part.get("output") for part in shown] == [{"n": 1}]
