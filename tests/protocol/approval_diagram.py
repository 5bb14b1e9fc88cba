"""Draws the table of waiting calls. `python tests/protocol/approval_diagram.py` puts it into the page about them."""

import re
from pathlib import Path

from adk_stream_protocol.protocol.call_record import FINAL, TABLE, Move, State

PAGE = Path(__file__).parents[2] / "docs" / "topics" / "approval-states.md"
_FENCED = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def diagram() -> str:
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{state}" as {state.name}' for state in State if state != state.name.lower()]
    lines += [
        f"    [*] --> {_id(State.PENDING)} : asked",
        f"    [*] --> {_id(State.IN_CHAIN)} : asked in a chain",
        f"    [*] --> {_id(State.APPROVED)} : asked of a browser, with nothing to approve; or decided by policy",
    ]
    reached = frozenset(TABLE.values())
    rows = [(before, move) for before in State for move in Move if (before, move) in TABLE]
    lines += [f"    {_id(before)} --> {_id(TABLE[before, move])} : {move}" for before, move in rows]
    lines += [f"    {_id(state)} --> [*]" for state in State if state in FINAL & reached]
    return "\n".join(lines) + "\n"


def _id(state: State) -> str:
    return state.value if state == state.name.lower() else state.name  # Mermaid's ids are single words


def diagram_on(page: str) -> str:
    (found,) = _FENCED.findall(page)
    return found


def with_diagram(page: str) -> str:
    return _FENCED.sub(lambda _: diagram(), page)


if __name__ == "__main__":
    PAGE.write_text(with_diagram(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
