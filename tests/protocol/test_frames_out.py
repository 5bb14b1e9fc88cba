"""The frames that the server sends in a live session, to the letter."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import BridgeError, LocalProtocolError, MalformedRequest, NoUser, RequestTooLarge
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol import frames
from adk_stream_protocol.protocol.chunks import encode_json
from adk_stream_protocol.protocol.fold import MessageFold
from adk_stream_protocol.protocol.frames import (
    OURS,
)
from protocol.request_bodies import json_value, quick
from support.replays import replayed


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (
            frames.encode_chunk("r1", 3, b'{"type":"start","messageId":"m1"}'),
            '{"type":"chunk","requestId":"r1","sequence":3,"chunk":{"type":"start","messageId":"m1"}}',
        ),
        (frames.encode_end("r1"), '{"type":"end","requestId":"r1"}'),
        (frames.encode_start("r1"), '{"type":"start","requestId":"r1"}'),
        (frames.encode_no_active("r1"), '{"type":"no-active","requestId":"r1"}'),
        (
            frames.encode_error("r1", NoUser()),
            '{"type":"error","requestId":"r1","code":"no-user","errorText":"Sign in first."}',
        ),
        (
            frames.encode_error(OURS, MalformedRequest("Attach to a chat first.")),
            '{"type":"error","requestId":"-","code":"malformed","message":"Attach to a chat first."}',
        ),
        (frames.encode_own("pong", {}), '{"type":"pong","requestId":"-"}'),
        (
            frames.encode_own("audio", {"id": "chat", "rate": 24000}),
            '{"type":"audio","requestId":"-","id":"chat","rate":24000}',
        ),
    ],
)
def test_each_frame_is_encoded_to_the_letter(encoded: str, expected: str) -> None:
    assert encoded == expected


@quick
@given(st.text(min_size=1, max_size=8), json_value)
def test_a_chunk_stays_what_it_is_inside_its_frame(request_id: str, value: Any) -> None:
    chunk = encode_json(c.Data("data-x", value))
    frame = json.loads(frames.encode_chunk(request_id, 0, chunk))
    assert frame == {"type": "chunk", "requestId": request_id, "sequence": 0, "chunk": json.loads(chunk)}


@pytest.mark.parametrize("request_id", [OURS, "r1"])
@pytest.mark.parametrize("error", [BridgeError(), LocalProtocolError(), RequestTooLarge(), NoUser()])
def test_a_refusal_has_a_code_and_a_text_and_nothing_else(request_id: str, error: BridgeError) -> None:
    frame = json.loads(frames.encode_error(request_id, error))
    text = frame.pop("message" if request_id == OURS else "errorText")
    assert text == error.public_text
    assert frame == {"type": "error", "requestId": request_id, "code": error.code}


# -- voice inside the stream ------------------------------------------------------------------------------------------


def test_a_piece_of_voice_is_told_and_not_kept_in_the_message() -> None:
    voice = c.Data("data-pcm", {"rate": 24000, "data": "AAA="}, transient=True)
    assert json.loads(encode_json(voice)) == {
        "type": "data-pcm",
        "data": {"rate": 24000, "data": "AAA="},
        "transient": True,
    }
    fold = MessageFold()
    for chunk in (voice, c.Data("data-kept", 1, transient=False)):
        fold.feed(chunk)
    assert fold.message()["parts"] == [{"type": "data-kept", "data": 1}]


def test_a_piece_of_voice_is_not_replayed_and_the_places_of_others_stay() -> None:
    voice = encode_json(c.Data("data-pcm", {"rate": 24000, "data": "AAA="}, transient=True))
    start, text = encode_json(c.Start("m1")), encode_json(c.TextStart("t1"))
    like_voice = encode_json(c.Data("data-pcm-2", 1))
    assert list(replayed([], [start, voice, text, voice, like_voice])) == [(0, start), (2, text), (4, like_voice)]
    assert list(replayed([start, voice, text], [start, voice, text])) == [(None, start), (None, text), (2, text)]
