"""What has arrived of requests that are not turns yet."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ..errors import Busy, TooMany
from ..limits import Limits

_WORDS_BYTES = 64 * 1024  # of each request, which all others together cannot keep out
_TOO_MUCH = "Too much of yours is being sent at once. Wait until it has arrived, then send this again."


class UnfinishedRequests:
    """Bytes in memory, of each user and of all."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of_users: Counter[str] = Counter()
        self._of_all = 0

    @contextmanager
    def counting(self, user: str) -> Generator[Callable[[int], None]]:
        """Gives what counts the bytes of one request, and refuses those that are too many. They count until its end."""
        size = 0

        def count(added: int) -> None:
            nonlocal size
            self._add(user, size, added)
            size += added
            if self._of_users[user] > self._limits.max_unfinished_bytes_per_user:
                raise TooMany(_TOO_MUCH)
            if size > _WORDS_BYTES and self._of_all > self._limits.max_unfinished_bytes:
                raise Busy

        try:
            yield count
        finally:
            self._add(user, size, -size)
            if not self._of_users[user]:
                del self._of_users[user]

    def _add(self, user: str, size: int, added: int) -> None:
        self._of_users[user] += added
        self._of_all += max(0, size + added - _WORDS_BYTES) - max(0, size - _WORDS_BYTES)
