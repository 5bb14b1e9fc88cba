"""The whole of it: an agent behind `useChat`. Run it with `uvicorn 01_chat:app` and post to /api/chat."""

import os

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from starlette.middleware.sessions import SessionMiddleware

from adk_stream_protocol import ChatBridge

root_agent = LlmAgent(name="helper", model="gemini-3.5-flash", instruction="Answer in one sentence.")

bridge = ChatBridge(root_agent, user_id=lambda connection: connection.session.get("user"))
app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_KEY"])  # your login sets session["user"]
app.include_router(bridge.router("/api/chat"))
