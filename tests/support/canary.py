"""A secret that no test may ever see again: every test looks for it in all that servers send, and in the logs.

Tests of credentials make their codes, tokens, keys and client secrets of it. ADK's own logs may quote them: they are
left out, as the documentation says.
"""

import logging
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

CANARY = "canary-7f3a"
_NOT_OURS = ("google_adk", "authlib")


class CanaryWatch(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.leaks: list[str] = []

    def begin(self) -> None:
        logging.getLogger().addHandler(self)
        real: Any = Starlette.__call__

        async def watched(app: Starlette, scope: Scope, receive: Receive, send: Send) -> None:
            rest = b""

            async def look(message: Message) -> None:
                nonlocal rest
                data = message.get("body") or message.get("bytes") or (message.get("text") or "").encode()
                if CANARY.encode() in rest + data:
                    self.leaks.append(f"{scope['type']} {scope['path']}")
                rest = (rest + data)[1 - len(CANARY) :]
                await send(message)

            await real(app, scope, receive, look)

        Starlette.__call__ = watched  # every application of the tests is one

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_NOT_OURS) and CANARY in self.format(record):
            self.leaks.append(f"a log entry of {record.name}")

    def take_leaks(self) -> list[str]:
        found, self.leaks = self.leaks, []
        return found


watch = CanaryWatch()
