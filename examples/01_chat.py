"""The whole of it: an agent behind `useChat`. Run it with `uvicorn 01_chat:app` and post to /api/chat."""

from fastapi import FastAPI
from google.adk.agents import LlmAgent

from adk_stream_protocol import ChatBridge

root_agent = LlmAgent(name="helper", model="gemini-3.5-flash", instruction="Answer in one sentence.")

bridge = ChatBridge(root_agent, user_id=lambda connection: connection.headers.get("x-user"))
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
