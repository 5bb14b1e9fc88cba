"""People who decide in their inbox, over the routes of a bridge."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.requests import HTTPConnection

from adk_stream_protocol import ApprovalPolicy, Chain, Link
from adk_stream_protocol.store.memory import MemoryStore

from .pages import Page

PATIENCE_S = 20


def groups_of(connection: HTTPConnection) -> list[str]:
    return [name for name in connection.headers.get("x-groups", "").split(",") if name]


def in_chain(*links: Any, **options: Any) -> ApprovalPolicy:
    """Every call is decided by these links: approvers, or a whole link."""
    chain = Chain([link if isinstance(link, Link) else Link([link]) for link in links])
    return ApprovalPolicy(decide=lambda _: chain, **options)


class Approver:
    def __init__(self, app: FastAPI, user: str, *groups: str) -> None:
        self.app = app
        self.headers = {"x-user": user, "x-groups": ",".join(groups)}

    async def fetch(self, method: str, path: str, **options: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=self.headers) as http:
            return await http.request(method, f"/api/chat/approvals{path}", **options)

    async def inbox(self, query: str = "") -> list[dict[str, Any]]:
        response = await self.fetch("GET", query)
        assert response.status_code == 200, response.text
        return response.json()["approvals"]

    async def post(self, id: str, **body: Any) -> httpx.Response:
        return await self.fetch("POST", f"/{id}", json=body)

    async def decide(self, approved: bool = True, *, number: int = 0, **body: Any) -> httpx.Response:
        """About what waits for this person, the newest unless told otherwise."""
        card = (await self.inbox())[number]
        return await self.post(card["id"], **{"approved": approved, "digest": card["digest"], **body})


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = is_so()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


CHAINED = {"approvals": in_chain("group:managers", "eva"), "groups": groups_of}


def of(at: Page, user: str, *groups: str) -> Approver:
    return Approver(at.chat.app, user, *groups)


def shown(at: Page) -> dict[str, Any]:
    """What the owner's page shows of the approval."""
    (part,) = [part for message in at.messages for part in message["parts"] if part["type"] == "data-adk-approval"]
    return part["data"]


async def reload(at: Page) -> None:
    at.messages = await at.chat.messages(x_ai_sdk_version="6")


def virtual_store() -> MemoryStore:
    loop = asyncio.get_running_loop()
    return MemoryStore(clock=lambda: 1_000_000 + loop.time())


async def ended(at: Page, tool: str = "pay") -> None:
    """The owner's chat has gone on by itself."""

    async def is_over() -> bool:
        await reload(at)
        if not at.parts(tool):  # its message is running
            return False
        (message,) = [message for message in at.messages if at.part(tool) in message["parts"]]
        has_spoken = message["parts"][-1]["type"] == "text"
        return not at.chat.is_running and has_spoken and at.part(tool)["state"].startswith("output-")

    await until(is_over)
