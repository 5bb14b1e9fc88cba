"""Who approved what, and what came of it: the audit trail of a chat, for those who may read it."""

import os
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool
from starlette.middleware.sessions import SessionMiddleware

from adk_stream_protocol import ChatBridge


def pay(amount: float, recipient: str) -> dict[str, str]:
    """Send money to somebody."""
    return {"receipt": f"{amount} to {recipient}"}


agent = LlmAgent(name="cashier", model="gemini-flash-latest", tools=[FunctionTool(pay, require_confirmation=True)])
bridge = ChatBridge(
    agent, user_id=lambda connection: connection.session.get("user")
)  # store="postgresql+asyncpg://..."
app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_KEY"])  # your login sets session["user"]
app.include_router(bridge.router("/api/chat"))


def auditor(authorization: Annotated[str, Header()] = "") -> None:
    """Yours is a real login. Whoever passes here reads the arguments of all users' calls."""
    if authorization != f"Bearer {os.environ['AUDIT_TOKEN']}":
        raise HTTPException(403)


@app.get("/audit/{user}/{chat_id}", dependencies=[Depends(auditor)])
async def audit(user: str, chat_id: str) -> list[dict[str, object]]:
    """One line for each step of each call, oldest first."""
    return [
        {"at": step.at, "tool": step.tool, "state": step.state, "by": step.by, "arguments": step.arguments}
        for step in await bridge.audit(user, chat_id)
    ]
