"""The walks through the code are what is called, and no page names a file that is gone."""

import ast
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import call
from support import pages
from support.pages import Page, Till

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


# -- what is really called --------------------------------------------------------------------------------------------


def walk(title: str) -> str:
    text = (ROOT / "docs" / "contributing" / "walks.md").read_text()
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def numbered_hops(title: str) -> list[tuple[str, str]]:
    """Of each numbered line the hops before its first colon: what follows explains them, or names another way."""
    lines = re.findall(r"^\d+\. ((?:`[^`]+`(?:, then |, with | and )?)+)", walk(title), re.MULTILINE)
    return [hop for line in lines for hop in HOP.findall(line)]


@contextmanager
def called() -> Generator[list[tuple[str, str]]]:
    """Every function of the library that is called meanwhile, in order."""
    found: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            found.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


async def say_words(at: Page) -> None:
    await at.say("Hello.")


async def approve(at: Page) -> None:
    await at.say("Pay.")
    at.decide("pay")
    await at.answer()


async def send_output(at: Page) -> None:
    await at.say("Where?")
    at.part("locate").update({"state": "output-available", "output": "Tokyo"})
    await at.chat.post({"id": "c1", "messages": at.messages})


WALKED = {
    "A text delta": (say_words, ["One two three four five six seven."]),
    "An approval in request mode": (approve, [[call("pay", amount=5)], "Paid."]),
    "A browser tool": (send_output, [[call("locate")], "There."]),
}


@pytest.mark.parametrize("title", WALKED)
async def test_a_walk_is_what_is_called_in_this_order(title: str) -> None:
    go, script = WALKED[title]
    hops = numbered_hops(title)
    assert len(hops) >= 8
    locate = client_tool("locate", "Where?", output={"type": "string"})
    async with pages.page(*script, tools=(Till().gated, locate)) as at:
        with called() as functions:
            await go(at)
    place = 0
    for hop in hops:
        assert hop in functions[place:], f"{hop} is not called here"
        place = functions.index(hop, place)


def test_an_approval_in_request_mode_goes_through_at_most_14_files() -> None:
    assert len({file for file, _ in HOP.findall(walk("An approval in request mode"))}) <= 14


# -- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_file_that_is_gone(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:[a-z_]+/)+\w+\.py)\b", text):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path
