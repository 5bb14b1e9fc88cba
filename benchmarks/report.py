"""The measured tables as text, as Markdown and as JSON, with the facts about the machine that they depend on."""

import os
import platform
import statistics
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measure import Samples, ratio_to

_PACKAGES = ("google-adk", "google-genai", "a2a-sdk", "ag-ui-adk", "pydantic-ai-slim", "fastapi", "pydantic", "orjson")


@dataclass(frozen=True)
class Table:
    """Cases as rows; each column holds one figure per round for every case."""

    title: str
    unit: str
    baseline: str
    columns: dict[str, Samples]

    @property
    def cases(self) -> list[str]:
        return list(next(iter(self.columns.values())))


def machine_facts() -> dict[str, Any]:
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load at start": round(os.getloadavg()[0], 2),
        **{package: version(package) for package in _PACKAGES},
        # These change what ADK does for every event.
        "telemetry environment": sorted(name for name in os.environ if name.startswith(("OTEL_", "ADK_"))),
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def as_text(facts: dict[str, Any], tables: list[Table]) -> str:
    blocks = [_facts_line(facts)]
    for table in tables:
        grid = _grid(table)
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in grid]
        blocks.append("\n".join([_heading(table), *rows]))
    return "\n\n".join(blocks)


def as_markdown(facts: dict[str, Any], tables: list[Table]) -> str:
    blocks = []
    for table in tables:
        header, *rows = _grid(table)
        ruler = ["---"] * len(header)
        lines = ["| " + " | ".join(cells) + " |" for cells in [header, ruler, *rows]]
        blocks += [f"**{_heading(table)}**", "\n".join(lines)]
    return "\n\n".join([*blocks, _facts_line(facts)])


def as_json(facts: dict[str, Any], tables: list[Table]) -> dict[str, Any]:
    return {
        "facts": facts,
        "tables": [
            {
                "title": table.title,
                "unit": table.unit,
                "baseline": table.baseline,
                "columns": {
                    title: {
                        case: {
                            "median": statistics.median(figures),
                            "ratio": asdict(ratio_to(samples[table.baseline], figures)),
                            "rounds": figures,
                        }
                        for case, figures in samples.items()
                    }
                    for title, samples in table.columns.items()
                },
            }
            for table in tables
        ],
    }


def _heading(table: Table) -> str:
    return f"{table.title}: median {table.unit}, ratio to {table.baseline} [quartiles]"


def _grid(table: Table) -> list[list[str]]:
    header = ["", *table.columns]
    return [header] + [
        [case, *(_cell(samples, case, table.baseline) for samples in table.columns.values())] for case in table.cases
    ]


def _cell(samples: Samples, case: str, baseline: str) -> str:
    median = statistics.median(samples[case])
    figure = f"{median:.0f}" if median >= 100 else f"{median:.3g}"
    ratio = ratio_to(samples[baseline], samples[case])
    if case == baseline:
        return figure
    if len(samples[case]) == 1:
        return f"{figure}, {ratio.median:.2f}"
    return f"{figure}, {ratio.median:.2f} [{ratio.lower_quartile:.2f}-{ratio.upper_quartile:.2f}]"


def _facts_line(facts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items() if value != []) + "."
