"""The mutation tool itself: it makes the mistakes it is meant to make, and tells good tests from bad ones."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from mutation import mutate
from mutation.mutants import mutants_of
from mutation.mutate import Target, judge

SOURCE = '''
    """A text of no effect."""
    from typing import Any

    TABLE: dict[str, int] = {"a": 1, "b": f(2)}


    class Kind(Base, frozen=True):
        """Of no effect either."""
        name: str = "x"


    @wrapped
    def decide(now: float, by: Any = None, *, last: bool = True) -> "str":
        if now >= 3 and not by:
            raise ValueError(f"late by {now}")
        try:
            note(now, reason=by)
        except KeyError:
            now = -now
        return now if by is None else now + 1.5
'''
EXPECTED = """
    module: "a": 1 -> **{}
    module: 1 -> (f(2))
    module: "b": f(2) -> **{}
    module: f(2) -> (1)
    module: "a" -> ('amutant')
    module: "b" -> ('bmutant')
    module: 1 -> (2)
    module: f(2) -> (2)
    module: 2 -> (3)
    Kind: True -> (False)
    Kind: "x" -> ('xmutant')
    decide: wrapped -> (lambda undecorated: undecorated)
    decide: True -> (False)
    decide: None -> ('mutant')
    decide: now >= 3 and not by -> True
    decide: now >= 3 and not by -> False
    decide: now >= 3 and not by -> (now >= 3 or not by)
    decide: now >= 3 and not by -> (not by)
    decide: now >= 3 and not by -> (now >= 3)
    decide: now >= 3 -> (now > 3)
    decide: now >= 3 -> (now < 3)
    decide: 3 -> (4)
    decide: not by -> (by)
    decide: raise ValueError(f"late by {now}") -> pass
    decide: ValueError(f"late by {now}") -> (f'late by {now}')
    decide: f"late by {now}" -> ('mutant')
    decide: note(now, reason=by) -> pass
    decide: reason=by -> **{}
    decide: now = -now -> raise
    decide: now = -now -> pass
    decide: -now -> (now)
    decide: now if by is None else now + 1.5 -> None
    decide: by is None -> True
    decide: by is None -> False
    decide: by is None -> (by is not None)
    decide: now + 1.5 -> (now - 1.5)
    decide: 1.5 -> (2.5)
"""


def test_every_small_mistake_is_made_once_and_only_in_code_that_runs() -> None:
    made = list(mutants_of(dedent(SOURCE)))
    assert sorted(mutant.name for mutant in made) == sorted(dedent(EXPECTED).strip().splitlines())
    originals = dedent(SOURCE).splitlines()
    for mutant in made:
        ast.parse(mutant.source)
        assert mutant.source.splitlines()[mutant.line - 1] != originals[mutant.line - 1]


def tiny_target(directory: Path, tests: str) -> Target:
    package = directory / "tiny"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "core.py").write_text("def is_late(now: int, deadline: int) -> bool:\n    return now >= deadline\n")
    test_file = directory / "test_tiny.py"
    test_file.write_text(f"from tiny.core import is_late\n\ndef test_it():\n    {tests}\n")
    return Target("tiny.core", [str(test_file)], package)


@pytest.mark.parametrize(
    ("tests", "survivors"),
    [
        ("assert is_late(2, 1) and not is_late(1, 2)", ["is_late: now >= deadline -> (now > deadline)"]),
        ("assert is_late(2, 1) and is_late(1, 1) and not is_late(1, 2)", []),
    ],
    ids=["weak", "strong"],
)
def test_a_mutant_survives_weak_tests_and_no_others(tmp_path: Path, tests: str, survivors: list[str]) -> None:
    verdicts = list(judge(tiny_target(tmp_path, tests)))
    assert [verdict.mutant.name for verdict in verdicts if not verdict.killed] == survivors
    assert len(verdicts) == 3


def test_a_mistake_outside_of_functions_is_made_too(tmp_path: Path) -> None:
    target = tiny_target(tmp_path, "assert is_late(3) and not is_late(2)")
    core = target.package / "core.py"
    core.write_text("LIMIT, UNUSED = 3, 7\n\ndef is_late(now: int) -> bool:\n    return now >= LIMIT\n")
    survivors = [verdict.mutant.name for verdict in judge(target) if not verdict.killed]
    assert survivors == ["module: 7 -> (8)"]


def test_tests_that_fail_anyway_kill_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="fail without any mutation"):
        list(judge(tiny_target(tmp_path, "assert is_late(1, 2)")))


def test_tests_that_cannot_be_collected_kill_nothing(tmp_path: Path) -> None:
    target = tiny_target(tmp_path, "assert is_late(2, 1) and not is_late(1, 2)")
    broken = tmp_path / "test_broken.py"
    broken.write_text("import missing\n")
    with pytest.raises(SystemExit, match="fail without any mutation"):
        list(judge(target._replace(tests=[*target.tests, str(broken)])))


def test_tests_that_see_another_copy_kill_nothing(tmp_path: Path) -> None:
    target = tiny_target(tmp_path, "pass")
    package = target.package.rename(tmp_path / "__phello__")  # one that Python has built in, and looks up first
    (package / "core.py").rename(package / "spam.py")
    with pytest.raises(SystemExit, match=f"exit code {mutate.NOT_THE_COPY}"):
        list(judge(Target("__phello__.spam", target.tests, package)))
