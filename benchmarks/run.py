"""What a turn costs: bare ADK, ADK's own serialisation, ag-ui-adk and this library, in one process.

    make bench
    .bench-venv/bin/python benchmarks/run.py --rounds 5 --json figures.json

Over real HTTP, with ADK's own server and pydantic-ai beside: `load.py`. What a running answer holds: `memory.py`.

The environment holds `a2a-sdk` on purpose. Where it is missing, ADK retries the import of its A2A agent on
every run and executes two modules again (compiling them too under PYTHONDONTWRITEBYTECODE=1): up to 15 ms
that every case would pay and that would pull all ratios towards 1.
"""

# ruff: noqa: E402
import sys

# Before anything is imported, so that every module has its compiled file whatever the shell says.
sys.dont_write_bytecode = False

import argparse
import asyncio
import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

from latency import latency_of_words
from report import Table, as_json, as_markdown, as_text, machine_facts
from sections import cost_of_encoding, cost_per_delta, cost_to_first_text
from tool_turns import cost_of_tools


def main() -> None:
    options = _options()
    if find_spec("a2a") is None:
        sys.exit("a2a-sdk is missing here, which falsifies every ratio: install benchmarks/requirements.txt")
    warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]")
    facts = machine_facts()
    tables = asyncio.run(_measured(options.deltas, options.rounds))
    render = as_markdown if options.markdown else as_text
    print(render(facts, tables))
    if options.json:
        options.json.write_text(json.dumps(as_json(facts, tables), indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21, help="paired rounds per figure (default 21)")
    parser.add_argument("--deltas", type=int, nargs="+", default=[1000, 100], help="text deltas of a turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every round to FILE")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    return parser.parse_args()


async def _measured(delta_counts: list[int], rounds: int) -> list[Table]:
    began_at = time.monotonic()

    def progress(what: str) -> None:
        print(f"{time.monotonic() - began_at:5.0f} s  {what}", file=sys.stderr)

    tables = [await cost_per_delta(delta_count, rounds, progress) for delta_count in delta_counts]
    tables += await cost_of_encoding(rounds, progress)
    tables.append(await cost_to_first_text(rounds, progress))
    tables += await cost_of_tools(rounds, progress)
    tables.append(await latency_of_words(max(delta_counts), rounds, progress))
    progress("done")
    return tables


if __name__ == "__main__":
    main()
