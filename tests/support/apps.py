"""Small applications for tests: an agent behind a bridge, in one process."""

import os
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies import models
from google.adk.agents import LlmAgent
from starlette.requests import HTTPConnection

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import Reply, ScriptedModel

if os.environ.get("DIRECT_TEXT") == "off":  # any test, with all words through ADK: `make faults` runs many of them so
    (ChatBridge.__init__.__kwdefaults__ or {})["direct_text"] = False


def user_of(connection: HTTPConnection) -> str | None:
    return connection.headers.get("x-user", "ann")


def bridge_with(*replies: Reply, tools: tuple[Any, ...] = (), **options: Any) -> ChatBridge:
    agent = LlmAgent(name="helper", model=ScriptedModel(replies), tools=list(tools))
    return ChatBridge(agent, **{"user_id": user_of, **options})


def app_of(bridge: ChatBridge) -> FastAPI:
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    return app


def forget_apps() -> None:
    """FastAPI remembers thousands of endpoints, and so everything behind the applications of tests that are over."""
    for cached in vars(models).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()


def runner_of(bridge: ChatBridge) -> Any:
    return bridge._service._chats.runner  # pyright: ignore


def model_of(bridge: ChatBridge) -> ScriptedModel:
    return runner_of(bridge).agent.model


def figure(promised: int) -> int:
    """A promised number of cases: all of them in `make faults`, a tenth in `make test`."""
    return promised if os.environ.get("FULL_SIZE") else promised // 10
