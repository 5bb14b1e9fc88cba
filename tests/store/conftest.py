from collections.abc import Iterator

import pytest

from store.stores import EVERYWHERE, IN_DATABASES, Clock, Stores


@pytest.fixture(params=EVERYWHERE)
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    with EVERYWHERE[request.param]() as found:
        yield found


@pytest.fixture(params=IN_DATABASES)
def databases(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Stores that several workers can share."""
    with IN_DATABASES[request.param]() as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()
