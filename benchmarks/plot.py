"""Draws what a word costs: `plot.py figures.json cost.svg`. From the first table of `run.py --json`."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_NAMES = {
    "raw": "bare ADK",
    "run_sse": "+ ADK's /run_sse serialisation",
    "ag-ui-adk endpoint": "ag-ui-adk endpoint",
    "ours, all through ADK": "this library, words watched",
    "ours": "this library",
}
_PACES = {"idle": "one by one", "nap": "one a loop turn", "burst8": "eight at a time"}
_SHADES = ("#2563eb", "#60a5fa", "#bfdbfe")
_LEFT, _WIDE, _BAR, _GAP = 230, 420, 14, 16


def draw(table: dict[str, Any], facts: dict[str, Any]) -> str:
    cases = [case for case in _NAMES if all(case in column for column in table["columns"].values())]
    ratios = {
        (case, pace): table["columns"][pace][case]["ratio"] if case != table["baseline"] else _ONE
        for case in cases
        for pace in _PACES
    }
    scale = _WIDE / max(ratio["upper_quartile"] for ratio in ratios.values())
    rows: list[str] = []
    top = 56
    for case in cases:
        weight = ' font-weight="600"' if case == "ours" else ""
        rows.append(
            f'<text x="{_LEFT - 10}" y="{top + 1.5 * _BAR + 4}" text-anchor="end"{weight}>{escape(_NAMES[case])}</text>'
        )
        for pace, shade in zip(_PACES, _SHADES, strict=True):
            rows.append(_bar(top, ratios[case, pace], scale, shade))
            top += _BAR
        top += _GAP
    one = _LEFT + scale
    line = f'<line x1="{one:.1f}" y1="44" x2="{one:.1f}" y2="{top - _GAP + 4}" stroke="#888" stroke-dasharray="3 3"/>'
    legend = [
        f'<rect x="{_LEFT + 140 * place}" y="22" width="10" height="10" fill="{shade}"/>'
        f'<text x="{_LEFT + 140 * place + 15}" y="31">{escape(pace)}</text>'
        for place, (pace, shade) in enumerate(zip(_PACES.values(), _SHADES, strict=True))
    ]
    title = "CPU of a turn of 1,000 words, bare ADK = 1 (median of paired rounds, lines: quartiles)"
    about = (
        f"{facts['python']}, google-adk {facts['google-adk']}, ag-ui-adk {facts['ag-ui-adk']}, {facts['cores']} cores"
    )
    body = "\n".join([f'<text x="10" y="14" font-weight="600">{title}</text>', *legend, line, *rows])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {top + 14}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#333">\n<title>{title}</title>\n'
        f'<rect width="700" height="{top + 14}" fill="#fff"/>\n{body}\n'
        f'<text x="10" y="{top + 6}" font-size="10" fill="#666">{escape(about)}</text>\n</svg>\n'
    )


_ONE = {"median": 1.0, "lower_quartile": 1.0, "upper_quartile": 1.0}


def _bar(top: float, ratio: dict[str, float], scale: float, shade: str) -> str:
    end, low, high = (_LEFT + scale * ratio[name] for name in ("median", "lower_quartile", "upper_quartile"))
    middle = top + _BAR / 2
    return (
        f'<rect x="{_LEFT}" y="{top}" width="{end - _LEFT:.1f}" height="{_BAR - 2}" fill="{shade}"/>'
        f'<line x1="{low:.1f}" y1="{middle - 1:.1f}" x2="{high:.1f}" y2="{middle - 1:.1f}" stroke="#1e3a8a"/>'
        f'<text x="{high + 5:.1f}" y="{middle + 3:.1f}" font-size="10">{ratio["median"]:.2f}</text>'
    )


def main() -> None:
    result = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(draw(result["tables"][0], result["facts"]))


if __name__ == "__main__":
    main()
