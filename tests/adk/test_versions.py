"""Older releases of ADK: what they lack is said, and what could not be approved is not run."""

import re
from collections.abc import AsyncGenerator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.context import Context
from google.adk.workflow import START, Workflow, node
from google.adk.workflow._tool_node import _ToolNode  # pyright: ignore[reportPrivateUsage]
from pydantic import BaseModel

from adk_stream_protocol.adk import versions
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.policy import ApprovalPolicy
from adk_stream_protocol.adk.runner import RunnerOptions, build_runner
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel
from support import releases
from support.pages import Till, page

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "versions.md"


def built(root: Any) -> Any:
    gate = ApprovalGate(MemoryStore(), ApprovalPolicy(), lease_s=60)
    return build_runner(root, RunnerOptions(), gate), gate


def helper() -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel())


def paying_flow(till: Till, *, made_while_running: bool = False) -> Workflow:
    def details() -> dict[str, Any]:
        return {"amount": 5}

    @node(rerun_on_resume=True)
    async def makes_it(ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        yield await ctx.run_node(node(till.gated), node_input=node_input)

    paying = makes_it if made_while_running else node(till.gated)
    return Workflow(name="flow", edges=[(START, details), (details, paying)])


def test_an_older_release_lacks_what_newer_ones_lack_and_more() -> None:
    lacks = [versions.lacks_of((2, minor)) for minor in (10, 11, 12, 13)]
    assert all(set(newer) < set(older) for older, newer in pairwise(lacks))
    assert lacks[-1] == []
    assert versions.lacks_of((3, 0)) == []


def test_the_document_names_what_is_lacking_and_nothing_else() -> None:
    table = DOCUMENT.read_text().split("| Below google-adk | |")[1].split("\n\n")[0]
    rows = [(tuple(map(int, major_minor)), text) for major_minor, text in read_rows(table)]
    lacks = [(release, lack) for release, lacks in versions.LACKS.items() for lack in lacks]
    assert [lack for lack in lacks if not any(is_row_of(row, lack) for row in rows)] == []
    assert [row for row in rows if not any(is_row_of(row, lack) for lack in lacks)] == []


def read_rows(table: str) -> Iterator[tuple[list[str], str]]:
    for line in table.splitlines()[2:]:
        _, release, text, _ = (cell.strip() for cell in line.split("|"))
        yield release.split("."), text


def is_row_of(row: tuple[versions.Release, str], lack: tuple[versions.Release, str]) -> bool:
    """A row may say more."""
    return row[0] == lack[0] and row[1].replace("[", "").startswith(lack[1])


def test_a_test_that_is_skipped_for_a_release_names_what_is_lacking() -> None:
    """`pytest -rs` shows rows of the document, and no test has a condition of its own."""
    assert releases.tool_nodes.kwargs["reason"] == "needs google-adk 2.11. Below it, tools cannot be workflow nodes"
    with pytest.raises(KeyError):
        releases.unless("nobody has heard of it")
    tests = Path(__file__).parents[1]
    conditions = re.compile(r"\bskip(if)?\(.*\b(ADK|versions|releases)\b|\bADK [<>]|google\.adk\.version")
    known = {Path(__file__), tests / "support" / "releases.py"}
    files = [path for path in tests.rglob("*.py") if "node_modules" not in path.parts and path not in known]
    assert [str(path) for path in files if conditions.search(path.read_text())] == []


def test_one_line_at_the_start_says_what_is_lacking(caplog: pytest.LogCaptureFixture) -> None:
    versions.log_lacks.cache_clear()
    for _ in range(2):
        versions.log_lacks((2, 10))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("google-adk 2.10 works, with limits that 2.13 does not have: ")
    assert all(lack in line for lack in versions.lacks_of((2, 10)))


def test_a_runner_says_it_and_the_newest_release_lacks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    versions.log_lacks.cache_clear()
    for _ in range(2):
        built(helper())
    said = [record for record in caplog.records if record.name == versions.__name__]
    assert len(said) == (1 if versions.lacks_of(versions.ADK) else 0)


# -- tools that are workflow nodes ------------------------------------------------------------------------------------


def test_a_tool_that_would_run_without_asking_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "TOOL_NODES_ASK_PLUGINS", False)
    with pytest.raises(ConfigurationError, match=r"'pay' is a tool.*install google-adk 2\.11 or newer"):
        built(paying_flow(Till()))


@pytest.mark.parametrize("place", ["below a workflow", "of a workflow that is an agent's tool"])
def test_so_is_one_that_stands_deeper(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Order(BaseModel):
        amount: int = 5

    monkeypatch.setattr(versions, "TOOL_NODES_ASK_PLUGINS", False)
    inner = Workflow(name="inner", description="Pays.", edges=[(START, node(Till().gated))], input_schema=Order)
    root = Workflow(name="flow", edges=[(START, inner)])
    above = LlmAgent(name="helper", model=ScriptedModel(), tools=[inner])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="'pay' is a tool"):
        built(root if place == "below a workflow" else above)


@pytest.fixture
def tool_nodes_ask_nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As with an older release."""
    monkeypatch.setattr(versions, "TOOL_NODES_ASK_PLUGINS", False)
    monkeypatch.setattr(_ToolNode, "_run_impl", _ToolNode._run_impl)  # it is replaced, and put back
    versions.refuse_tool_nodes_of.cache_clear()
    yield
    versions.refuse_tool_nodes_of.cache_clear()


@pytest.mark.usefixtures("tool_nodes_ask_nobody")
async def test_a_tool_whose_node_is_made_while_running_is_refused_then() -> None:
    till = Till()
    async with page(agent=paying_flow(till, made_while_running=True)) as at:
        answer = await at.say("Pay.")
        assert answer.types[-1] == "error"
        assert till.paid == []
