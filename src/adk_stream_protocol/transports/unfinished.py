"""The bytes of requests that have not arrived completely yet."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ..errors import Busy, TooMany
from ..limits import Limits

_FREE_BYTES = 64 * 1024  # of each request, which do not count for the limit of all users: text always gets through
_TOO_MUCH = "You are sending too much at once. Wait until it has arrived, then send this again."


class UnfinishedRequests:
    """Counts these bytes, which are in memory: of each user, and of all users."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._of_users: Counter[str] = Counter()
        self._of_all = 0

    @contextmanager
    def counting(self, user: str) -> Generator[Callable[[int], None]]:
        """Yields a function that counts bytes of one request and refuses too many. They count until the block ends."""
        size = 0

        def count(added: int) -> None:
            nonlocal size
            self._add(user, size, added)
            size += added
            if self._of_users[user] > self._limits.max_unfinished_bytes_per_user:
                raise TooMany(_TOO_MUCH)
            if size > _FREE_BYTES and self._of_all > self._limits.max_unfinished_bytes:
                raise Busy

        try:
            yield count
        finally:
            self._add(user, size, -size)
            if not self._of_users[user]:
                del self._of_users[user]

    def _add(self, user: str, size: int, added: int) -> None:
        self._of_users[user] += added
        self._of_all += max(0, size + added - _FREE_BYTES) - max(0, size - _FREE_BYTES)
