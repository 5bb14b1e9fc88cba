"""Short names for what tests ask of a ChunkWriter. A call is named by its id."""

from collections.abc import Callable, Collection
from typing import Any, Literal

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.stream import ChunkWriter
from protocol.segment_checker import ClientMessage, Terminal, Wire, wire

Step = Callable[[ChunkWriter], list[c.AnyChunk]]

ADK = {"adk": {"author": "root"}}
TO_BO = {"to": "Bo"}
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]
ASKED = ["start-step", "tool-input-start a", "tool-input-delta a", "tool-approval-request a", "finish-step", "finish"]


def play(writer: ChunkWriter, *steps: Step) -> list[Wire]:
    """What the client reads when the segment starts and goes through these steps."""
    return wire([*writer.start("m1"), *(chunk for step in steps for chunk in step(writer))])


class Talk:
    """A message of several segments, with a client that reads each of them and objects where a client would."""

    def __init__(self, version: SdkVersion = 6) -> None:
        self.writer = ChunkWriter(sdk_version=version)
        self.client = ClientMessage(version)
        self._has_begun = False

    def segment(self, *steps: Step, how: Terminal = "finish", at_work: Collection[str] = ()) -> list[str]:
        """In short, what the client reads after `start`."""
        if self._has_begun:
            self.writer.new_segment(at_work)
        self._has_begun = True
        written = play(self.writer, *steps, end(how))
        self.client.read(written)
        assert not self.client.posts_again
        return short(written[1:])


def short(written: list[Wire]) -> list[str]:
    """Each chunk by its type and the call that it belongs to."""
    return [" ".join([chunk["type"], *([chunk["toolCallId"]] if "toolCallId" in chunk else [])]) for chunk in written]


new_step: Step = ChunkWriter.new_step


def say(key: str = "root", text: str = "hi", kind: Literal["text", "reasoning"] = "text") -> Step:
    return lambda w: w.text(key, kind, text)


def open_input(call: str, **options: Any) -> Step:
    return lambda w: w.tool_input_start(call, "add", **options)


def call(name: str, *, awaits_client: bool = False, **options: Any) -> Step:
    return lambda w: [
        *w.tool_input_start(name, "add", **options),
        *w.tools.input_available(name, {}, awaits_client=awaits_client),
    ]


def deferred(name: str, arguments: Any = None, *, streamed: str = "", metadata: Any = None, **options: Any) -> Step:
    return lambda w: [
        *w.tool_input_start(name, "add", **options),
        *(w.tools.input_delta(name, streamed) if streamed else []),
        *w.tools.defer(name, {} if arguments is None else arguments, metadata),
    ]


def ask(name: str, **options: Any) -> Step:
    return lambda w: w.tools.approval_request(name, f"ok-{name}", **options)


def to_client(name: str) -> Step:
    return lambda w: w.tools.to_client(name)


def output(name: str, **options: Any) -> Step:
    return lambda w: w.tools.output(name, 1, **options)


def known(name: str, **options: Any) -> Step:
    return lambda w: w.tools.output_known(name, **options)


def error(name: str, **options: Any) -> Step:
    return lambda w: w.tools.error(name, "x", **options)


def deny(name: str, **options: Any) -> Step:
    return lambda w: w.tools.deny(name, "No.", **options)


def end(how: Terminal) -> Step:
    endings: dict[Terminal, Step] = {
        "finish": lambda w: w.finish("stop"),
        "abort": lambda w: w.abort(),
        "error": lambda w: w.error("It broke."),
    }
    return endings[how]


def asked_about_a_tool_of_the_browser(version: SdkVersion = 6, **options: Any) -> Talk:
    talk = Talk(version)
    assert talk.segment(deferred("a", TO_BO, **options), ask("a")) == ASKED
    return talk
