"""The process that the servers of the table of places come from: each costs a fork, and can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from google.adk.agents.run_config import RunConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, ChatBridge, Limits, Nobody, Owner
from adk_stream_protocol.store.sql import SqlStore
from conformance.places import PLACES, Kit
from faults.workers.forking import fork_for_ever
from support.apps import app_of, user_of
from support.asgi import exchange

APP = "places"


def clock_in(folder: Path) -> Any:
    """A clock that stands still, except where the test moves it."""
    return lambda: float((folder / "clock").read_text())


def store_in(folder: Path) -> SqlStore:
    return SqlStore(f"sqlite+aiosqlite:///{folder}/calls.db", clock=clock_in(folder))


def sessions_in(folder: Path) -> SqliteSessionService:
    return SqliteSessionService(str(folder / "chats.db"))


def _decide(request: ApprovalRequest) -> Owner | Nobody:
    return Owner() if request.tool == "pay" else Nobody()


def bridge_of(place: str, kit: Kit, store: SqlStore) -> ChatBridge:
    # What comes from an OpenAPI document cannot say that it must be confirmed: the policy does.
    approvals = ApprovalPolicy(decide=_decide) if place == "OpenAPI" else ApprovalPolicy()
    return ChatBridge(
        PLACES[place](kit),
        app_name=APP,
        user_id=user_of,
        store=store,
        session_service=sessions_in(kit.folder),
        run_config=RunConfig(response_modalities=[types.Modality.TEXT]),
        approvals=approvals,
        limits=Limits(live_grace_s=300),  # a page that comes back finds its session
    )


def child(life: socket.socket, *, place: str, folder: str, port: int, **kit: Any) -> None:
    life.sendall(os.getpid().to_bytes(8, "big"))
    file = os.open(Path(folder, "output"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    bridge = bridge_of(place, Kit(folder=Path(folder), **kit), store_in(Path(folder)))
    uvicorn.run(app_of(bridge), port=port)


async def _warm_up() -> None:
    """ADK imports much of itself in its first run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "clock").write_text("0")
        store = store_in(folder)
        bridge = bridge_of("root", Kit(folder, 1, "", "request", "2.5"), store)
        words: list[dict[str, str]] = [{"type": "text", "text": "Pay."}]
        body: dict[str, Any] = {"id": "warm", "messages": [{"id": "m", "role": "user", "parts": words}]}
        await exchange(app_of(bridge), body=json.dumps(body).encode())
        await bridge.aclose()
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(_warm_up())
    fork_for_ever(socket.socket(fileno=int(sys.argv[1])), child)
