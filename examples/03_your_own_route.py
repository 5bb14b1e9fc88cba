"""A route of your own, sessions that survive a restart, and an `App` that you have already."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from starlette.middleware.sessions import SessionMiddleware

from adk_stream_protocol import ChatBridge, Limits

my_app = App(name="support", root_agent=LlmAgent(name="support", model="gemini-3.5-flash"))

bridge = ChatBridge(
    my_app,
    user_id=lambda connection: connection.session.get("user"),
    session_service=SqliteSessionService("chats.db"),
    limits=Limits(max_file_bytes=5 * 1024 * 1024),
)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    yield
    await bridge.aclose()  # the router would have done this


app = FastAPI(lifespan=lifespan)
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_KEY"])  # your login sets session["user"]


@app.post("/support/chat")
async def chat(request: Request) -> Response:
    return await bridge.respond(request)
