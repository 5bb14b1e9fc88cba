"""Reads the text back out of each wire format, to prove that a timed turn delivered all of it."""

import json
from collections.abc import Callable, Iterator

TextOfFrame = Callable[[dict], str]


def text_of_stream(frames: list[bytes], text_of_frame: TextOfFrame) -> str:
    return "".join(text_of_frame(frame) for frame in _json_frames(b"".join(frames)))


def bytes_per_delta(frames: list[bytes], text_of_frame: TextOfFrame) -> float:
    """The mean size of the frames that carry a piece of text, framing included."""
    sizes = [len(frame) for frame in frames if any(text_of_frame(json_frame) for json_frame in _json_frames(frame))]
    return sum(sizes) / len(sizes)


def _json_frames(stream: bytes) -> Iterator[dict]:
    for frame in stream.split(b"\n\n"):
        for line in frame.splitlines():
            if line.startswith(b"data:") and line != b"data: [DONE]":
                yield json.loads(line.removeprefix(b"data:"))


def ai_sdk_text(chunk: dict) -> str:
    _refuse(chunk, chunk["type"] in ("error", "abort"))
    return chunk["delta"] if chunk["type"] == "text-delta" else ""


def ag_ui_text(event: dict) -> str:
    _refuse(event, event["type"] == "RUN_ERROR")
    return event["delta"] if event["type"] == "TEXT_MESSAGE_CONTENT" else ""


def adk_event_text(event: dict) -> str:
    _refuse(event, "error" in event or "errorCode" in event)
    if not event.get("partial"):
        return ""
    return "".join(part.get("text", "") for part in event["content"]["parts"])


def _refuse(frame: dict, is_error: bool) -> None:
    if is_error:
        raise AssertionError(f"a turn that fails must not be measured: {frame}")
