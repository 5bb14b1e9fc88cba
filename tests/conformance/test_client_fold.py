"""The `fold` command: canned streams through every release's own parser, schema and fold."""

from __future__ import annotations

import pytest

from conformance.canned_server import Chunk, encode_sse
from conformance.node import RELEASES, NodeDriver

every_release = pytest.mark.parametrize("release", RELEASES)


def reply(words: str, message_id: str = "m1") -> list[Chunk]:
    return [
        {"type": "start", "messageId": message_id},
        {"type": "start-step"},
        {"type": "text-start", "id": "t"},
        {"type": "text-delta", "id": "t", "delta": words},
        {"type": "text-end", "id": "t"},
        {"type": "finish-step"},
        {"type": "finish"},
    ]


@every_release
def test_a_good_stream_folds_into_its_message_as_text_and_as_chunks(node: NodeDriver, release: str) -> None:
    streams = [reply("Hello"), encode_sse(reply("Hello")) + "data: [DONE]\n\n"]
    answer = node.fold(release, streams, returning="messages")
    assert (answer["count"], answer["errors"]) == (2, [])
    parts = [{"type": "step-start"}, {"type": "text", "text": "Hello", "state": "done"}]
    message = {"id": "m1", "role": "assistant", "parts": parts}
    assert answer["messages"] == [{"id": 0, "message": message}, {"id": 1, "message": message}]


@every_release
def test_each_way_to_break_a_stream_is_reported_and_the_others_still_fold(node: NodeDriver, release: str) -> None:
    broken = {
        "a text-delta without its start": [{"type": "text-delta", "id": "t", "delta": "x"}],
        "an unknown chunk type": [{"type": "no-such-thing"}],
        "a null for an optional field": [{"type": "start", "messageId": None}],
        "an output nobody asked for": [{"type": "tool-output-available", "toolCallId": "c", "output": 1}],
        "an error chunk": [{"type": "error", "errorText": "the model is tired"}],
        "no JSON": "data: {\n\n",
    }
    answer = node.fold(release, [reply("Hello"), *broken.values(), reply("Bye")], returning="messages")
    assert [entry["id"] for entry in answer["messages"]] == [0, 7]
    errors = dict(zip(broken, answer["errors"], strict=True))
    assert [error["id"] for error in errors.values()] == [1, 2, 3, 4, 5, 6]
    assert "no-such-thing" in errors["an unknown chunk type"]["error"]
    assert "the model is tired" in errors["an error chunk"]["error"]
    assert "JSON" in errors["no JSON"]["error"]


@every_release
def test_a_stream_that_shows_nothing_folds_into_no_message(node: NodeDriver, release: str) -> None:
    answer = node.fold(release, [[{"type": "start-step"}, {"type": "finish-step"}]], returning="messages")
    assert (answer["messages"], answer["errors"]) == ([{"id": 0, "message": None}], [])


@every_release
def test_the_digest_stands_for_the_messages_of_many_streams(node: NodeDriver, release: str) -> None:
    streams = [reply(f"Hello {number}", f"m{number}") for number in range(200)]
    answer = node.fold(release, streams)
    assert answer.keys() == {"count", "errors", "digest"}
    assert (answer["count"], answer["errors"]) == (200, [])
    assert node.fold(release, map(encode_sse, streams))["digest"] == answer["digest"]
    streams[100] = reply("Something else", "m100")
    assert node.fold(release, streams)["digest"] != answer["digest"]
