"""The ids under which a client knows calls."""

from adk_stream_protocol.adk.translate.speakers import Speaker
from adk_stream_protocol.adk.translate.wire_ids import WireIds
from adk_stream_protocol.protocol.stream import ChunkWriter


def test_a_repeated_id_gets_a_number() -> None:
    writer, speaker = ChunkWriter(), Speaker()
    writer.start("m1")
    wire_ids = WireIds(writer.tools)
    for expected in ("0", "0-2", "0-3"):
        assert wire_ids.new(speaker, "0") == expected
        writer.tool_input_start(expected, "pay")
        assert wire_ids.of("0") == speaker.wire_ids["0"] == expected
    assert wire_ids.of("1") is None
