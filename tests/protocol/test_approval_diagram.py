"""The page about waiting calls shows the table that runs, and explains every state of it."""

import re

import pytest

from adk_stream_protocol.protocol.call_record import TABLE, Move, State
from protocol.approval_diagram import PAGE, diagram, diagram_on, with_diagram


def test_the_page_shows_the_table_that_runs() -> None:
    assert diagram_on(PAGE.read_text(encoding="utf-8")) == diagram(), "run tests/protocol/approval_diagram.py"


def test_the_page_explains_each_state_once() -> None:
    titles = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert titles == [state.value for state in State]


def test_each_row_of_the_table_is_an_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    arrows = [line for line in diagram().splitlines() if "-->" in line and "[*]" not in line]
    assert len(arrows) == len(TABLE)
    assert "    claimed --> approved : lose run" in arrows
    assert "    started --> UNKNOWN : lose run" in arrows
    monkeypatch.setitem(TABLE, (State.UNKNOWN, Move.CLAIM), State.CLAIMED)
    assert "    UNKNOWN --> claimed : claim" in diagram().splitlines()


def test_a_new_diagram_leaves_the_rest_of_the_page_alone() -> None:
    page = "# Title\n\n```mermaid\nold\n```\n\n```sh\nkept\n```\n"
    assert with_diagram(page) == f"# Title\n\n```mermaid\n{diagram()}```\n\n```sh\nkept\n```\n"
