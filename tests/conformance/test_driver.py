"""The harness itself, against canned streams: what it must report, and what it must not miss."""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGSTOP
from typing import Any

import pytest

from conformance.canned_server import Chunk, Response, encode_sse, serve
from conformance.node import RELEASES, DriverError, NodeDriver

WITH_APPROVALS = ("6.0.0", "6", "7.0.0", "7")
EVERY_FIELD_IS_KNOWN = ("6.0.0", "7.0.0")

START: Chunk = {"type": "start", "messageId": "m1"}
START_STEP: Chunk = {"type": "start-step"}
FINISH_STEP: Chunk = {"type": "finish-step"}
FINISH: Chunk = {"type": "finish"}

every_release = pytest.mark.parametrize("release", RELEASES)
every_release_with_approvals = pytest.mark.parametrize("release", WITH_APPROVALS)


def text(words: str) -> list[Chunk]:
    return [
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": words},
        {"type": "text-end", "id": "t"},
    ]


def turn(*chunks: Chunk, message_id: str = "m1") -> Response:
    return Response([{"type": "start", "messageId": message_id}, START_STEP, *chunks, FINISH_STEP, FINISH])


def tool_call(name: str, call_id: str = "c1") -> Chunk:
    return {"type": "tool-input-available", "toolCallId": call_id, "toolName": name, "input": {"x": 1}}


def tool_output(call_id: str = "c1") -> Chunk:
    return {"type": "tool-output-available", "toolCallId": call_id, "output": "done"}


def approval_request(approval_id: str = "a1", call_id: str = "c1") -> Chunk:
    return {"type": "tool-approval-request", "approvalId": approval_id, "toolCallId": call_id}


def shown_text(answer: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in answer["messages"][-1]["parts"])


def test_every_client_is_the_release_it_is_named_after(node: NodeDriver) -> None:
    assert node.releases() == {
        "5": {"ai": "5.0.277", "react": "2.0.280"},
        "6.0.0": {"ai": "6.0.0", "react": "3.0.0"},
        "6": {"ai": "6.0.326", "react": "3.0.323"},
        "7.0.0": {"ai": "7.0.0", "react": "4.0.0"},
        "7": {"ai": "7.0.169", "react": "4.0.167"},
    }


def test_the_lock_file_names_no_host() -> None:
    lock = Path(__file__).with_name("package-lock.json").read_text(encoding="utf-8")
    assert "http" not in lock


@every_release
def test_a_good_text_stream_ends_ready(node: NodeDriver, release: str) -> None:
    with serve(turn(*text("Hello"))) as server:
        answer = node.chat(release=release, api=server.api, chatId="c", steps=[{"send": "hi"}])
    assert (answer["status"], answer["error"], answer["resendLoop"]) == ("ready", None, False)
    assert [message["role"] for message in answer["messages"]] == ["user", "assistant"]
    assert shown_text(answer) == "Hello"
    [request] = answer["requests"]
    assert (request["method"], request["url"], request["networkError"]) == ("POST", server.api, None)
    assert (request["body"]["id"], request["body"]["trigger"]) == ("c", "submit-message")
    assert request["body"]["messages"] == answer["messages"][:1]
    response = request["response"]
    assert response["text"] == encode_sse(turn(*text("Hello")).chunks) + "data: [DONE]\n\n"
    assert response["chunks"] == turn(*text("Hello")).chunks
    assert (response["status"], response["complete"], response["schemaErrors"]) == (200, True, [])
    [finished] = answer["onFinish"]
    assert finished["messageId"] == "m1"
    assert (finished["isAbort"], finished["isDisconnect"], finished["isError"]) == (False, False, False)


@every_release
def test_an_unknown_field_is_a_schema_error_where_the_release_is_strict(node: NodeDriver, release: str) -> None:
    unknown_field = {"type": "text-delta", "id": "t", "delta": "Hello", "surprise": 1}
    with serve(turn({"type": "text-start", "id": "t"}, unknown_field, {"type": "text-end", "id": "t"})) as server:
        answer = node.chat(release=release, api=server.api, steps=[{"send": "hi"}])
    [request] = answer["requests"]
    refused = [error["chunk"] for error in request["response"]["schemaErrors"]]
    if release in EVERY_FIELD_IS_KNOWN:
        assert (answer["status"], refused) == ("error", [unknown_field])
        assert answer["onError"] == [answer["error"]]
    else:
        assert (answer["status"], refused, answer["onError"]) == ("ready", [], [])


@every_release
def test_every_unknown_chunk_type_is_reported_although_the_client_stops_at_the_first(
    node: NodeDriver, release: str
) -> None:
    with serve(turn({"type": "no-such-thing"}, *text("Hello"), {"type": "nor-this"})) as server:
        answer = node.chat(release=release, api=server.api, steps=[{"send": "hi"}])
    assert answer["status"] == "error"
    assert "no-such-thing" in answer["error"]
    response = answer["requests"][0]["response"]
    assert [error["chunk"]["type"] for error in response["schemaErrors"]] == ["no-such-thing", "nor-this"]
    assert response["complete"]


@every_release
def test_a_turn_that_ends_on_a_tool_output_is_reported_as_a_resend_loop(node: NodeDriver, release: str) -> None:
    def one_more_tool(number: int) -> Response:
        return turn(tool_call("look", f"c{number}"), tool_output(f"c{number}"))

    with serve(respond=one_more_tool) as server:
        answer = node.chat(release=release, api=server.api, resend="tool-calls", steps=[{"send": "hi"}])
    assert answer["resendLoop"]
    assert len(answer["requests"]) == 8


@every_release
def test_a_resend_loop_that_no_message_started_is_followed_to_its_end(node: NodeDriver, release: str) -> None:
    def one_more_tool(number: int) -> Response:
        return turn(tool_call("look", f"c{number}"), *([tool_output(f"c{number}")] if number else []))

    steps = [{"send": "hi"}, {"waitIdle": True}, {"output": {"tool": "look", "output": 1}}]
    with serve(respond=one_more_tool) as server:
        answer = node.chat(release=release, api=server.api, resend="tool-calls", steps=steps)
    assert answer["resendLoop"]
    assert len(answer["requests"]) == 1 + 8


@every_release
def test_an_empty_step_with_metadata_after_a_tool_output_ends_the_turn(node: NodeDriver, release: str) -> None:
    close = [FINISH_STEP, START_STEP, FINISH_STEP, {"type": "finish", "messageMetadata": {}}]
    response = Response([START, START_STEP, tool_call("look"), tool_output(), *close])
    with serve(response) as server:
        answer = node.chat(release=release, api=server.api, resend="tool-calls", steps=[{"send": "hi"}])
    assert (answer["status"], answer["resendLoop"], len(answer["requests"])) == ("ready", False, 1)


@every_release_with_approvals
def test_the_first_open_approval_is_answered_and_posted_when_all_are(node: NodeDriver, release: str) -> None:
    asked = turn(
        *(tool_call("erase", "c1"), approval_request("a1", "c1")),
        *(tool_call("send_mail", "c2"), approval_request("a2", "c2")),
        *(tool_call("erase", "c3"), approval_request("a3", "c3")),
    )
    steps = [
        {"send": "clean up"},
        {"waitIdle": True},
        {"approve": {"tool": "send_mail", "approved": True}},
        {"approve": {"approved": False, "reason": "not that one"}},
        {"approve": {"approved": True}},
    ]
    with serve(asked, turn(*text("Done."))) as server:
        answer = node.chat(release=release, api=server.api, resend="approvals", steps=steps)
    first, second = answer["requests"]
    assert "messageId" not in first["body"]
    assert second["body"]["messageId"] == "m1"
    parts = [part for part in second["body"]["messages"][-1]["parts"] if "approval" in part]
    assert [part["state"] for part in parts] == ["approval-responded"] * 3
    assert [(part["approval"]["id"], part["approval"]["approved"]) for part in parts] == [
        ("a1", False),
        ("a2", True),
        ("a3", True),
    ]
    assert parts[0]["approval"]["reason"] == "not that one"
    assert (answer["status"], shown_text(answer)) == ("ready", "Done.")


@every_release
@pytest.mark.parametrize(
    ("result", "state"), [({"output": 21}, "output-available"), ({"errorText": "no"}, "output-error")]
)
def test_a_browser_tool_is_announced_answered_and_posted(
    node: NodeDriver, release: str, result: dict[str, Any], state: str
) -> None:
    steps = [{"send": "how warm?"}, {"waitIdle": True}, {"output": {"tool": "thermometer", **result}}]
    with serve(turn(tool_call("thermometer")), turn(*text("Warm."))) as server:
        answer = node.chat(release=release, api=server.api, resend="tool-calls", steps=steps)
    assert [(call["toolName"], call["input"]) for call in answer["onToolCall"]] == [("thermometer", {"x": 1})]
    part = answer["requests"][1]["body"]["messages"][-1]["parts"][-1]
    assert (part["state"], {key: part[key] for key in result}) == (state, result)
    assert (answer["status"], shown_text(answer)) == ("ready", "Warm.")


@every_release
def test_stop_cuts_the_response_once_the_text_is_shown(node: NodeDriver, release: str) -> None:
    beginning = Response([START, START_STEP, *text("Once upon")[:2]], stays_open=True)
    steps = [{"send": "a tale"}, {"waitPart": {"type": "text", "text": "upon"}}, {"stop": True}]
    with serve(beginning) as server:
        answer = node.chat(release=release, api=server.api, steps=steps)
        assert server.client_went_away.wait(10)
    assert (answer["status"], shown_text(answer)) == ("ready", "Once upon")
    assert answer["onFinish"][0]["isAbort"]
    response = answer["requests"][0]["response"]
    assert (response["complete"], response["text"]) == (False, encode_sse(beginning.chunks))


@every_release
def test_a_message_carries_files_headers_and_body(node: NodeDriver, release: str) -> None:
    file = {"mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,a"}
    with serve(turn(*text("Read."))) as server:
        answer = node.chat(
            release=release,
            api=server.api,
            headers={"X-Demo-User": "ann"},
            body={"sdkVersion": 6},
            steps=[{"send": "read", "files": [file]}],
        )
    [request] = answer["requests"]
    assert request["headers"]["x-demo-user"] == "ann"
    assert request["body"]["sdkVersion"] == 6
    parts = [{"type": "file", **file}, {"type": "text", "text": "read"}]
    assert request["body"]["messages"][0]["parts"] == parts


@every_release
def test_only_the_last_message_is_posted_when_asked(node: NodeDriver, release: str) -> None:
    earlier = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"id": "m1", "role": "assistant", "parts": [{"type": "text", "text": "Hello"}]},
    ]
    with serve(turn(*text("Fine."), message_id="m2")) as server:
        answer = node.chat(
            release=release,
            api=server.api,
            chatId="c",
            body={"theme": "dark"},
            initialMessages=earlier,
            onlyLast=True,
            steps=[{"send": "how are you?"}],
        )
    body = answer["requests"][0]["body"]
    assert body == {"theme": "dark", "id": "c", "trigger": "submit-message", "message": answer["messages"][2]}
    assert len(answer["messages"]) == 4


@every_release
def test_regenerate_asks_for_the_same_message_again(node: NodeDriver, release: str) -> None:
    steps = [{"send": "hi"}, {"waitIdle": True}, {"regenerate": True}, {"waitIdle": True}]
    steps.append({"regenerate": {"messageId": "m2"}})
    replies = [turn(*text(f"{number}"), message_id=f"m{number}") for number in (1, 2, 3)]
    with serve(*replies) as server:
        answer = node.chat(release=release, api=server.api, steps=steps)
    asked = [(request["body"]["trigger"], request["body"].get("messageId")) for request in answer["requests"]]
    assert asked == [("submit-message", None), ("regenerate-message", None), ("regenerate-message", "m2")]
    assert [message["role"] for message in answer["messages"]] == ["user", "assistant"]
    assert shown_text(answer) == "3"


@every_release
def test_submit_posts_the_messages_as_they_are(node: NodeDriver, release: str) -> None:
    steps = [{"send": "how warm?"}, {"waitIdle": True}, {"output": {"tool": "thermometer", "output": 21}}]
    with serve(turn(tool_call("thermometer")), turn(*text("Warm."))) as server:
        answer = node.chat(release=release, api=server.api, steps=[*steps, {"submit": True}])
    assert answer["requests"][1]["body"]["messageId"] == "m1"
    assert shown_text(answer) == "Warm."


@every_release
def test_resume_reads_what_runs_and_nothing_where_nothing_runs(node: NodeDriver, release: str) -> None:
    steps = [{"resume": True}, {"waitIdle": True}, {"resume": True}]
    with serve(turn(*text("Hello")), Response(status=204)) as server:
        answer = node.chat(release=release, api=server.api, chatId="c", steps=steps)
    asked = [(request["method"], request["url"]) for request in answer["requests"]]
    assert asked == [("GET", f"{server.api}/c/stream")] * 2
    assert [request["response"]["status"] for request in answer["requests"]] == [200, 204]
    assert (answer["status"], shown_text(answer)) == ("ready", "Hello")


@every_release
def test_data_parts_are_recorded_also_when_they_are_transient(node: NodeDriver, release: str) -> None:
    kept = {"type": "data-note", "id": "n", "data": {"level": 1}}
    passing = {"type": "data-note", "data": {"level": 2}, "transient": True}
    with serve(turn(kept, passing)) as server:
        answer = node.chat(release=release, api=server.api, steps=[{"send": "hi"}])
    assert [part["data"] for part in answer["onData"]] == [{"level": 1}, {"level": 2}]


@every_release
def test_a_refusal_becomes_the_error_text(node: NodeDriver, release: str) -> None:
    with serve(Response(status=404, refusal="nothing here")) as server:
        answer = node.chat(release=release, api=server.api, steps=[{"send": "hi"}])
    assert (answer["status"], answer["error"]) == ("error", "nothing here")
    response = answer["requests"][0]["response"]
    assert (response["status"], response["text"], response["chunks"]) == (404, "nothing here", [])


@every_release
def test_a_server_that_is_not_there_is_a_network_error(node: NodeDriver, release: str) -> None:
    with serve() as server:
        gone = server.api
    answer = node.chat(release=release, api=gone, steps=[{"send": "hi"}])
    [request] = answer["requests"]
    assert (answer["status"], request["response"]) == ("error", None)
    assert "fetch failed" in request["networkError"]


def test_steps_that_cannot_be_taken_are_named_and_the_driver_lives_on(node: NodeDriver) -> None:
    impossible: list[tuple[dict[str, Any], str]] = [
        ({"fly": True}, "no such step"),
        ({"approve": {"tool": "erase", "approved": True}}, "no call of erase is waiting"),
        ({"output": {"tool": "erase", "output": 1}}, "no call of erase is waiting"),
        ({"waitPart": {"type": "file"}}, "came to rest without it"),
    ]
    for step, reason in impossible:
        with serve(turn(*text("Hello"))) as server, pytest.raises(DriverError, match=reason) as caught:
            node.chat(release="7", api=server.api, steps=[{"send": "hi"}, {"waitIdle": True}, step])
        assert str(caught.value).startswith("step 2 ")
        assert shown_text(caught.value.answer) == "Hello"


def test_an_action_the_client_itself_rejects_is_a_failure(node: NodeDriver) -> None:
    with serve() as server, pytest.raises(DriverError, match="message nowhere not found"):
        node.chat(release="7", api=server.api, steps=[{"regenerate": {"messageId": "nowhere"}}])


@every_release
def test_a_response_that_never_ends_is_cut_and_a_failure(node: NodeDriver, release: str) -> None:
    with serve(Response([START], stays_open=True)) as server:
        with pytest.raises(DriverError, match=r"step 1 .*out of time while the chat was"):
            node.chat(release=release, api=server.api, steps=[{"send": "a tale"}], timeout_s=0.5)
        assert server.client_went_away.wait(10)


def test_a_response_that_goes_on_after_the_client_gave_up_is_cut_and_a_failure(node: NodeDriver) -> None:
    broken = Response([START, {"type": "no-such-thing"}], stays_open=True)
    with serve(broken) as server:
        with pytest.raises(DriverError, match="a response did not end in time") as caught:
            node.chat(release="7", api=server.api, steps=[{"send": "hi"}, {"waitIdle": True}], timeout_s=1)
        assert server.client_went_away.wait(10)
    assert caught.value.answer["status"] == "error"


def test_a_release_that_does_not_exist_is_named(node: NodeDriver) -> None:
    with pytest.raises(DriverError, match='no release "4"'):
        node.chat(release="4", api="", steps=[])


def test_the_approval_helper_of_a_release_without_approvals_is_an_error(node: NodeDriver) -> None:
    with pytest.raises(DriverError, match="AI SDK 5 has no approvals"):
        node.chat(release="5", api="", resend="both", steps=[])


def test_a_dead_driver_says_what_it_wrote_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-such-option")
    with NodeDriver() as driver, pytest.raises(DriverError, match=r"ended with 9(.|\n)*--no-such-option is not"):
        driver.releases()


def test_a_driver_that_no_longer_answers_is_ended() -> None:
    with NodeDriver() as driver:
        driver.releases()
        os.killpg(driver._node.pid, SIGSTOP)
        with pytest.raises(DriverError, match="the driver ended with -9"):
            driver._ask({"command": "releases"}, timeout_s=0.1)
