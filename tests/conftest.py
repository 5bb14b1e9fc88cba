"""For every test."""

import asyncio
import gc
import inspect
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from support import virtual_time
from support.apps import forget_apps
from support.canary import watch

PATIENCE_S = 60  # for what never comes; everything else is waited for


def pytest_configure() -> None:
    watch.begin()


@pytest.fixture(autouse=True)
def nothing_secret_is_sent_or_logged() -> Iterator[None]:
    yield
    assert watch.take_leaks() == []


@pytest.fixture(autouse=True)
def what_is_over_takes_no_memory() -> Iterator[None]:
    yield
    forget_apps()


def pytest_collection_finish() -> None:
    """What ADK's import has left is there to stay: looking through it again and again takes a seventh of the time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine in a loop of its own. With `@pytest.mark.virtual_time` the loop's clock jumps to
    the next timer, so that deadlines and graces take no time, and what never comes is a failure at once."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    if pyfuncitem.get_closest_marker("virtual_time"):
        virtual_time.run(pyfuncitem.obj(**arguments))
    else:
        patience_s = None if pyfuncitem.get_closest_marker("figures") else PATIENCE_S
        asyncio.run(_within(patience_s, pyfuncitem.obj(**arguments)))
    return True


async def _within(seconds: float | None, test: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(seconds):
        await test
