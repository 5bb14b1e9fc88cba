"""What a recording is read as, and files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol import cli
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.recording.reader import read_recording

Line = dict[str, Any]


def write(file: Path, *lines: Line) -> Path:
    file.write_text("".join(json.dumps({"at": 0, "exchange": 1, **line}) + "\n" for line in lines))
    return file


def test_a_request_that_went_on_at_another_socket_is_one_turn(tmp_path: Path) -> None:
    def frame(exchange: int, by: str, **fields: Any) -> Line:
        return {"exchange": exchange, "direction": "frame", "by": by, "frame": {"requestId": "r1", **fields}}

    def chunk(exchange: int, sequence: int, **chunk: Any) -> Line:
        return frame(exchange, "server", type="chunk", sequence=sequence, chunk=chunk)

    file = write(
        tmp_path / "chat.jsonl",
        {"direction": "open", "path": "/api/chat/live"},
        {"direction": "frame", "by": "client", "bytes": 640},
        {"direction": "frame", "by": "client", "text": "oops"},
        {"direction": "something new"},
        frame(1, "client", type="send", id="chat-1", messages=[]),
        chunk(1, 0, type="start", messageId="m"),
        chunk(1, 1, type="text-start", id="t"),
        {"direction": "close", "by": "client", "code": 1006},
        {"exchange": 2, "direction": "open", "path": "/api/chat/live"},
        frame(2, "client", type="resume", id="chat-1", lastSequence=0),
        chunk(2, 1, type="text-start", id="t"),
        chunk(2, 2, type="text-end", id="t"),
        frame(2, "server", type="end"),
    )
    (turn,) = read_recording(file).turns
    assert [json.loads(chunk)["type"] for _, chunk in turn.chunks] == ["start", "text-start", "text-end"]


# -- files that cannot be replayed ------------------------------------------------------------------------------------

REQUEST = b'{"at":0,"exchange":1,"direction":"request","method":"POST","path":"/api/chat"}\n'


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (b"", "has nothing to replay"),
        (b"hello\n", "see its line 1"),
        (REQUEST + b"{", "see its line 2"),
        (REQUEST + b"[]\n", "see its line 2"),
        (REQUEST + b'{"at":"x","exchange":1,"direction":"chunk"}\n', "see its line 2"),
        (REQUEST + b"\xff\xfe\n", "see its line 2"),
        (REQUEST, "has nothing to replay"),
        (REQUEST + b'{"at":0,"exchange":1,"direction":"chunk","chunk":[]}\n', "malformed chunk or frame"),
        (REQUEST + b'{"at":0,"exchange":1,"direction":"frame","by":"server","frame":3}\n', "malformed chunk or frame"),
    ],
)
def test_a_file_that_is_not_a_recording_is_refused_in_one_line(tmp_path: Path, written: bytes, why: str) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_bytes(written)
    with pytest.raises(ConfigurationError, match=why) as refused:
        read_recording(file)
    assert "\n" not in str(refused.value)
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(file)])
    assert ended.value.code == f"adk-stream: {refused.value}"


def test_a_file_that_does_not_exist_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", str(tmp_path / "none.jsonl")])
    assert ended.value.code == f"adk-stream: {tmp_path / 'none.jsonl'} cannot be read: No such file or directory"
