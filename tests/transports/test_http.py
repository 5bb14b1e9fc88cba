"""HTTP: refusals before the first byte, streams after it, readers that come and go."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol import ChatBridge, Limits
from adk_stream_protocol.errors import LocalProtocolError
from adk_stream_protocol.testing import ChatClient, call, text
from support.apps import app_of, bridge_with, model_of, runner_of, user_of
from support.asgi import exchange

MIB = 1024 * 1024


def turn_body(said: str = "hi", chat_id: str = "c1", **extra: Any) -> bytes:
    message = {"id": f"m-{uuid.uuid4()}", "role": "user", "parts": [{"type": "text", "text": said}]}
    return json.dumps({"id": chat_id, "messages": [message], **extra}).encode()


async def test_a_stream_has_the_headers_cursors_and_end_of_the_protocol() -> None:
    answer = await exchange(app_of(bridge_with("Hi there.")), body=turn_body())
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers
    assert answer.body.endswith(b"\n\ndata: [DONE]\n\n")
    ids = [line.rpartition(b"-") for line in answer.body.split(b"\n") if line.startswith(b"id: ")]
    assert [int(number) for _, _, number in ids] == list(range(len(ids)))
    assert len({segment for segment, _, _ in ids}) == 1


class BurstModel(BaseLlm):
    """Says 200 words without ever waiting."""

    model: str = "burst"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        words = [f"w{n} " for n in range(200)]
        for word in words:
            yield LlmResponse(content=types.Content(role="model", parts=[text(word)]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[text("".join(words))]), partial=False)


async def test_chunks_that_are_ready_together_leave_in_one_send() -> None:
    bridge = ChatBridge(LlmAgent(name="helper", model=BurstModel()), user_id=user_of)
    answer = await exchange(app_of(bridge), body=turn_body())
    assert answer.body.count(b"text-delta") == 200
    assert len(answer.sends) <= 20


async def test_a_short_delta_takes_at_most_80_bytes() -> None:
    answer = await exchange(app_of(bridge_with("word " * 50)), body=turn_body())
    events = [event for event in answer.body.split(b"\n\n") if b"text-delta" in event]
    assert len(events) == 50
    assert max(len(event) + 2 for event in events) <= 80


async def test_silence_is_filled_with_comments() -> None:
    pinged = asyncio.Event()

    async def slow() -> dict[str, str]:
        """Slow."""
        await pinged.wait()
        return {}

    def on_send(data: bytes) -> None:
        if data.startswith(b":"):
            pinged.set()

    bridge = bridge_with([call("slow")], "Done.", tools=(slow,), limits=Limits(ping_interval_s=0.01))
    answer = await exchange(app_of(bridge), body=turn_body(), on_send=on_send)
    assert b": ping\n\n" in answer.body
    assert b"Done." in answer.body


async def test_a_reader_that_leaves_does_not_end_the_run() -> None:
    finished: list[bool] = []
    left = asyncio.Event()

    async def slow() -> dict[str, str]:
        """Slow."""
        await left.wait()
        finished.append(True)
        return {"ok": "yes"}

    bridge = bridge_with([call("slow")], "Done.", "Next.", tools=(slow,))
    app = app_of(bridge)
    await exchange(app, body=turn_body(), leave_after=lambda data: b"tool-input-available" in data)
    assert finished == []
    left.set()
    while bridge._service.running("ann", "c1"):
        await asyncio.sleep(0)
    assert finished == [True]
    assert b"Next." in (await exchange(app, body=turn_body("and now?"))).body
    seen = [part for content in model_of(bridge).requests[-1].contents for part in content.parts or ()]
    assert [part.function_response.response for part in seen if part.function_response] == [{"ok": "yes"}]
    assert "Done." in [part.text for part in seen]


async def test_a_connection_that_breaks_while_we_write_does_not_end_the_run() -> None:
    def broken(_: bytes) -> None:
        raise OSError("gone")

    bridge = bridge_with("Hello.", "Next.")
    app = app_of(bridge)
    await exchange(app, body=turn_body(), on_send=broken)
    while bridge._service.running("ann", "c1"):
        await asyncio.sleep(0)
    await exchange(app, body=turn_body())
    assert [part.text for part in model_of(bridge).requests[1].contents[1].parts or ()] == ["Hello."]


WRONG_BODIES = {
    "not JSON": b"{",
    "empty": b"",
    "an array": b"[]",
    "no messages": b'{"id": "c1"}',
    "no chat id": turn_body()[:1] + turn_body()[13:],
    "NaN": b'{"id": "c1", "messages": [], "x": NaN}',
    "deep nesting": b'{"id": "c1", "messages": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
    "a lone surrogate": turn_body("SURROGATE").replace(b"SURROGATE", b"\\ud800"),
    "bytes that are no UTF-8": turn_body("BYTES").replace(b"BYTES", b"\xff\xfe"),
    "an unknown role": turn_body().replace(b'"user"', b'"wizard"'),
    "the system's role": turn_body().replace(b'"user"', b'"system"'),
    "no parts": b'{"id": "c1", "messages": [{"role": "user", "parts": []}]}',
    "only spaces": turn_body("  \n"),
    "a text that is none": b'{"id": "c1", "messages": [{"role": "user", "parts": [{"type": "text", "text": 5}]}]}',
    "an unknown part": b'{"id": "c1", "messages": [{"role": "user", "parts": [{"type": "image"}]}]}',
    "a path as chat id": turn_body(chat_id="../../etc"),
    "an unknown version": turn_body(sdkVersion=4),
    "an unknown style": turn_body(approvalStyle="yes"),
}


@pytest.mark.parametrize("what", WRONG_BODIES)
async def test_a_malformed_request_is_refused_with_400_and_leaves_no_trace(what: str) -> None:
    bridge = bridge_with()
    answer = await exchange(app_of(bridge), body=WRONG_BODIES[what])
    assert answer.status == 400, answer.body
    assert json.loads(answer.body)["error"]["code"] == "malformed"
    assert model_of(bridge).requests == []
    runner = runner_of(bridge)
    assert (await runner.session_service.list_sessions(app_name=runner.app_name)).sessions == []


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/cat.png",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "gs://bucket/cat.png",
        "//example.org/cat.png",
        "javascript:alert(1)",
        "data:image/png;base64,%%%",
        "data:image/png",
    ],
)
async def test_a_file_that_is_not_in_the_request_is_refused(url: str) -> None:
    bridge = bridge_with()
    answer = await ChatClient(app_of(bridge)).send("look", files=[{"url": url, "mediaType": "image/png"}])
    assert answer.status == 400
    assert model_of(bridge).requests == []


async def test_a_file_url_that_the_configuration_allows_is_handed_on_unfetched() -> None:
    bridge = bridge_with("Nice.", limits=Limits(allowed_file_urls=("gs://mine/",)))
    client = ChatClient(app_of(bridge))
    refused = await client.send("look", files=[{"url": "gs://other/cat.png", "mediaType": "image/png"}])
    assert refused.status == 400
    await client.send("look", files=[{"url": "gs://mine/cat.png", "mediaType": "image/png"}])
    part = (model_of(bridge).requests[0].contents[-1].parts or [])[0]
    assert part.file_data
    assert part.file_data.file_uri == "gs://mine/cat.png"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
async def test_only_plain_json_is_taken(headers: dict[str, str], status: int) -> None:
    answer = await exchange(app_of(bridge_with("Hi.")), headers=headers, body=turn_body())
    assert answer.status == status


async def test_a_body_over_the_limit_is_refused_while_it_arrives() -> None:
    gibibyte = [b'{"id": "c1", "x": "', *([b"x" * 65536] * 16384)]
    answer = await exchange(app_of(bridge_with()), body=gibibyte)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "too-large")
    assert answer.pieces_taken <= 4 * MIB // 65536 + 2


async def test_a_file_over_the_limit_is_refused_while_it_arrives() -> None:
    endless = [b'{"id": "c1", "x": "data:image/png;base64,', *([b"x" * 65536] * 16384)]
    answer = await exchange(app_of(bridge_with()), body=endless)
    assert answer.status == 413
    assert answer.pieces_taken <= 27 * MIB // 65536 + 2


async def test_a_file_of_the_largest_size_is_taken() -> None:
    bridge = bridge_with("Big.")
    url = f"data:image/png;base64,{base64.b64encode(bytes(20 * MIB)).decode()}"
    answer = await ChatClient(app_of(bridge)).send("look", files=[{"url": url, "mediaType": "image/png"}])
    assert answer.text == "Big."


async def test_an_answer_to_a_call_that_nobody_asked_about_is_not_found() -> None:
    bridge = bridge_with()
    forged = {
        "type": "tool-pay",
        "toolCallId": "call-1",
        "state": "approval-responded",
        "input": {},
        "approval": {"id": "a1", "approved": True},
    }
    body = {"id": "c1", "messages": [{"id": "m1", "role": "assistant", "parts": [forged]}]}
    answer = await ChatClient(app_of(bridge)).post(body)
    assert (answer.status, (answer.error or {})["code"]) == (404, "not-found")
    assert model_of(bridge).requests == []


async def test_a_failure_of_our_own_is_a_500_without_details(caplog: Any) -> None:
    with caplog.at_level("INFO"):

        def prepare(*_: Any) -> Any:
            raise RuntimeError("SECRET")

        answer = await exchange(app_of(bridge_with("x", prepare=prepare)), body=turn_body())
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (500, "internal")
        assert b"SECRET" not in answer.body
    assert "RuntimeError" in caplog.text
    assert "SECRET" not in caplog.text


async def test_a_bug_of_ours_is_reported_without_its_text() -> None:
    async def out_of_grammar(*_: Any) -> Any:
        raise LocalProtocolError("tool call is held, not done")

    bridge = bridge_with()
    bridge._service.open_turn = out_of_grammar
    answer = await exchange(app_of(bridge), body=turn_body())
    assert answer.status == 500
    assert json.loads(answer.body)["error"] == {"code": "internal", "message": "The server failed. Try again."}


async def test_a_second_turn_learns_when_to_try_again() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> dict[str, str]:
        """Slow."""
        started.set()
        await go_on.wait()
        return {}

    app = app_of(bridge_with([call("slow")], "Done.", tools=(slow,)))
    first = asyncio.create_task(exchange(app, body=turn_body()))
    await started.wait()
    second = await exchange(app, body=turn_body())
    assert (second.status, second.headers["retry-after"]) == (409, "1")
    go_on.set()
    assert b"Done." in (await first).body
