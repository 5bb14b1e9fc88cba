"""Services that take their time, or fail at a moment of the test's choice. They do their work otherwise."""

import asyncio
from collections.abc import Callable
from functools import wraps
from random import Random
from typing import Any, TypeVar

_Service = TypeVar("_Service")

Around = Callable[[str, Callable[..., Any]], Callable[..., Any]]


def altered(service: type[_Service], around: Around) -> type[_Service]:
    """The same kind of service, with something around each of its public coroutines."""
    names = [name for name in dir(service) if not name.startswith("_")]
    coroutines = [name for name in names if asyncio.iscoroutinefunction(getattr(service, name))]
    return type(service.__name__, (service,), {name: around(name, getattr(service, name)) for name in coroutines})


def unsteady(service: type[_Service], random: Random, most: int = 6) -> type[_Service]:
    """Lets the event loop turn a few times before and after everything, never the same."""

    def around(_: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        async def slow(*args: Any, **options: Any) -> Any:
            await some_turns(random, most)
            result = await method(*args, **options)
            await some_turns(random, most)
            return result

        return slow

    return altered(service, around)


async def some_turns(random: Random, most: int) -> None:
    """Of the event loop."""
    for _ in range(random.randint(0, most)):
        await asyncio.sleep(0)


class Fault:
    """A failure of the nth of all calls that pass while it is armed. A lasting one is one of all that follow, too; with
    a late one the work is done, and only the news of it is lost."""

    def __init__(self, at: int, *, is_lasting: bool = False, is_late: bool = False) -> None:
        self._at, self._is_lasting, self._is_late = at, is_lasting, is_late
        self._is_armed = False
        self._count = 0
        self.hit: list[str] = []
        """What has failed."""

    def arm(self) -> None:
        self._is_armed = True

    def disarm(self) -> None:
        self._is_armed = False

    def in_service(self, service: type[_Service], error: Callable[[], Exception]) -> type[_Service]:
        def around(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(method)
            async def failing(*args: Any, **options: Any) -> Any:
                fails = self._comes_to(f"{service.__name__}.{name}")
                if fails and not self._is_late:
                    raise error()
                result = await method(*args, **options)
                if fails:
                    raise error()
                return result

            return failing

        return altered(service, around)

    def _comes_to(self, name: str) -> bool:
        if not self._is_armed:
            return False
        self._count += 1
        fails = self._count == self._at or (self._is_lasting and self._count > self._at)
        if fails:
            self.hit.append(name)
        return fails
