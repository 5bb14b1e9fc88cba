"""Tools that run in the user's browser: one at once, one after the user agrees."""

import os
from dataclasses import dataclass

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from starlette.middleware.sessions import SessionMiddleware

from adk_stream_protocol import ChatBridge, client_tool


@dataclass
class Location:
    latitude: float
    longitude: float


def get_location() -> Location:
    """Ask the user's browser where the user is."""
    raise NotImplementedError  # never called here: the signature is all that counts


set_theme = client_tool(
    "set_theme",
    "Change the colours of the page.",
    {"type": "object", "properties": {"theme": {"enum": ["light", "dark"]}}, "required": ["theme"]},
)

agent = LlmAgent(
    name="guide",
    model="gemini-flash-latest",
    tools=[set_theme, client_tool(get_location, approve=True)],
)
bridge = ChatBridge(agent, user_id=lambda connection: connection.session.get("user"))
app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_KEY"])  # your login sets session["user"]
app.include_router(bridge.router("/api/chat"))
