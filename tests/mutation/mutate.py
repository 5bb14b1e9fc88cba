# ruff: noqa: T201
"""Do the tests of the safety core notice a mistake? Makes every small mistake in it, one by one, and runs them.

    python tests/mutation/mutate.py approvals digest

A mutant is written into a copy of the package, and that copy is what its tests import. It is killed by a failing test
or by never ending. Survivors are printed; those that are no mistake at all are listed in survivors.py.
"""

import compileall
import difflib
import importlib
import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from mutation.mutants import Mutant, mutants_of  # noqa: E402
from mutation.survivors import EQUIVALENT  # noqa: E402

PROCESSES = 2
TIMEOUT_S = 60
NOT_THE_COPY = 99


class Target(NamedTuple):
    module: str
    tests: Sequence[str]
    package: Path = ROOT / "src" / "adk_stream_protocol"

    def file_in(self, parent: Path) -> Path:
        return parent.joinpath(*self.module.split(".")).with_suffix(".py")


TARGETS = {
    "approvals": Target(
        "adk_stream_protocol.protocol.approvals",
        ["tests/protocol/test_approvals.py", "tests/protocol/test_approvals_explored.py"],
    ),
    "digest": Target("adk_stream_protocol.protocol.digest", ["tests/protocol/test_digest.py"]),
    "gate": Target(
        "adk_stream_protocol.adk.gate",
        [
            "tests/adk/test_gate.py",
            "tests/adk/test_gate_record.py",
            "tests/adk/test_gate_failures.py",
            "tests/adk/test_gate_plugins.py",
            "tests/adk/test_client_tools.py",
            "tests/adk/test_repeated_call_ids.py",
        ],
    ),
}


class Verdict(NamedTuple):
    mutant: Mutant
    killed: bool


class Copies:
    """Copies of a package, one for each process, and the tests run on them."""

    def __init__(self, target: Target, directory: Path) -> None:
        self._target = target
        self._context = multiprocessing.get_context("forkserver")
        # All test runs are forked from one process that has what they need, ADK above all.
        self._context.set_forkserver_preload(["pytest", "hypothesis", target.package.name])
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(PROCESSES):
            copy = directory / str(number)
            shutil.copytree(target.package, copy / target.package.name, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(copy, quiet=2)
            # Mutants of one size and one second would pass for each other.
            Path(importlib.util.cache_from_source(str(target.file_in(copy)))).unlink()
            self._free.put(copy)
        self.original = target.file_in(copy).read_text(encoding="utf-8")

    def passes(self, source: str) -> bool:
        """Whether the tests pass with this text in the place of the target's own."""
        copy = self._free.get()
        try:
            self._target.file_in(copy).write_text(source, encoding="utf-8")
            tests = self._context.Process(target=_run_tests, args=(copy, self._target.module, self._target.tests))
            tests.start()
            tests.join(TIMEOUT_S)
            if tests.is_alive():
                _kill(tests)
                return False
        finally:
            self._free.put(copy)
        if tests.exitcode not in (0, 1, 2):  # passed; failed; could not be collected
            raise SystemExit(f"the tests of {self._target.module} could not be run: exit code {tests.exitcode}")
        return tests.exitcode == 0


def _run_tests(copy: Path, module: str, tests: Sequence[str]) -> None:
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
    os._exit(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *tests]))


def _kill(process: BaseProcess) -> None:
    assert process.pid
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()


def judge(target: Target) -> Iterator[Verdict]:
    with tempfile.TemporaryDirectory() as directory:
        copies = Copies(target, Path(directory).resolve())
        if not copies.passes(copies.original):
            raise SystemExit(f"the tests of {target.module} fail without any mutation")
        mutants = list(mutants_of(copies.original))
        with ThreadPoolExecutor(PROCESSES) as pool:
            survived = pool.map(copies.passes, (mutant.source for mutant in mutants))
            for mutant, survives in zip(mutants, survived, strict=True):
                yield Verdict(mutant, not survives)


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
