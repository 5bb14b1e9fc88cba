"""The fast part of the tests with each release of ADK and of Python that is supported: `make test-matrix`.

Environments are in `.matrix/` and are kept. `run.py py3.12 adk2.11` runs some of the cells only.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".matrix"
UV = ROOT / ".venv" / "bin" / "uv"

FAST_PART = (
    "tests/adk",
    "tests/demo",
    "tests/chat/test_answers_beside_work.py",
    "tests/chat/test_answers_flow.py",
    "tests/chat/test_answers_stopped.py",
    "tests/chat/test_service_draining.py",
    "tests/chat/test_service_draining_unasked.py",
    "tests/chat/test_turns_regenerate.py",
    "tests/transports/test_http.py",
    "tests/transports/test_router.py",
    "tests/live/test_live_approvals.py",
    "tests/live/test_live_both_modes.py",
    "tests/live/test_live_browser_tools.py",
)
OWN_WARNINGS = (  # of older ADKs, about themselves
    "ignore:SelectableGroups dict interface is deprecated:DeprecationWarning",
    "ignore:[EXPERIMENTAL] feature:UserWarning",
    "ignore:MCPTool class is deprecated:DeprecationWarning",
)


@dataclass(frozen=True)
class Cell:
    python: str
    adk: str | None = None
    """None: the one in constraints.txt."""

    @property
    def name(self) -> str:
        return f"adk{self.adk}" if self.adk else f"py{self.python}"

    @property
    def executable(self) -> Path:
        return ENVIRONMENTS / self.name / "bin" / "python"


CELLS = [Cell("3.11"), Cell("3.12"), Cell("3.13"), *(Cell("3.11", f"2.{minor}") for minor in (10, 11, 12))]


def interpreter(version: str) -> str | None:
    """pyenv's own interpreters: its shims find only those that a folder has chosen."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(kept.glob(f"{version}.*/bin/python"), key=lambda path: int(path.parts[-3].rpartition(".")[2]))
    if found:
        return str(found[-1])
    asked = subprocess.run([UV, "python", "find", "--no-python-downloads", version], capture_output=True, text=True)
    return asked.stdout.strip() or None


def set_up(cell: Cell, python: str) -> None:
    if not cell.executable.exists():
        subprocess.run([UV, "venv", "--quiet", "--python", python, ENVIRONMENTS / cell.name], check=True)
    # Older ADKs do not go with the other versions in constraints.txt.
    chosen = [f"google-adk=={cell.adk}.*"] if cell.adk else ["--constraint", "constraints.txt"]
    install = [UV, "pip", "install", "--quiet", "--python", cell.executable, "--editable", ".[dev]", *chosen]
    subprocess.run(install, cwd=ROOT, check=True)


def outcome(cell: Cell) -> str:
    python = interpreter(cell.python)
    if python is None:
        return "not run: no such Python here"
    set_up(cell, python)
    path = {"PATH": f"{cell.executable.parent}{os.pathsep}{os.environ['PATH']}"}
    ignored = [part for warning in OWN_WARNINGS if cell.adk for part in ("-W", warning)]
    tests = [cell.executable, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", *ignored, *FAST_PART]
    ran = subprocess.run(tests, cwd=ROOT, env={**os.environ, **path}, stdout=subprocess.PIPE, text=True)
    (ENVIRONMENTS / f"{cell.name}.log").write_text(ran.stdout)
    if ran.returncode:
        print(ran.stdout[-20_000:])
    last = ran.stdout.strip().rpartition("\n")[2].strip("= ")
    return last if ran.returncode == 0 else f"FAILED: {last}"


def main(names: list[str]) -> int:
    ENVIRONMENTS.mkdir(exist_ok=True)
    chosen = [cell for cell in CELLS if not names or cell.name in names]
    outcomes: dict[Cell, str] = {}
    for cell in chosen:
        print(f"== {cell.name}", flush=True)
        outcomes[cell] = outcome(cell)
    print(f"\n{'Python':8} {'google-adk':16} outcome")
    for cell, result in outcomes.items():
        print(f"{cell.python:8} {cell.adk or 'constraints.txt':16} {result}")
    return 1 if not chosen or any(result.startswith("FAILED") for result in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
