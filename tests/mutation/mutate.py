# ruff: noqa: T201
"""Do the tests of the safety core notice a mistake? Makes every small mistake in it, one by one, and runs them.

    python tests/mutation/mutate.py approvals digest

A mutant is written into a copy of the package, and that copy is what its tests import. It is killed by a failing test
or by never ending. Most are tried by forked.py; the others meet all tests, from their import on. Survivors are
printed; those that are no mistake at all are listed in survivors.py.
"""

import compileall
import difflib
import importlib
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from mutation.forked import ForkedMutants  # noqa: E402
from mutation.mutants import Mutant, mutants_of  # noqa: E402
from mutation.survivors import EQUIVALENT  # noqa: E402
from mutation.targets import TARGETS, Target  # noqa: E402

PROCESSES = int(os.environ.get("MUTATION_PROCESSES", "2"))
TIMEOUT_S = 60
NOT_THE_COPY = 99
PYTEST_OPTIONS = ["-q", "--assert=plain", "-p", "no:cacheprovider"]


class Verdict(NamedTuple):
    mutant: Mutant
    killed: bool


class Copies:
    """Copies of a package, one for each process, and the tests run on them.

    One thread alone starts and awaits the processes: `start()` collects what has ended, and takes the exit code from
    under another thread that is about to read it.
    """

    def __init__(self, target: Target, directory: Path) -> None:
        self._target = target
        self._context = multiprocessing.get_context("forkserver")
        # All test runs are forked from one process that has what they need, ADK above all.
        self._context.set_forkserver_preload(["pytest", "hypothesis", target.package.name])
        self._free: list[Path] = []
        for number in range(PROCESSES):
            copy = directory / str(number)
            shutil.copytree(target.package, copy / target.package.name, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(copy, quiet=2)
            # Mutants of one size and one second would pass for each other.
            Path(importlib.util.cache_from_source(str(target.file_in(copy)))).unlink()
            self._free.append(copy)
        self.original = target.file_in(copy).read_text(encoding="utf-8")
        self._patience_s = TIMEOUT_S

    def killed_in_forks(self) -> dict[str, bool]:
        """Whether the tests find a mutant, for those that forks can try. Fails if they fail without any mutation."""
        report = self._free[0].with_suffix(".json")
        tests = self._context.Process(target=_run_forked, args=(self._free[0], self._target, report))
        tests.start()
        tests.join()
        if not report.exists() and tests.exitcode in (0, 1):
            raise SystemExit(f"the tests of {self._target.module} fail without any mutation")
        self._require_outcome(tests)
        killed, seconds = json.loads(report.read_text())
        self._patience_s = max(TIMEOUT_S, 6 * seconds)
        return killed

    def pass_on(self, sources: Iterable[str]) -> list[bool]:
        """For each text in the place of the target's own: whether the tests pass."""
        passed: dict[int, bool] = {}
        running: dict[int, tuple[int, Path, BaseProcess, float]] = {}
        for number, source in enumerate(sources):
            while not self._free:
                self._collect(running, passed)
            copy = self._free.pop()
            self._target.file_in(copy).write_text(source, encoding="utf-8")
            tests = self._context.Process(target=_run_tests, args=(copy, self._target))
            tests.start()
            running[tests.sentinel] = (number, copy, tests, time.monotonic() + self._patience_s)
        while running:
            self._collect(running, passed)
        return [passed[number] for number in sorted(passed)]

    def _collect(self, running: dict[int, tuple[int, Path, BaseProcess, float]], passed: dict[int, bool]) -> None:
        """Wait until at least one of the test runs has ended, of itself or for taking too long."""
        earliest = min(deadline for *_, deadline in running.values())
        ended = wait(running, max(0, earliest - time.monotonic()))
        for sentinel, (number, copy, tests, deadline) in list(running.items()):
            is_late = sentinel not in ended and time.monotonic() >= deadline
            if sentinel not in ended and not is_late:
                continue
            if is_late:
                _kill(tests)
            tests.join()
            del running[sentinel]
            self._free.append(copy)
            if not is_late:
                self._require_outcome(tests)
            passed[number] = not is_late and tests.exitcode == 0

    def _require_outcome(self, tests: BaseProcess) -> None:
        if tests.exitcode not in (0, 1, 2):  # passed; failed; could not be collected
            raise SystemExit(f"the tests of {self._target.module} could not be run: exit code {tests.exitcode}")


def _run_tests(copy: Path, target: Target) -> None:
    _import_copy(copy, target.module)
    os._exit(pytest.main(["-x", *PYTEST_OPTIONS, *target.tests]))


def _run_forked(copy: Path, target: Target, report: Path) -> None:
    _import_copy(copy, target.module)
    os._exit(
        pytest.main([*PYTEST_OPTIONS, "-s", *target.tests], [ForkedMutants(target.file_in(copy), report, PROCESSES)])
    )


def _import_copy(copy: Path, module: str) -> None:
    """In a process of its own, and in a session of its own, so that whatever it starts can be ended with it."""
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # some of them object to being imported already
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    package = module.partition(".")[0]
    for loaded in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[loaded]  # the original, which came with ADK

    mutated = importlib.import_module(module)
    if not Path(getattr(mutated, "__file__", None) or "").is_relative_to(copy):
        os._exit(NOT_THE_COPY)


def _kill(process: BaseProcess) -> None:
    assert process.pid
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def judge(target: Target) -> Iterator[Verdict]:
    with tempfile.TemporaryDirectory() as directory:
        copies = Copies(target, Path(directory).resolve())
        mutants, killed = list(mutants_of(copies.original)), copies.killed_in_forks()
        left = [mutant for mutant in mutants if mutant.name not in killed]
        for mutant, survives in zip(left, copies.pass_on(mutant.source for mutant in left), strict=True):
            killed[mutant.name] = not survives
        for mutant in mutants:
            yield Verdict(mutant, killed[mutant.name])


def report(name: str) -> bool:
    """Print what became of a target's mutants; whether all is well."""
    began = time.monotonic()
    original = TARGETS[name].file_in(TARGETS[name].package.parent).read_text(encoding="utf-8")
    verdicts = list(judge(TARGETS[name]))
    survivors = {verdict.mutant.name: verdict.mutant for verdict in verdicts if not verdict.killed}
    known = EQUIVALENT.get(name, {})
    for mutant in survivors.values():
        reason = known.get(mutant.name)
        print(f"{name}.py:{mutant.line}: {'equivalent' if reason else 'SURVIVED'}: {mutant.name}")
        print(f"    {reason}" if reason else _diff(original, mutant.source))
    stale = known.keys() - survivors.keys()
    for mutant_name in sorted(stale):
        print(f"{name}: listed in survivors.py, but killed or gone: {mutant_name}")
    missed = len(survivors.keys() - known.keys())
    print(
        f"{name}: {len(verdicts)} mutants, {len(verdicts) - len(survivors)} killed, "
        f"{len(survivors) - missed} equivalent, {missed} survived, {time.monotonic() - began:.0f} s"
    )
    return not missed and not stale


def _diff(original: str, mutated: str) -> str:
    lines = difflib.unified_diff(original.splitlines(), mutated.splitlines(), n=0, lineterm="")
    return "\n".join(f"    {line}" for line in list(lines)[3:])


def main(names: Iterable[str]) -> int:
    names = list(names) or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
        return 2
    return 0 if all([report(name) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
