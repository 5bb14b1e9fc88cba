"""What `make bench` makes of its figures: a comparison of two results, and a picture."""

import importlib.util
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def figures(low: float, median: float, high: float) -> dict[str, Any]:
    ratio = {"lower_quartile": low, "median": median, "upper_quartile": high}
    one = {"lower_quartile": 1.0, "median": 1.0, "upper_quartile": 1.0}
    cases = {"raw": {"ratio": one}, "ours": {"ratio": ratio}}
    columns = {pace: cases for pace in ("idle", "nap", "burst8")}
    facts = {"python": "CPython 3.11", "google-adk": "2.13", "ag-ui-adk": "0.11", "cores": 2}
    return {"facts": facts, "tables": [{"title": "A turn", "baseline": "raw", "columns": columns}]}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (figures(0.29, 0.30, 0.31), {"slower"}),
        (figures(0.17, 0.18, 0.19), {"faster"}),
        (figures(0.24, 0.30, 0.36), set[str]()),  # it may be noise
        (figures(0.261, 0.27, 0.28), set[str]()),  # it is not noise, and not much
    ],
)
def test_what_got_slower_beyond_the_noise_is_said(after: dict[str, Any], said: set[str]) -> None:
    assert {kind for kind, _ in load("compare").compare(figures(0.24, 0.25, 0.26), after)} == said


def test_the_picture_shows_each_case_as_long_as_its_figure() -> None:
    result = figures(0.24, 0.25, 0.26)
    drawn = ElementTree.fromstring(load("plot").draw(result["tables"][0], result["facts"]))
    bars = [float(found.get("width", "0")) for found in drawn.iter() if found.get("height") == "12"]
    assert len(bars) == 6
    assert bars[3] == pytest.approx(bars[0] / 4, rel=0.01)
