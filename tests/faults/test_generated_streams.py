"""Whatever a run tells, wherever it is cut, the real clients read its stream to the end without an error."""

from random import Random

import pytest

from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.protocol.chunks import SdkVersion, encode_chunks
from adk_stream_protocol.protocol.sse import DONE, encode_events
from conformance.node import NodeDriver
from support.apps import figure
from support.event_sequences import random_run

SEQUENCES = 5_000


def stream_of(seed: int, sdk_version: SdkVersion) -> str:
    random = Random(seed)
    events = random_run(seed)
    cut = random.choice([len(events), random.randint(0, len(events))])
    translator = Translator(root_author="agent0", sdk_version=sdk_version)
    chunks = translator.start(f"m{seed}")
    for event in events[:cut]:
        chunks += translator.feed(event)
    if cut == len(events):
        chunks += translator.finish()
    else:
        chunks += random.choice([translator.abort, lambda: translator.fail("The agent could not answer.")])()
    return (encode_events(b"s", list(enumerate(encode_chunks(chunks)))) + DONE).decode()


@pytest.fixture(scope="module")
def node() -> object:
    with NodeDriver() as driver:
        yield driver


@pytest.mark.figures
@pytest.mark.parametrize(
    ("release", "sdk_version"), [("5", 5), ("6.0.0", 6), ("6", 6), ("7.0.0", 6), ("7", 6), ("7", 7)]
)
def test_every_generated_stream_is_read_without_an_error(
    node: NodeDriver, release: str, sdk_version: SdkVersion
) -> None:
    count = figure(SEQUENCES)
    streams = [stream_of(seed, sdk_version) for seed in range(count)]
    folded = node.fold(release, streams)
    assert folded["count"] == count
    # An error chunk is our own word for a failed run; anything else would be the client's, for a stream it cannot read.
    unread = [error for error in folded["errors"] if "The agent could not answer." not in error["error"]]
    assert unread == []
