"""Voice for chats whose live session has failed or cannot be opened: it is dropped until the next attempt.

An open microphone sends fifty frames a second. Each would open the session anew: fifty times a second the application's
hook, the store and the model, for nothing.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from ..adk.live_listener import LiveListener
from ..errors import BridgeError
from ..limits import Limits
from ..protocol.call_record import ChatKey


@dataclass(eq=False)
class _Refusal:
    error: BridgeError
    until: float | None
    """None: as long as another run of this process has the chat."""
    pause_s: float
    notified: set[LiveListener] = field(default_factory=set[LiveListener])

    def notify(self, chat: ChatKey, listener: LiveListener) -> None:
        if listener not in self.notified:
            self.notified.add(listener)
            listener.failed(chat.chat_id, self.error)


class RefusedVoice:
    """A `LiveVoice` that drops and counts."""

    is_ending = True

    def __init__(self, limits: Limits) -> None:
        self.dropped_frames = 0
        self._limits = limits
        self._refusals: dict[ChatKey, _Refusal] = {}

    def is_refused(self, chat: ChatKey, by: LiveListener, *, is_busy: bool) -> bool:
        """Notifies the client if it does not know why. `is_busy`: another run of this process has the chat."""
        refusal = self._refusals.get(chat)
        if refusal is None:
            return False
        now = asyncio.get_running_loop().time()
        if not is_busy if refusal.until is None else now >= refusal.until:
            return False
        refusal.notify(chat, by)
        return True

    def refuse(self, chat: ChatKey, error: BridgeError, by: LiveListener, *, is_busy: bool) -> None:
        """The session cannot be opened. A client is notified once, however often it tries."""
        refusal = self._refuse(chat, error, until_free=is_busy)
        refusal.notify(chat, by)

    def fail(self, chat: ChatKey, error: BridgeError, listeners: Collection[LiveListener], *, has_spoken: bool) -> None:
        """A session has failed. `has_spoken`: after the model had said something, so that the next one may succeed."""
        if has_spoken:
            self.forget(chat)
        refusal = self._refuse(chat, error, until_free=False)
        refusal.notified.clear()
        for listener in listeners:
            refusal.notify(chat, listener)

    def _refuse(self, chat: ChatKey, error: BridgeError, *, until_free: bool) -> _Refusal:
        before = self._refusals.get(chat)
        limits = self._limits
        pause_s = min(before.pause_s * 2, limits.max_live_backoff_s) if before is not None else limits.live_backoff_s
        until = None if until_free else asyncio.get_running_loop().time() + pause_s
        notified = before.notified if before is not None and before.error.code == error.code else set[LiveListener]()
        refusal = self._refusals[chat] = _Refusal(error, until, pause_s, notified)
        return refusal

    def forget(self, chat: ChatKey) -> None:
        self._refusals.pop(chat, None)

    # -- a voice ------------------------------------------------------------------------------------------------------

    def hear(self, samples: bytes) -> None:
        self.dropped_frames += 1

    def send_activity_start(self) -> None: ...

    def send_activity_end(self) -> None: ...

    def interrupt(self) -> None: ...
