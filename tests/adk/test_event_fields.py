"""The page about events lists what ADK has, no less and no more."""

import re
from pathlib import Path

import pytest
from google.adk.events import Event, EventActions
from google.genai import types
from pydantic import BaseModel

from adk_stream_protocol.adk.event_parts import FINISH_REASONS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"


def rows(title: str) -> list[tuple[str, str]]:
    """The first column's name and the second column of the table under a title."""
    sections = re.split(r"^#+ ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [section for section in sections if section.startswith(f"{title}\n")]
    return re.findall(r"^\| `(\w+)` \| (.+) \|$", section, flags=re.MULTILINE)


@pytest.mark.parametrize("model", [Event, EventActions, types.Part], ids=lambda model: model.__name__)
def test_the_page_lists_each_field_once(model: type[BaseModel]) -> None:
    listed = [name for name, _ in rows(f"`{model.__name__}`")]
    assert sorted(listed) == sorted(model.model_fields)


@pytest.mark.parametrize("model", [Event, EventActions, types.Part], ids=lambda model: model.__name__)
def test_what_is_not_sent_has_a_reason(model: type[BaseModel]) -> None:
    unexplained = [
        name
        for name, told in rows(f"`{model.__name__}`")
        if told.startswith("Not sent") and not re.match(r"Not sent[^:.]*: \w", told)
    ]
    assert unexplained == []


@pytest.mark.parametrize("reasons", [types.FinishReason, types.BlockedReason], ids=lambda reasons: reasons.__name__)
def test_each_reason_of_the_model_s_service_has_a_finish_reason(
    reasons: type[types.FinishReason] | type[types.BlockedReason],
) -> None:
    assert [reason.name for reason in reasons if reason.name not in FINISH_REASONS] == []


def test_each_finish_reason_is_known_to_every_release() -> None:
    assert set(FINISH_REASONS.values()) <= {"stop", "length", "content-filter", "tool-calls", "error", "other"}
