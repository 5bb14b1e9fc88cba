"""Users, and what a turn knows about them: the login of your application decides, never the request's body."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from starlette.requests import HTTPConnection

from adk_stream_protocol import ChatBridge, Prepared

TOKENS = {"token-of-ann": "ann", "token-of-bob": "bob"}  # yours come from a session or a signed token


def user_id(connection: HTTPConnection) -> str | None:
    """Who is asking. `None` refuses with 401."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return TOKENS.get(token) if scheme == "Bearer" else None


def prepare(connection: HTTPConnection, body: Mapping[str, Any]) -> Prepared:
    """What this turn brings along: state for the agent's instruction, and a bound on its model calls."""
    return {
        "state_delta": {"user_name": user_id(connection)},
        "run_config": {"max_llm_calls": 10},
        "send_state": ["user_name"],  # these keys, and no others, reach the page as data-adk-state
    }


root_agent = LlmAgent(name="greeter", model="gemini-3.5-flash", instruction="The user is called {user_name}.")

bridge = ChatBridge(
    root_agent,
    user_id=user_id,
    prepare=prepare,
    allowed_origins=["http://localhost:3000"],  # a page that is served from elsewhere
)
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
