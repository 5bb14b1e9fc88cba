"""The ADK runner behind a bridge, from whatever the application has: an agent, an `App` or a `Runner`."""

import warnings

from google.adk.apps import App, ResumabilityConfig
from google.adk.artifacts import BaseArtifactService, InMemoryArtifactService
from google.adk.memory import BaseMemoryService
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.workflow import BaseNode

from ..errors import ConfigurationError

AgentLike = BaseNode | App | Runner


def build_runner(
    agent: AgentLike,
    *,
    app_name: str | None,
    session_service: BaseSessionService | None,
    artifact_service: BaseArtifactService | None,
    memory_service: BaseMemoryService | None,
) -> Runner:
    if isinstance(agent, Runner):
        if app_name or session_service or artifact_service or memory_service:
            raise ConfigurationError("A Runner brings its own name and services: give them to the Runner.")
        return agent
    if isinstance(agent, App):
        app = agent
    elif isinstance(agent, BaseNode):  # pyright: ignore[reportUnnecessaryIsInstance] -- callers may be untyped
        app = App(name=app_name or agent.name, root_agent=agent, resumability_config=resumable())
    else:
        raise ConfigurationError(f"A ChatBridge needs an ADK agent, App or Runner, not {type(agent).__name__}.")
    return Runner(
        app=app,
        app_name=app_name,
        session_service=session_service or InMemorySessionService(),
        artifact_service=artifact_service or InMemoryArtifactService(),
        memory_service=memory_service,
        auto_create_session=True,  # saves a look-up before every run
    )


def resumable() -> ResumabilityConfig:
    with warnings.catch_warnings():  # ADK calls it experimental; approvals cannot do without
        warnings.simplefilter("ignore")
        return ResumabilityConfig(is_resumable=True)
