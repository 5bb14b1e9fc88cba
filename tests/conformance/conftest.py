from collections.abc import Iterator

import pytest

from conformance.node import NodeDriver


@pytest.fixture(scope="session")
def node() -> Iterator[NodeDriver]:
    with NodeDriver() as driver:
        yield driver


@pytest.fixture(scope="session")
def other_node() -> Iterator[NodeDriver]:
    """A second browser."""
    with NodeDriver() as driver:
        yield driver
