"""A disk in memory, where there is one, for tests that are about the order of things: flushes to a real one take most
of their time."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_DISK = Path("/dev/shm")


@contextmanager
def fast_sqlite_url() -> Generator[str]:
    with tempfile.TemporaryDirectory(dir=_DISK if _DISK.exists() else None) as folder:
        yield f"sqlite+aiosqlite:///{folder}/store.db"
