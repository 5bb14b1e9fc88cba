"""A payment that a person approves, kept in a database: neither a restart nor a second click pays twice."""

import os

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.sessions import DatabaseSessionService
from google.adk.tools import FunctionTool, ToolContext
from starlette.middleware.sessions import SessionMiddleware

from adk_stream_protocol import ApprovalPolicy, ChatBridge, idempotency_key

DATABASE = "sqlite+aiosqlite:///chats.db"  # or postgresql+asyncpg://user:password@host/name


def pay(amount: float, recipient: str, tool_context: ToolContext) -> dict[str, str]:
    """Send money to somebody."""
    # A payment service that is told the same key twice pays once, also where our own record ends.
    return {"receipt": f"{amount} to {recipient}", "idempotency_key": idempotency_key(tool_context)}


agent = LlmAgent(name="cashier", model="gemini-flash-latest", tools=[FunctionTool(pay, require_confirmation=True)])
bridge = ChatBridge(
    agent,
    user_id=lambda connection: connection.session.get("user"),
    session_service=DatabaseSessionService(DATABASE),
    store=DATABASE,
    approvals=ApprovalPolicy(
        deadline_s=300,
        hints={"pay": lambda call: f"Send {call['amount']} to {call['recipient']}?"},
    ),
)
app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_KEY"])  # your login sets session["user"]
app.include_router(bridge.router("/api/chat"))
