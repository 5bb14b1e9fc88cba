"""Whoever comes from the design notes finds what their names have become, and a test of each that exists."""

import ast
import re

import pytest

from test_walks import HOP, PACKAGE, ROOT, names_in, names_of

PAGE = (ROOT / "docs" / "topics" / "design-notes.md").read_text()
ROWS = [row for row in PAGE.split("## How a call is answered")[0].splitlines() if re.match(r"\| (?!In the notes)", row)]
NAMES = [
    *("BidiEventSender", "_handle_confirmation_if_needed", "BidiEventReceiver", "ApprovalQueue"),
    *("ConfirmationInterceptor", "ToolConfirmationDelegate", "FrontendToolDelegate", "frontend_tool_registry"),
    *("pre-resolution cache", "ADKVercelIDMapper", "confirmation_id_mapping", "pending_long_running_calls"),
    *("stream_protocol.py", "adk_ag_tools", "adk_ag_runner", "sendToolResult", "handleConfirmation"),
    *("SSE mode", "BIDI mode", "Pattern A", "Pattern B"),
    *(f"ADR 00{number:02}" for number in range(2, 12)),
]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_name_has_one_row() -> None:
    named = [row.split("|")[1].strip().replace("`", "") for row in ROWS]
    assert [name.split(":")[0] for name in named] == NAMES


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_each_row_names_a_test(row: str) -> None:
    assert TEST.search(row.split("|")[-2])


def test_the_tests_exist() -> None:
    for file, name in TEST.findall(PAGE):
        assert name in set(names_in(ast.parse((ROOT / file).read_text()).body)), f"{file}::{name}"


def test_the_files_and_functions_exist() -> None:
    hops = HOP.findall(PAGE)
    assert hops
    for file, name in hops:
        assert (PACKAGE / file).exists(), file
        assert name in names_of(file), f"{file}:{name}"
