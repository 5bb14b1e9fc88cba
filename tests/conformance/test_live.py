"""Live mode through real clients: the AI SDK's own WebSocket transport, and ours for releases that have none. Every
scenario looks as in request mode, and ends with the same messages."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from google.adk.agents.run_config import RunConfig
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Limits
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from conformance.node import NodeDriver
from conformance.pages import (
    RESUME,
    Conversation,
    Step,
    Transport,
    approve,
    deny,
    elsewhere,
    is_told_unasked,
    ran,
    say,
    without_made_up,
)
from conformance.scenarios import LIVE_SCENARIOS, LOCATED, MUSIC, PAY, PAY_ONE_THEN_ANOTHER, WHERE, Scenario
from support.apps import app_of, user_of
from support.live_server import serving

Family = Literal["2.5", "3"]
FAMILIES: tuple[Family, ...] = ("2.5", "3")
every_family = pytest.mark.parametrize("family", FAMILIES)

every_client = pytest.mark.parametrize(("transport", "release"), [("official", "7"), ("ours", "6"), ("ours", "7")])
newest_clients = pytest.mark.parametrize(("transport", "release"), [("official", "7"), ("ours", "7")])
VERSION_5 = {"x-ai-sdk-version": "5"}
YES, NO = (ran("adk_request_confirmation", {"confirmed": confirmed}) for confirmed in (True, False))

our_client = pytest.mark.parametrize("release", ["6", "7"])

ROWS = [(family, scenario) for family in FAMILIES for scenario in LIVE_SCENARIOS[family]]
every_row = pytest.mark.parametrize(
    ("family", "scenario"), ROWS, ids=[f"{scenario.name}-{family}" for family, scenario in ROWS]
)


@contextmanager
def live_demo(family: Family, **options: Any) -> Generator[str]:
    agent = build_agent(OfflineModel(live_family=family))
    run_config = RunConfig(response_modalities=[types.Modality.TEXT])
    options.setdefault("limits", Limits(max_runs_per_user=1000))  # one user has all the chats
    with serving(app_of(ChatBridge(agent, user_id=user_of, run_config=run_config, **options))) as origin:
        yield origin


@contextmanager
def live_demos(**options: Any) -> Generator[dict[Family, str]]:
    with live_demo("2.5", **options) as one_call, live_demo("3", **options) as many_calls:
        yield {"2.5": one_call, "3": many_calls}


@dataclass
class Theatre:
    """Each scenario is played once with each client, and looked at by several tests."""

    node: NodeDriver
    origins: dict[Family, str]
    _played: dict[tuple[str, ...], Conversation] = field(default_factory=dict[tuple[str, ...], Conversation])

    def play(self, family: Family, scenario: Scenario, transport: Transport, release: str) -> Conversation:
        key = (family, scenario.name, transport, release)
        if key not in self._played:
            chat = self.chat(family, transport, release)
            steps = scenario.steps_of_a_page_that_stays
            if transport == "http" and scenario.one_by_one is not None:
                steps[0] = scenario.one_by_one
            chat.open_page(*steps, resend=scenario.resend, browserTools=scenario.run_when_told)
            self._played[key] = chat
        return self._played[key]

    def chat(self, family: Family, transport: Transport, release: str) -> Conversation:
        return Conversation(self.node, release, self.origins[family], transport=transport)


@pytest.fixture(scope="module")
def theatre(node: NodeDriver) -> Iterator[Theatre]:
    with live_demos() as origins:
        yield Theatre(node, origins)


# -- rows of the scenarios --------------------------------------------------------------------------------------------


@every_row
@every_client
def test_a_stock_page_sees_it_through_over_one_socket(
    theatre: Theatre, family: Family, scenario: Scenario, transport: Transport, release: str
) -> None:
    chat = theatre.play(family, scenario, transport, release)
    assert chat.wire == scenario.wire
    assert chat.ends == scenario.ends
    assert chat.spoken.startswith(scenario.tells)
    assert chat.methods == ["send"] * len(scenario.wire.split(" || "))
    assert [frame["type"] for frame in chat.own_frames] == ["attached"] * (transport == "ours")
    run_by_browser = [call["toolName"] for call in chat.tool_calls if call["toolName"] in scenario.browser_tools]
    assert sorted(run_by_browser) == sorted(scenario.run_when_told)
    assert len(chat.messages) == 2
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


@every_row
@every_client
def test_live_and_request_mode_end_with_the_same_message(
    theatre: Theatre, family: Family, scenario: Scenario, transport: Transport, release: str
) -> None:
    plays = theatre.play(family, scenario, transport, release), theatre.play(family, scenario, "http", "7")
    live, asked = (without_made_up(play.messages) for play in plays)
    if scenario.one_by_one is not None:  # other words, of which a model reads more or less
        for messages in (live, asked):
            messages[0].pop("parts")
            messages[1].pop("metadata")
    assert live == asked


@pytest.mark.parametrize("release", ["6.0.0", "7.0.0"])
@pytest.mark.parametrize("scenario", LIVE_SCENARIOS["2.5"], ids=lambda scenario: scenario.name)
def test_the_first_releases_see_it_through_over_our_transport(
    theatre: Theatre, release: str, scenario: Scenario
) -> None:
    chat = theatre.play("2.5", scenario, "ours", release)
    assert (chat.wire, chat.ends) == (scenario.wire, scenario.ends)
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


@every_family
@pytest.mark.parametrize(
    ("steps", "wire", "ends", "tells"),
    [
        ((PAY, YES), "start I1 I2 F || start O1 X F", "OO", "Paid 50 USD to Hanako."),
        ((PAY, NO), "start I1 I2 F || start E1 X F", "EO", "The payment of 50 USD to Hanako was denied."),
        ((WHERE, LOCATED, YES), "start I1 I2 F || start X F", "OO", "You are at latitude 35.68"),
        ((WHERE, NO), "start I1 I2 F || start E1 X F", "EO", "The request for your location was denied."),
    ],
    ids=["yes", "no", "location", "no location"],
)
def test_release_5_answers_by_the_confirmation_tool_over_our_transport(
    theatre: Theatre, family: Family, steps: tuple[Step, ...], wire: str, ends: str, tells: str
) -> None:
    chat = theatre.chat(family, "ours", "5")
    chat.headers = VERSION_5
    chat.open_page(*steps)
    assert (chat.wire, chat.ends) == (wire, ends)
    assert chat.spoken.startswith(tells)
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


# -- a page that is loaded anew ---------------------------------------------------------------------------------------


MAIN_ROWS = [row for row in LIVE_SCENARIOS["2.5"] if row.resend == "both" and "fails" not in row.name]
every_main_row = pytest.mark.parametrize("scenario", MAIN_ROWS, ids=lambda scenario: scenario.name)


@pytest.fixture(scope="module", params=[30, 0], ids=["session waits", "session ends"])
def reloaded_at(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether the live session is still there when the next page comes, or has to be begun anew."""
    with live_demo("2.5", limits=Limits(live_grace_s=request.param, max_runs_per_user=1000)) as origin:
        yield origin


@every_main_row
@newest_clients
def test_a_page_that_is_loaded_anew_after_every_request_goes_on_where_the_last_one_was(
    node: NodeDriver, reloaded_at: str, transport: Transport, release: str, scenario: Scenario
) -> None:
    chat = Conversation(node, release, reloaded_at, transport=transport)
    for steps in scenario.visits:
        chat.open_page(RESUME, *steps)
        assert chat.is_what_the_server_kept()
    assert (chat.wire, chat.ends) == (scenario.wire, scenario.ends)
    assert chat.spoken.startswith(scenario.tells)
    assert len(chat.messages) == 2
    assert chat.came_to_its_end()


# -- a second tab -----------------------------------------------------------------------------------------------------


@every_family
@our_client
@pytest.mark.parametrize(
    ("answer", "wire", "end"),
    [(approve(), "start I A F || start i A O X F", "O"), (deny(), "start I A F || start i A D X F", "D")],
    ids=["yes", "no"],
)
def test_what_another_tab_answers_over_http_is_told_to_the_live_page_without_a_word_of_its_own(
    theatre: Theatre, family: Family, release: str, answer: Step, wire: str, end: str
) -> None:
    chat = theatre.chat(family, "ours", release)
    page = chat.open_page(PAY, elsewhere(answer), is_told_unasked("text", state="done"))
    # The page resumes after the outcome (`i`: nothing runs again), or on a slow machine before it (`I`).
    assert chat.wire.replace("|| start I A", "|| start i A") == wire
    assert chat.ends == end
    assert chat.methods == ["send", "resume"]
    assert [frame["type"] for frame in chat.own_frames] == ["attached", "turn"]
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept(after_replay=True)
    [other] = page["otherTabs"]
    assert other == chat.kept()


@every_family
@newest_clients
@pytest.mark.parametrize("late_word", [approve(), deny()], ids=["yes", "no"])
def test_a_live_page_that_decides_after_another_tab_learns_what_was_decided(
    theatre: Theatre, family: Family, transport: Transport, release: str, late_word: Step
) -> None:
    chat = theatre.chat(family, transport, release)
    chat.open_page(PAY)
    before = chat.kept()
    over_http = chat.another_page()
    over_http.transport = "http"
    over_http.open_page(approve())
    assert over_http.wire == "start O X F"
    stale = chat.another_page()
    stale.open_page(late_word, initialMessages=before)
    assert (stale.wire, stale.ends) == ("start O F", "O")
    assert over_http.is_what_the_server_kept()


@every_family
@newest_clients
def test_a_chat_may_change_between_http_and_live_with_every_answer(
    theatre: Theatre, family: Family, transport: Transport, release: str
) -> None:
    chat = theatre.chat(family, transport, release)
    ways: tuple[Transport, ...] = ("http", transport, "http", transport)
    words = (PAY_ONE_THEN_ANOTHER, approve(), deny(), say("What is the weather in Tokyo?"))
    for way, step in zip(ways, words, strict=True):
        chat.open_page(step, transport=way)
    assert chat.wire == "start I1 A1 F || start O1 I2 A2 F || start D2 X F || start I3 O3 X F"
    assert chat.ends == "ODO"
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


# -- nobody answers in time -------------------------------------------------------------------------------------------


LATE = [
    (PAY, "start I A F || start i A E X F", "The payment of 50 USD to Hanako has expired"),
    (WHERE, "start i A F || start i A E X F", "The request for your location has expired"),
    (MUSIC, "start I F || start i E X F", "The change to track 1 has expired"),
]
every_late_row = pytest.mark.parametrize(("words", "wire", "tells"), LATE, ids=["payment", "location", "music"])


@pytest.fixture(scope="module")
def soon_late() -> Iterator[dict[Family, str]]:
    with live_demos(approvals=ApprovalPolicy(deadline_s=0.2, browser_deadline_s=0.2)) as origins:
        yield origins


@pytest.fixture(scope="module")
def never_in_time() -> Iterator[dict[Family, str]]:
    with live_demos(approvals=ApprovalPolicy(deadline_s=0, browser_deadline_s=0)) as origins:
        yield origins


@every_family
@our_client
@every_late_row
def test_at_the_deadline_the_page_is_told_without_a_word_of_its_own(
    node: NodeDriver, soon_late: dict[Family, str], family: Family, release: str, words: Step, wire: str, tells: str
) -> None:
    chat = Conversation(node, release, soon_late[family], transport="ours")
    chat.open_page(words, is_told_unasked("text", state="done"))
    assert chat.wire == wire
    assert chat.methods == ["send", "resume"]
    assert chat.ends == "E"
    assert chat.spoken.startswith(tells)
    assert len(chat.messages) == 2
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()


@every_family
@newest_clients
@pytest.mark.parametrize("late_word", [approve(), deny()], ids=["yes", "no"])
def test_a_page_that_was_not_told_of_the_deadline_learns_of_it_with_its_late_answer(
    node: NodeDriver, soon_late: dict[Family, str], family: Family, transport: Transport, release: str, late_word: Step
) -> None:
    told = Conversation(node, "7", soon_late[family], transport="ours")
    told.open_page(PAY, is_told_unasked("text", state="done"))
    asked = {**told.tools[0], "state": "approval-requested"}
    del asked["errorText"]
    user, answer = told.messages
    late = Conversation(node, release, soon_late[family], told.chat_id, transport=transport)
    late.open_page(late_word, initialMessages=[user, {**answer, "parts": [answer["parts"][0], asked]}])
    assert (late.wire, late.ends) == ("start E F", "E")
    assert told.is_what_the_server_kept()


@every_family
@every_client
def test_where_there_is_no_time_at_all_one_request_tells_the_whole_row(
    node: NodeDriver, never_in_time: dict[Family, str], family: Family, transport: Transport, release: str
) -> None:
    chat = Conversation(node, release, never_in_time[family], transport=transport)
    chat.open_page(PAY)
    assert (chat.wire, chat.ends) == ("start I A E X F", "E")
    assert chat.came_to_its_end()
    assert chat.is_what_the_server_kept()
    late = Conversation(node, release, never_in_time[family])
    late.open_page(PAY, approve())
    live, asked = without_made_up(chat.messages), without_made_up(late.messages)
    # Request mode goes on when somebody answers, whose late word stays on the card.
    assert asked[1]["parts"][1]["approval"].pop("approved")
    assert live == asked
