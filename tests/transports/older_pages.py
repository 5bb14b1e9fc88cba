"""A page that speaks the older frames, in the world of a live session."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from live.live_pages import World, live_world
from support.older_client import OlderClient, older_socket

ASKS = ["start-step", "tool-input-start", "tool-input-available", "finish-step"]


@asynccontextmanager
async def older_page(*script: Any, **options: Any) -> AsyncGenerator[tuple[World, OlderClient]]:
    async with live_world(*script, **options) as at, older_socket(at.app, chat="c1") as client:
        yield at, client
