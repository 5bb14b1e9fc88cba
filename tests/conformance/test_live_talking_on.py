"""Real clients over one socket, where the conversation could go on while they decide: they see the same messages."""

from collections.abc import Iterator

import pytest

from conformance.node import NodeDriver
from conformance.pages import without_made_up
from conformance.scenarios import LIVE_SCENARIOS, Scenario
from conformance.test_live import FAMILIES, Family, Theatre, Transport, live_demos

NAMES = ["payment approved", "payment denied", "location approved", "one, then the other", "together", "both approved"]
ROWS = [(family, found) for family in FAMILIES for found in LIVE_SCENARIOS[family] if found.name in NAMES]


@pytest.fixture(scope="module")
def theatre(node: NodeDriver) -> Iterator[Theatre]:
    with live_demos(live_while_waiting="continue") as origins:
        yield Theatre(node, origins)


@pytest.mark.parametrize(("family", "scenario"), ROWS, ids=[f"{found.name}-{family}" for family, found in ROWS])
@pytest.mark.parametrize(("transport", "release"), [("official", "7"), ("ours", "6")])
def test_a_stock_page_answers_its_cards_as_in_request_mode(
    theatre: Theatre, family: Family, scenario: Scenario, transport: Transport, release: str
) -> None:
    chat = theatre.play(family, scenario, transport, release)
    assert chat.wire == scenario.wire
    assert chat.ends == scenario.ends
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()
    asked = theatre.play(family, scenario, "http", "7")
    assert without_made_up(chat.messages) == without_made_up(asked.messages)
