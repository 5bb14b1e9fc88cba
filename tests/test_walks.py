"""The walks through the code lead through files and functions that exist, and no page names a file that is gone."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "adk_stream_protocol"
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
EVERY_PAGE = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
HOP = re.compile(r"`([\w/]+\.py):([\w.]+)`")


def names_in(body: list[ast.stmt], inside: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{inside}{node.name}"
            yield from names_in(node.body, f"{inside}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (f"{inside}{target.id}" for target in targets if isinstance(target, ast.Name))


@cache
def names_of(file: str) -> frozenset[str]:
    return frozenset(names_in(ast.parse((PACKAGE / file).read_text()).body))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_hop_exists(page: Path) -> None:
    hops = HOP.findall(page.read_text())
    assert hops
    for file, name in hops:
        assert (PACKAGE / file).exists(), file
        assert name in names_of(file), f"{file}:{name}"


def test_every_folder_and_file_that_is_named_exists() -> None:
    for page in PAGES:
        named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", page.read_text())
        for path in named:
            assert (PACKAGE / path).exists() or (ROOT / path).exists(), path


def test_an_approval_in_request_mode_goes_through_at_most_14_files() -> None:
    page = (ROOT / "docs" / "contributing" / "walks.md").read_text()
    walk = page.split("## An approval in request mode")[1].split("\n## ")[0]
    assert len({file for file, _ in HOP.findall(walk)}) <= 14


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_file_that_is_gone(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:[a-z_]+/)+\w+\.py)\b", text):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path
    for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link
