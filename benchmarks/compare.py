"""Says what got slower between two results: `compare.py BEFORE.json AFTER.json`. Exits with 1 if anything did.

A figure counts as slower, or faster, if its quartiles do not overlap with those of before and its median has moved by
more than a tenth. Ratios are compared where there are some, since another day is another machine.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NOISE = 1.10


def compare(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(better or worse, what)."""
    known = dict(_figures(before))
    for name, (low, median, high) in _figures(after):
        if name not in known:
            continue
        old_low, old_median, old_high = known[name]
        if median > old_median * _NOISE and low > old_high:
            yield (
                "slower",
                f"{name}: {old_median:.2f} [{old_low:.2f}-{old_high:.2f}] -> {median:.2f} [{low:.2f}-{high:.2f}]",
            )
        elif median * _NOISE < old_median and high < old_low:
            yield (
                "faster",
                f"{name}: {old_median:.2f} [{old_low:.2f}-{old_high:.2f}] -> {median:.2f} [{low:.2f}-{high:.2f}]",
            )


def _figures(result: dict[str, Any]) -> Iterator[tuple[str, tuple[float, float, float]]]:
    for table in result.get("tables", []):
        for column, cases in table["columns"].items():
            for case, figures in cases.items():
                if case != table["baseline"]:
                    ratio = figures["ratio"]
                    name = f"{table['title']}, {column}, {case} (ratio to {table['baseline']})"
                    yield name, (ratio["lower_quartile"], ratio["median"], ratio["upper_quartile"])


def main() -> None:
    before, after = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    for fact in before["facts"].keys() | after["facts"].keys():
        if before["facts"].get(fact) != after["facts"].get(fact):
            print(f"differs: {fact}: {before['facts'].get(fact)} -> {after['facts'].get(fact)}")
    found = list(compare(before, after))
    for kind, what in sorted(found):
        print(f"{kind}: {what}")
    if not found:
        print("nothing got slower or faster beyond the noise")
    sys.exit(any(kind == "slower" for kind, _ in found))


if __name__ == "__main__":
    main()
