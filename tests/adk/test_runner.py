"""A runner from an agent, an App or a Runner."""

from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.memory import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.workflow import Workflow

from adk_stream_protocol.adk.runner import build_runner
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.testing import ScriptedModel

SERVICES: dict[str, Any] = dict.fromkeys(("app_name", "session_service", "artifact_service", "memory_service"))


def agent() -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel())


def test_an_agent_gets_a_resumable_app_of_its_name_and_services_in_memory() -> None:
    runner = build_runner(agent(), **SERVICES)
    assert runner.app_name == "helper"
    assert isinstance(runner.session_service, InMemorySessionService)
    assert isinstance(runner.artifact_service, InMemoryArtifactService)
    assert runner.memory_service is None
    assert runner.auto_create_session
    assert runner.resumability_config is not None
    assert runner.resumability_config.is_resumable


@pytest.mark.parametrize(
    "root",
    [
        SequentialAgent(name="line", sub_agents=[]),
        Workflow(name="flow", edges=[("START", LlmAgent(name="node", model=ScriptedModel()))]),
    ],
    ids=lambda root: type(root).__name__,
)
def test_any_root_that_an_app_takes_will_do(root: Any) -> None:
    assert build_runner(root, **SERVICES).app_name == root.name


def test_given_names_and_services_are_used() -> None:
    given = {
        "app_name": "shop",
        "session_service": InMemorySessionService(),
        "artifact_service": InMemoryArtifactService(),
        "memory_service": InMemoryMemoryService(),
    }
    runner = build_runner(agent(), **given)
    assert {name: getattr(runner, name) for name in given} == given


def test_an_app_keeps_its_name_and_its_own_choices() -> None:
    app = App(name="shop", root_agent=agent())
    runner = build_runner(app, **SERVICES)
    assert runner.app is app
    assert runner.app_name == "shop"
    assert runner.resumability_config is None


def test_a_runner_is_used_as_it_is() -> None:
    runner = Runner(app_name="shop", agent=agent(), session_service=InMemorySessionService())
    assert build_runner(runner, **SERVICES) is runner


@pytest.mark.parametrize(
    "beside",
    [
        {"app_name": "shop"},
        {"session_service": InMemorySessionService()},
        {"artifact_service": InMemoryArtifactService()},
        {"memory_service": InMemoryMemoryService()},
    ],
    ids=lambda beside: next(iter(beside)),
)
def test_a_runner_with_anything_beside_it_is_refused(beside: dict[str, Any]) -> None:
    runner = Runner(app_name="shop", agent=agent(), session_service=InMemorySessionService())
    with pytest.raises(ConfigurationError, match="brings its own"):
        build_runner(runner, **{**SERVICES, **beside})


def test_something_else_is_refused_by_its_type() -> None:
    with pytest.raises(ConfigurationError, match="not str"):
        build_runner("helper", **SERVICES)  # pyright: ignore[reportArgumentType]
