"""A client that speaks the frames of the design notes, written from those notes alone."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from support.live_client import LiveClient, live_socket

DONE = "data: [DONE]\n\n"
CONFIRMATION = "adk_request_confirmation"


@dataclass(eq=False)
class OlderClient(LiveClient):
    """`texts`: what came, word for word."""

    texts: list[str] = field(default_factory=list[str])

    async def send(self, message: Message) -> None:
        if message.get("text") is not None:
            self.texts.append(message["text"])
            self._changed.set()
        else:
            await super().send(message)

    # -- what came ----------------------------------------------------------------------------------------------------

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """Each `[DONE]` as a chunk of that type."""
        return [_chunk(text) for text in self.texts if text.startswith("data: ")]

    @property
    def types(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]

    @property
    def text(self) -> str:
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [chunk for chunk in self.chunks if chunk["type"] == kind]

    def inputs(self, tool: str) -> list[dict[str, Any]]:
        return [chunk for chunk in self.of_type("tool-input-available") if chunk["toolName"] == tool]

    # -- what is waited for -------------------------------------------------------------------------------------------

    async def done(self, count: int = 1) -> None:
        await self.until(lambda: self.types.count("[DONE]") >= count)

    async def asked(self, count: int = 1) -> dict[str, Any]:
        """The question of the `count`th confirmation, and the end of its step: then somebody waits for the answer."""
        await self.until(lambda: len(self.inputs(CONFIRMATION)) >= count and self.types[-1] == "finish-step")
        return self.inputs(CONFIRMATION)[count - 1]

    async def called(self, tool: str, count: int = 1) -> dict[str, Any]:
        await self.until(lambda: len(self.inputs(tool)) >= count and self.types[-1] == "finish-step")
        return self.inputs(tool)[count - 1]

    async def refused(self, count: int = 1) -> dict[str, Any]:
        await self.until(lambda: len(self.of_type("error")) >= count)
        return self.of_type("error")[count - 1]

    # -- what is sent -------------------------------------------------------------------------------------------------

    def write(self, text: str, **fields: Any) -> None:
        self.message({"role": "user", "parts": [{"type": "text", "text": text}]}, **fields)

    def message(self, *messages: dict[str, Any], **fields: Any) -> None:
        self.send_frame({"type": "message", "version": "1.0", "messages": list(messages), **fields})

    def tool_result(self, call_id: str, result: Any) -> None:
        self.send_frame({"type": "tool_result", "version": "1.0", "toolCallId": call_id, "result": result})

    def confirm(self, question: dict[str, Any], confirmed: bool = True) -> None:
        self.tool_result(question["toolCallId"], {"confirmed": confirmed})


def _chunk(text: str) -> dict[str, Any]:
    assert text.endswith("\n\n"), text
    return {"type": "[DONE]"} if text == DONE else json.loads(text.removeprefix("data: "))


def is_one_stream(types: Sequence[str]) -> bool:
    """From one `start` to one end."""
    ends = [kind for kind in types if kind in ("finish", "abort", "error")]
    return types[0] == "start" and types.count("start") == 1 and len(ends) == 1 and types[-2:] == [ends[0], "[DONE]"]


@asynccontextmanager
async def older_socket(app: ASGIApp, user: str = "ann", *, chat: str | None = None) -> AsyncGenerator[OlderClient]:
    client = OlderClient()
    query = "" if chat is None else f"chat={chat}"
    async with live_socket(app, user, client=client, query=query):
        yield client
