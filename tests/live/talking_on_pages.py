"""For live sessions that talk on while somebody decides: what their models were told, and what is stored."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.genai import types

from adk_stream_protocol.protocol.frames import SUBPROTOCOL
from adk_stream_protocol.testing import ScriptedLiveModel
from live.live_pages import (
    LivePage,
    World,
)
from support.live_client import LiveClient, live_socket

ON = {"live_while_waiting": "continue"}
decisions = pytest.mark.parametrize("yes", [True, False], ids=["approved", "denied"])


def where() -> dict[str, int]:  # pyright: ignore[reportReturnType]
    """Tells where the browser is."""


def look() -> dict[str, str]:
    """Looks at the account."""
    return {"balance": "plenty"}


def responses(model: ScriptedLiveModel) -> list[types.FunctionResponse]:
    """All that the model was told of its calls."""
    return [found for session in model.sessions for got in session.received for found in got.responses]


def told(model: ScriptedLiveModel) -> list[Any]:
    return [found.response for found in responses(model)]


@asynccontextmanager
async def speaking_page(world: World) -> AsyncGenerator[LivePage]:
    async with live_socket(world.app, "ann", subprotocols=(SUBPROTOCOL,), client=LiveClient("c1")) as client:
        yield LivePage(world, client)


async def stored_results(at: LivePage) -> list[Any]:
    session = await at.chat.session()
    assert session is not None
    return [found.response for event in session.events for found in event.get_function_responses()]
