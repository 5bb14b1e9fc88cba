"""The harness itself, where pages answer calls: against canned streams."""

from __future__ import annotations

import pytest

from conformance.canned_server import Response, serve
from conformance.node import RELEASES, DriverError, NodeDriver
from conformance.pages import WITH_APPROVALS, approve, deny
from conformance.test_driver import FINISH, approval_request, text, tool_call, turn

every_release = pytest.mark.parametrize("release", RELEASES)
every_release_with_approvals = pytest.mark.parametrize("release", WITH_APPROVALS)


@every_release
@pytest.mark.parametrize(
    ("result", "state"), [({"output": 21}, "output-available"), ({"errorText": "no"}, "output-error")]
)
def test_a_page_runs_its_own_tools_and_no_others(
    node: NodeDriver, release: str, result: dict[str, object], state: str
) -> None:
    asked = turn(tool_call("thermometer", "c1"), tool_call("camera", "c2"))
    with serve(asked) as server:
        answer = node.chat(
            release=release, api=server.api, browserTools={"thermometer": result}, steps=[{"send": "go"}]
        )
    assert [call["toolName"] for call in answer["onToolCall"]] == ["thermometer", "camera"]
    _, thermometer, camera = answer["messages"][-1]["parts"]
    assert (thermometer["state"], camera["state"]) == (state, "input-available")
    assert {**thermometer, **result} == thermometer


@every_release
def test_what_a_page_answers_by_itself_is_posted_by_the_stock_helper(node: NodeDriver, release: str) -> None:
    with serve(turn(tool_call("thermometer")), turn(*text("Warm."))) as server:
        tools = {"thermometer": {"output": 21}}
        options = {"resend": "tool-calls", "browserTools": tools}
        answer = node.chat(release=release, api=server.api, steps=[{"send": "go"}], **options)
    assert len(answer["requests"]) == 2
    posted = answer["requests"][1]["body"]["messages"][-1]["parts"][-1]
    assert (posted["state"], posted["output"]) == ("output-available", 21)


@every_release
def test_a_page_that_answers_for_ever_is_a_resend_loop(node: NodeDriver, release: str) -> None:
    with serve(respond=lambda number: turn(tool_call("thermometer", f"c{number}"))) as server:
        options = {"resend": "tool-calls", "browserTools": {"thermometer": {"output": 21}}}
        answer = node.chat(release=release, api=server.api, steps=[{"send": "go"}], **options)
    assert answer["resendLoop"]


@every_release_with_approvals
def test_an_approval_is_answered_by_its_place_among_the_open_ones(node: NodeDriver, release: str) -> None:
    asked = turn(
        tool_call("erase", "c1"), tool_call("erase", "c2"), approval_request("a1", "c1"), approval_request("a2", "c2")
    )
    steps = [{"send": "go"}, {"waitIdle": True}, deny(1), approve()]
    with serve(asked) as server:
        answer = node.chat(release=release, api=server.api, steps=steps)
        with pytest.raises(DriverError, match="no call is waiting for this"):
            node.chat(release=release, api=server.api, initialMessages=answer["messages"], steps=[approve()])
    decisions = [part["approval"] for part in answer["messages"][-1]["parts"] if "approval" in part]
    assert decisions == [{"id": "a1", "approved": True}, {"id": "a2", "approved": False}]


@every_release
def test_the_beginning_of_an_answer_can_be_waited_for(node: NodeDriver, release: str) -> None:
    begins = Response([{"type": "start", "messageId": "m1"}], stays_open=True)
    steps = [{"send": "hi"}, {"waitAnswers": 1}, {"stop": True}]
    with serve(begins) as server:
        answer = node.chat(release=release, api=server.api, steps=steps)
        assert (answer["status"], answer["requests"][0]["response"]["complete"]) == ("ready", False)
    with serve(Response([FINISH])) as server, pytest.raises(DriverError, match="came to rest without it"):
        node.chat(release=release, api=server.api, steps=[{"send": "hi"}, {"waitAnswers": 2}])


@pytest.mark.parametrize("release", ["6", "7"])
def test_the_message_that_goes_on_is_posted_alone_also_when_others_follow_it(node: NodeDriver, release: str) -> None:
    asked = turn(tool_call("erase"), approval_request(), message_id="m1")
    steps = [{"send": "go"}, {"waitIdle": True}, {"send": "hi"}, {"waitIdle": True}, approve(), {"submit": True}]
    with serve(asked, turn(*text("Hello."), message_id="m2"), turn(message_id="m1")) as server:
        answer = node.chat(release=release, api=server.api, onlyLast=True, resend="both", steps=steps)
    posted = [request["body"]["message"]["id"] for request in answer["requests"]]
    users = [message["id"] for message in answer["messages"] if message["role"] == "user"]
    assert posted == [*users, "m1"]
