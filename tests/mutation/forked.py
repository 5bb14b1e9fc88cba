"""Finds most mutants quickly: the tests are collected once, and each mutant is a fork in which one function is another.

Only mistakes inside of functions can be made that way. A fork runs the tests that run the changed function, up to the
first that fails, and begins with those that come nearest to the changed line. The other mutants meet all tests, from
their import on, in mutate.py.
"""

import gc
import json
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import NoReturn

import coverage
import pytest

from mutation.mutants import mutants_of

PATIENCE_S = 20
"""With one test; or twenty times as long as it takes without a mutant, whatever is longer."""


class ForkedMutants:
    """A plugin of pytest that runs the tests on mutants of a file. It writes which of them were killed, and how long
    all tests take; nothing if they fail without any mutant."""

    def __init__(self, file: Path, report: Path, processes: int) -> None:
        self._file = file
        self._report = report
        self._processes = processes

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # some could not be collected
            return True
        measured = self._report.with_suffix(".measured")
        child = _fork(lambda: self._measure(session.items, measured))
        if os.waitpid(child, 0)[1]:
            return True
        ran, seconds = json.loads(measured.read_text())
        source, functions = self._file.read_text(encoding="utf-8"), _functions_of(self._file)
        items = {item.nodeid: item for item in session.items}
        running: dict[int, str] = {}
        killed: dict[str, bool] = {}
        for mutant in mutants_of(source):
            codes = _changed_functions(source, mutant.source, self._file)
            if codes is None or any(len(functions.get(name, ())) != 1 for name in codes):
                continue
            while len(running) >= self._processes:
                _collect(running, killed)
            swaps = [(functions[name][0], code) for name, code in codes.items()]
            places = [_lines_of(functions[name][0].__code__) for name in codes]
            tests = [test for test in items if any(line in place for place in places for line in ran[test])]
            tests.sort(key=lambda test: (_distance(ran[test], mutant.line), seconds[test]))
            running[_fork(partial(_try, swaps, [(items[test], seconds[test]) for test in tests]))] = mutant.name
        while running:
            _collect(running, killed)
        self._report.write_text(json.dumps((killed, sum(seconds.values()))))
        return True

    def _measure(self, items: Sequence[pytest.Item], measured: Path) -> None:
        """Run all tests without a mutant. Write down which lines each runs, and how long it takes."""
        watcher = coverage.Coverage(data_file=None, include=[str(self._file)])
        watcher.start()
        seconds: dict[str, float] = {}
        for item in items:
            watcher.switch_context(item.nodeid)
            began = time.monotonic()
            if _fails(item):
                os._exit(1)
            seconds[item.nodeid] = time.monotonic() - began
        watcher.stop()
        found = watcher.get_data().contexts_by_lineno(str(self._file))
        ran = {test: [line for line, tests in found.items() if test in tests] for test in seconds}
        measured.write_text(json.dumps((ran, seconds)))


def _lines_of(code: CodeType) -> range:
    lines = [line for *_, line in code.co_lines() if line is not None]
    inner = [_lines_of(const) for const in code.co_consts if isinstance(const, CodeType)]
    return range(code.co_firstlineno, max([*lines, *(place.stop - 1 for place in inner)]) + 1)


def _distance(ran: Sequence[int], line: int) -> float:
    """How near a test comes to a line. Where a coroutine goes on after an exception, not all lines are noted."""
    return min((abs(line - known) for known in ran), default=math.inf)


def _try(swaps: Sequence[tuple[FunctionType, CodeType]], tests: Sequence[tuple[pytest.Item, float]]) -> None:
    for function, code in swaps:
        function.__code__ = code
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for item, seconds in tests:
        signal.setitimer(signal.ITIMER_REAL, max(PATIENCE_S, 20 * seconds))
        if _fails(item):
            os._exit(1)


def _fails(item: pytest.Item) -> bool:
    class Outcome:
        failed = False

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            self.failed = self.failed or report.failed

    outcome = Outcome()
    item.config.pluginmanager.register(outcome)
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    item.config.pluginmanager.unregister(outcome)
    return outcome.failed


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    return child if child else _end_with(work)


def _end_with(work: Callable[[], None]) -> NoReturn:
    os.setsid()
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


def _collect(running: dict[int, str], killed: dict[str, bool]) -> None:
    child, status = os.wait()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # whatever it has started
    killed[running.pop(child)] = status != 0


def _functions_of(file: Path) -> dict[str, list[FunctionType]]:
    """All functions of a file by their names, also where a decorator hides them."""
    gc.unfreeze()
    found: dict[str, list[FunctionType]] = {}
    for known in gc.get_objects():
        if isinstance(known, FunctionType) and known.__code__.co_filename == str(file):
            found.setdefault(known.__code__.co_qualname, []).append(known)
    gc.freeze()
    return found


def _changed_functions(original: str, mutated: str, file: Path) -> dict[str, CodeType] | None:
    """The code of the functions that differ, by name; None if anything else differs."""
    before = dict(_bodies(compile(original, file, "exec")))
    after = dict(_bodies(compile(mutated, file, "exec")))
    if before.keys() != after.keys():
        return None
    differing = {name: code for name, code in after.items() if not _are_same(before[name], code)}
    can_be_swapped = all(
        _is_function(code) and len(code.co_freevars) == len(before[name].co_freevars)
        for name, code in differing.items()
    )
    return differing if can_be_swapped else None


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & 2)  # CO_NEWLOCALS: neither a module nor a class


def _bodies(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """A module, its classes, and their functions; functions inside of functions are part of them."""
    yield code.co_qualname, code
    if not _is_function(code):
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from _bodies(inner)


def _are_same(one: CodeType, other: CodeType) -> bool:
    if _is_function(one):
        return one == other
    constants = [[each for each in code.co_consts if not isinstance(each, CodeType)] for code in (one, other)]
    return one.co_code == other.co_code and one.co_names == other.co_names and repr(constants[0]) == repr(constants[1])
