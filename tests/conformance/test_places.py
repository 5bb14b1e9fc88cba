"""The table of places: wherever a gated tool is called from, it waits, runs once if it is approved, and everybody is
told what became of it. Stock clients answer; the server is a process that can be killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.protocol.call_record import ChatKey
from conformance import places_server
from conformance.node import NodeDriver
from conformance.pages import IDLE, RESUME, WITH_APPROVALS, Conversation, Transport, approve, deny, say
from conformance.places import PLACES, SETTLE, WORKER, Kit, Mode
from conformance.places_server import APP, sessions_in, store_in
from conformance.remote_till import RemoteTill, remote_till
from faults.workers.servers import Server
from support.evidence import ClientStream, World, look_into
from support.tool_log import ToolRun
from support.truth import disagreements

Outcome = Literal["approve", "deny", "late", "reload", "crash"]
MODES: tuple[Mode, ...] = ("request", "live")

NESTED = {"AgentTool", "nested AgentTool", "workflow node"}
"""ADK cannot come back to these after a crash: the call is refused, and everybody is told."""
WITHOUT_LIVE_MODE = {"parallel", "loop"}
"""ADK's own `run_live` of these raises."""

NO_LIVE_AGENT = "This agent cannot work in a live session. Write to it without a live session."

DEADLINE_S = 600
LEASE_S = 10
_amounts = itertools.count(1)


# -- one cell ---------------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    """One chat with a server of its own."""

    node: NodeDriver
    till: RemoteTill
    folder: Path
    place: str
    mode: Mode
    release: str

    def __post_init__(self) -> None:
        self.amount = next(_amounts)
        self.family: Literal["2.5", "3"] = "3" if self.release.startswith("7") else "2.5"
        self.move_clock(1_000_000)
        given = {"amount": self.amount, "remote": self.till.origin, "mode": self.mode, "family": self.family}
        self.server = Server({"place": self.place, "folder": str(self.folder), **given}, script=places_server.__file__)
        self.chat = Conversation(self.node, self.release, f"http://{self.server.address}", transport=self._transport)

    @property
    def kit(self) -> Kit:
        return Kit(self.folder, self.amount, self.till.origin, self.mode, self.family)

    @property
    def _transport(self) -> Transport:
        if self.mode == "request":
            return "http"
        return "official" if self.release == "7" else "ours"

    def move_clock(self, seconds: float) -> None:
        clock = self.folder / "clock"
        clock.write_text(str(float(clock.read_text()) + seconds if clock.exists() else seconds))

    def start(self) -> None:
        asyncio.run(self.server.start())

    def kill(self) -> None:
        asyncio.run(self.server.kill())

    def fall(self) -> None:
        """The process is killed, and another one comes when everybody knows."""
        self.kill()
        self.move_clock(LEASE_S + 1)
        self.start()

    def page(self, *steps: Any, **options: Any) -> None:
        self.chat.open_page(*steps, goes_on=True, **options)

    # -- what is known of it ------------------------------------------------------------------------------------------

    def asked(self, agent: str = WORKER) -> list[LlmRequest]:
        """What the model of this agent has read, from all processes."""
        file = self.folder / "asked"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        contents = [line["contents"] for line in lines if line["agent"] == agent]
        return [LlmRequest(contents=[types.Content.model_validate(each) for each in one]) for one in contents]

    def told(self, agent: str = WORKER, tool: str = "pay") -> list[Any]:
        """The results of this tool that the agent's model knew last."""
        last = self.asked(agent)[-1:]
        parts = [part for request in last for content in request.contents for part in content.parts or ()]
        results = [part.function_response for part in parts if part.function_response is not None]
        return [result.response for result in results if result.name == tool]

    def world(self) -> World:
        return asyncio.run(self._world())

    async def _world(self) -> World:
        store = store_in(self.folder)
        chat = ChatKey(APP, "ann", self.chat.chat_id)
        seen = await look_into(
            store,
            sessions_in(self.folder),
            chat,
            history=self.chat.kept(),
            requests=self.asked(),
            streams=[_stream(request) for request in self.chat.requests],
        )
        await store.aclose()
        return replace(seen, runs=[self._named(run, seen) for run in self._runs()])

    def _runs(self) -> list[ToolRun]:
        elsewhere = [amount for amount in self.till.paid if amount == self.amount]
        unnamed = [ToolRun("", None, "pay", {"amount": amount}, "returned") for amount in elsewhere]  # pyright: ignore
        return [*self.kit.log.runs(), *unnamed]

    def _named(self, run: ToolRun, world: World) -> ToolRun:
        """A service elsewhere knows no call, and a tool that ADK runs as a node does not know its own."""
        record = next((each for each in world.records if each.arguments == run.arguments), None)
        is_named = run.call is not None and run.call.call_id is not None  # pyright: ignore
        return run if is_named or record is None else replace(run, call=record.call)

    @property
    def is_leased(self) -> bool:
        """Whether somebody is at the chat; over HTTP a new message would get a 409."""
        with closing(sqlite3.connect(self.folder / "calls.db")) as database:
            return database.execute("SELECT count(*) FROM adk_stream_leases").fetchone() != (0,)

    def shown(self) -> list[str]:
        """The state of the call on the last page."""
        return [tool["state"] for tool in self.chat.tools if tool["type"] == "tool-pay"]


def _stream(request: Any) -> ClientStream:
    response = request["response"]
    return ClientStream(request=request["method"], status=response["status"], chunks=response["chunks"])


# -- what the person does ---------------------------------------------------------------------------------------------


def _approve(cell: Cell) -> None:
    cell.page(say("Pay."), approve())


def _deny(cell: Cell) -> None:
    cell.page(say("Pay."), deny(reason="too much"))


def _late(cell: Cell) -> None:
    cell.page(say("Pay."))
    stale = cell.chat.messages
    cell.move_clock(DEADLINE_S + 1)
    cell.page(approve(), initialMessages=stale)


def _reload(cell: Cell) -> None:
    cell.page(say("Pay."))
    cell.page(RESUME, approve())


def _crash(cell: Cell) -> None:
    cell.page(say("Pay."))
    cell.fall()
    cell.page(RESUME, approve())


@dataclass(frozen=True)
class Expected:
    state: str
    runs: int
    shown: str


_PAID = Expected("done", 1, "output-available")
OUTCOMES: dict[Outcome, tuple[Callable[[Cell], None], Expected]] = {
    "approve": (_approve, _PAID),
    "deny": (_deny, Expected("denied", 0, "output-denied")),
    "late": (_late, Expected("expired", 0, "output-error")),
    "reload": (_reload, _PAID),
    "crash": (_crash, _PAID),
}


CELLS = list(itertools.product(PLACES, OUTCOMES, MODES, WITH_APPROVALS))
"""All; `make test` takes each seventeenth, so that every place, outcome, mode and release is among them."""
SAMPLE = CELLS if os.environ.get("FULL_SIZE") else CELLS[::17]


@pytest.fixture(scope="module")
def till() -> Iterator[RemoteTill]:
    with remote_till() as served:
        yield served


@pytest.mark.figures
@pytest.mark.parametrize(("place", "outcome", "mode", "release"), SAMPLE)
def test_wherever_it_is_called_a_gated_tool_waits_and_everybody_knows_what_became_of_it(
    node: NodeDriver, till: RemoteTill, tmp_path: Path, place: str, outcome: Outcome, mode: Mode, release: str
) -> None:
    cell = Cell(node, till, tmp_path, place, mode, release)
    try:
        _check(cell, outcome)
    finally:
        cell.kill()


def _check(cell: Cell, outcome: Outcome) -> None:
    if cell.place in WITHOUT_LIVE_MODE and cell.mode == "live":
        has_no_live_mode(cell, outcome)
    elif outcome == "crash" and (cell.place in NESTED or (cell.place, cell.mode) == ("sub-agent", "live")):
        cell.start()
        is_refused_after_a_crash(cell)
    else:
        cell.start()
        waits_and_is_told(cell, outcome)


def waits_and_is_told(cell: Cell, outcome: Outcome) -> None:
    acts, expected = OUTCOMES[outcome]
    acts(cell)
    cell.page(RESUME, say(SETTLE))
    world = cell.world()
    assert disagreements(world) == []
    [record] = [each for each in world.records if each.tool == "pay"]
    assert (str(record.state), len(world.runs)) == (expected.state, expected.runs)
    assert cell.shown() == [expected.shown]
    told = cell.told(tool="checkout" if cell.place == "workflow node" else "pay")
    assert ("error" in told[-1]) is (expected.runs == 0)
    assert cell.chat.is_what_the_server_kept()


def has_no_live_mode(cell: Cell, outcome: Outcome) -> None:
    cell.start()
    chat, steps = cell.chat, [say("Hello."), IDLE]
    told = chat.node.chat(
        release=chat.release, api=chat.api, chatId=chat.chat_id, transport=chat.transport, steps=steps
    )
    assert (told["status"], told["error"]) == ("error", NO_LIVE_AGENT)
    assert cell.asked() == []
    chat.transport = "http"  # as the sentence says
    waits_and_is_told(cell, outcome)


def is_refused_after_a_crash(cell: Cell) -> None:
    cell.page(say("Pay."))
    cell.fall()
    while str(cell.world().records[0].state) == "pending" or cell.is_leased:
        pass  # the new process finds what the other one has left, and ends it
    assert str(cell.world().records[0].state) == "denied"
    cell.page(RESUME, say(SETTLE))  # the model may ask anew
    world = replace(cell.world(), requests=())  # the agent that made the call is gone, and its model asked no more
    assert (world.runs, disagreements(world)) == ([], [])
