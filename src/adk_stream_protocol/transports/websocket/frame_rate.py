"""How many frames may come in on one socket."""

import asyncio

from ...errors import TooManyFrames
from ...limits import Limits


class FrameRate:
    """Two token buckets, one for voice and one for all other frames, each with the tokens of ten seconds. A client that
    goes on after as many refusals ignores them: its socket is closed."""

    _WINDOW_S = 10

    def __init__(self, limits: Limits) -> None:
        self._per_s = {"audio": limits.max_audio_frames_per_s, "other": limits.max_frames_per_s}
        self._left = {kind: float(per_s * self._WINDOW_S) for kind, per_s in self._per_s.items()}
        self._at = dict.fromkeys(self._per_s, asyncio.get_running_loop().time())
        self._refused = dict.fromkeys(self._per_s, 0)
        self.is_flood = False
        """Whether the socket is to be closed."""

    def count(self) -> None:
        self._take("other")

    def count_audio(self) -> None:
        self._take("audio")

    def _take(self, kind: str) -> None:
        now, per_s = asyncio.get_running_loop().time(), self._per_s[kind]
        self._left[kind] = min(per_s * self._WINDOW_S, self._left[kind] + (now - self._at[kind]) * per_s)
        self._at[kind] = now
        if self._left[kind] < 1:
            self._refused[kind] += 1
            self.is_flood = self._refused[kind] >= per_s * self._WINDOW_S
            raise TooManyFrames
        self._left[kind] -= 1
