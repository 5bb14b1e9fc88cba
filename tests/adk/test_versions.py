"""Older releases of ADK: what they lack is said, and what could not be approved is not run."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.context import Context
from google.adk.workflow import START, Workflow, node

from adk_stream_protocol.adk import versions
from adk_stream_protocol.adk.calls.gate import ApprovalGate
from adk_stream_protocol.adk.calls.policy import ApprovalPolicy
from adk_stream_protocol.adk.runner import RunnerOptions, build_runner
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import ScriptedModel
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


def test_what_is_lacking_is_in_the_document() -> None:
    text = DOCUMENT.read_text()
    assert [lack for lack in versions.lacks_of((2, 10)) if lack not in text] == []


def test_one_line_at_the_start_says_what_is_lacking(caplog: pytest.LogCaptureFixture) -> None:
    versions.log_lacks.cache_clear()
    for _ in range(2):
        versions.log_lacks((2, 10))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("google-adk 2.10 lacks")
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


@pytest.mark.skipif(versions.TOOL_NODES_ASK_PLUGINS, reason="google-adk 2.11 and newer ask the plugins")
async def test_a_tool_whose_node_is_made_while_running_is_refused_then() -> None:
    till = Till()
    async with page(agent=paying_flow(till, made_while_running=True)) as at:
        answer = await at.say("Pay.")
        assert answer.types[-1] == "error"
        assert till.paid == []
