"""For every test."""

import gc


def pytest_collection_finish() -> None:
    """What ADK's import has left is there to stay: looking through it again and again takes a seventh of the time."""
    gc.collect()
    gc.freeze()
