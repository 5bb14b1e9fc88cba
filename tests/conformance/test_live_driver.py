"""The harness itself over sockets, against canned frames: what it must report, and what it must not miss."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI, WebSocket

from conformance.node import DriverError, NodeDriver
from conformance.pages import elsewhere
from support.live_server import serving

Frame = dict[str, Any]
every_transport = pytest.mark.parametrize("transport", ["official", "ours"])

TEXT = [
    {"type": "start", "messageId": "m1"},
    {"type": "text-start", "id": "t"},
    {"type": "text-delta", "id": "t", "delta": "Hello"},
    {"type": "text-end", "id": "t"},
    {"type": "finish"},
]
END: Frame = {"type": "end"}


def numbered(*chunks: Frame) -> list[Frame]:
    return [{"type": "chunk", "sequence": number, "chunk": chunk} for number, chunk in enumerate(chunks)]


@contextmanager
def canned_socket(frames: Sequence[Frame], *, leaves: bool = False) -> Generator[str]:
    """Answers a `send` with these frames, and then perhaps goes; a `resume` finds nothing."""
    app = FastAPI()

    @app.get("/api/chat/{chat_id}/messages")
    async def messages() -> list[Any]:  # pyright: ignore[reportUnusedFunction]
        return []

    @app.websocket("/api/chat/live")
    async def live(socket: WebSocket) -> None:  # pyright: ignore[reportUnusedFunction]
        offered = socket.scope["subprotocols"]
        await socket.accept(subprotocol=offered[0] if offered else None)
        async for asked in socket.iter_json():
            answer = {"send": frames, "resume": [{"type": "no-active"}]}.get(asked["type"], [])
            for frame in answer:
                await socket.send_json({"requestId": asked["requestId"], **frame})
            if asked["type"] == "send" and leaves:
                await socket.close()
                return

    with serving(app) as origin:
        yield f"{origin}/api/chat"


def talk(node: NodeDriver, api: str, transport: str, **options: Any) -> dict[str, Any]:
    options = {"release": "7", "steps": [{"send": "hi"}], **options}
    return node.chat(api=api, chatId="c", transport=transport, **options)


@every_transport
def test_frames_are_recorded_as_requests_with_their_streams(node: NodeDriver, transport: str) -> None:
    with canned_socket([*numbered(*TEXT), END]) as api:
        answer = talk(node, api, transport, headers={"x-a": "b"}, body={"more": 1})
    assert (answer["status"], answer["error"]) == ("ready", None)
    [request] = answer["requests"]
    assert (request["method"], request["url"]) == ("send", f"{api.replace('http', 'ws')}/live")
    assert (request["headers"], request["body"]["body"]) == ({"x-a": "b"}, {"more": 1})
    assert request["body"]["messages"] == answer["messages"][:1]
    response = request["response"]
    assert (response["status"], response["complete"], response["schemaErrors"]) == (200, True, [])
    assert response["chunks"] == TEXT
    assert response["text"].endswith("data: [DONE]\n\n")


@every_transport
def test_a_chunk_that_is_left_out_is_reported(node: NodeDriver, transport: str) -> None:
    frames = numbered(*TEXT)
    with canned_socket([*frames[:2], *frames[3:], END]) as api:
        answer = talk(node, api, transport)
    assert answer["status"] == "error"
    assert answer["requests"][0]["response"]["schemaErrors"][0]["error"] == "chunk 3 instead of 2"


@every_transport
def test_a_chunk_that_the_release_does_not_know_is_reported(node: NodeDriver, transport: str) -> None:
    with canned_socket([*numbered(TEXT[0], {"type": "no-such-chunk"}, TEXT[-1]), END]) as api:
        answer = talk(node, api, transport)
    [error] = answer["requests"][0]["response"]["schemaErrors"]
    assert error["chunk"] == {"type": "no-such-chunk"}


@every_transport
def test_a_refusal_is_told_as_one(node: NodeDriver, transport: str) -> None:
    with canned_socket([{"type": "error", "errorText": "Not now.", "code": "run-active"}]) as api:
        answer = talk(node, api, transport)
    assert (answer["status"], answer["error"], answer["onError"]) == ("error", "Not now.", ["Not now."])
    assert answer["requests"][0]["response"]["status"] == 400


@every_transport
def test_a_stream_that_is_cut_is_not_complete(node: NodeDriver, transport: str) -> None:
    with canned_socket(numbered(*TEXT[:3]), leaves=True) as api:
        answer = talk(node, api, transport)
    assert answer["status"] == "error"
    assert "network" in answer["error"]
    response = answer["requests"][0]["response"]
    assert (response["chunks"], response["complete"]) == (TEXT[:3], False)


@every_transport
def test_a_resume_that_finds_nothing_is_no_response(node: NodeDriver, transport: str) -> None:
    with canned_socket([]) as api:
        answer = talk(node, api, transport, steps=[{"resume": True}])
    assert answer["status"] == "ready"
    assert [(request["method"], request["response"]["status"]) for request in answer["requests"]] == [("resume", 204)]


@every_transport
def test_only_the_message_that_counts_is_sent_where_it_is_asked_for(node: NodeDriver, transport: str) -> None:
    earlier = [{"id": f"u{number}", "role": "user", "parts": [{"type": "text", "text": "x"}]} for number in range(3)]
    with canned_socket([*numbered(*TEXT), END]) as api:
        answer = talk(node, api, transport, initialMessages=earlier, onlyLast=True)
    assert answer["requests"][0]["body"]["messages"] == [answer["messages"][3]]


def test_another_tab_has_the_chat_and_its_own_connection(node: NodeDriver) -> None:
    with canned_socket([*numbered(*TEXT), END]) as api:
        answer = talk(node, api, "official", steps=[elsewhere({"send": "hi"}, transport="ours")])
    assert (answer["messages"], answer["requests"]) == ([], [])
    [tab] = answer["otherTabs"]
    assert [message["role"] for message in tab] == ["user", "assistant"]


def test_what_another_tab_cannot_do_is_a_failure(node: NodeDriver) -> None:
    with canned_socket([]) as api, pytest.raises(DriverError, match="no call is waiting for this"):
        talk(node, api, "official", steps=[elsewhere({"approve": {"approved": True}}, transport="ours")])


@pytest.mark.parametrize("release", ["5", "6", "7.0.0"])
def test_older_releases_have_no_transport_of_their_own(node: NodeDriver, release: str) -> None:
    with pytest.raises(DriverError, match=f"AI SDK {release} has no transport over WebSockets"):
        talk(node, "http://127.0.0.1:1/api/chat", "official", release=release)
