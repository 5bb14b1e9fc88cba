"""Our fold against the clients' own, and a replay against the stream that it stands for."""

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest

from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import AnyChunk, encode_chunks, encode_json
from adk_stream_protocol.protocol.fold import MessageFold, UIMessage
from conformance.node import NodeDriver
from protocol.test_stream_walks import FLAGS, Walker
from support.event_sequences import random_run
from support.replays import replayed

RUNS = 100

every_release = pytest.mark.parametrize("release", ["6.0.0", "6", "7.0.0", "7"])


Segments = list[list[AnyChunk]]


def translated(seed: int) -> Segments:
    """A run of agents, whole or cut short."""
    random, events = Random(seed), random_run(seed)
    cut = random.choice([len(events), random.randint(0, len(events))])
    translator = Translator(root_author="agent0", sdk_version=6)
    chunks = translator.start(f"m{seed}")
    for event in events[:cut]:
        chunks += translator.feed(event)
    if cut == len(events):
        return [chunks + translator.finish()]
    return [chunks + random.choice([translator.abort, lambda: translator.fail("No.")])()]


def walked(seed: int) -> Segments:
    """What no agent of today would say, but the writer allows: progress that fails, open calls, empty steps. And what
    people and browsers are asked, over several segments."""
    random, walker = Random(seed), Walker(6, [])
    for _ in range(random.randint(0, 60)):
        walker.any_move(random.randint(0, 60), random.randint(0, 5), random.choice(FLAGS), random.choice(FLAGS))
    writer = walker.writer
    ends = [lambda: writer.finish("stop"), lambda: writer.finish("stop", {"a": 1}), writer.abort]
    return [*walker.segments, walker.chunks + random.choice([*ends, lambda: writer.error("No.")])()]


Source = Callable[[int], Segments]
both_sources = pytest.mark.parametrize("source", [translated, walked])


def earlier_segments(segments: Segments) -> list[AnyChunk]:
    """All but the last, as a log holds them: one message that has not come to its end."""
    starts = [chunk for segment in segments[:1] for chunk in segment[:1]] if len(segments) > 1 else []
    ends = c.Start | c.Finish | c.Abort
    return [*starts, *(chunk for segment in segments[:-1] for chunk in segment if not isinstance(chunk, ends))]


@cache
def runs_of(source: Source) -> list[Segments]:
    """Without error chunks: they leave no part, but the driver gives no message for a stream that has one."""
    return [
        [[chunk for chunk in segment if not isinstance(chunk, c.Error)] for segment in source(seed)]
        for seed in range(RUNS)
    ]


def retold(segments: Segments) -> list[AnyChunk]:
    """The whole message as one stream."""
    earlier = earlier_segments(segments)
    return [*earlier, *(segments[-1][1:] if earlier else segments[-1])]


@cache
def logs_of(source: Source) -> list[list[bytes]]:
    return [encode_chunks(retold(run)) for run in runs_of(source)]


def messages_of(node: NodeDriver, release: str, logs: list[list[bytes]]) -> list[UIMessage]:
    """As the client folds them."""
    streams = ["".join(f"data: {chunk.decode()}\n\n" for chunk in log) for log in logs]
    answer = node.fold(release, streams, returning="messages")
    assert answer["errors"] == []
    return [_comparable(entry["message"]) for entry in answer["messages"]]


def _comparable(message: UIMessage) -> UIMessage:
    """Without that in which the releases differ among themselves."""
    for part in message["parts"]:
        if "rawInput" in part and "input" in part and _means(part["rawInput"], part["input"]):
            del part["rawInput"]  # the newest ones keep the text of arguments that were told as text
        if part["type"] == "reasoning":
            part.pop("id", None)  # only the newest 6 and 7 have it
        if part.get("state") == "output-error":
            # Arguments that never became whole are null: in `rawInput`, or in `input` in the newest 7.
            for name in ("input", "rawInput"):
                if part.get(name) is None:
                    part.pop(name, None)
    return message


def _means(text: str, value: Any) -> bool:
    return isinstance(text, str) and json.loads(text) == value


def _without_traces_of_replay(message: UIMessage) -> UIMessage:
    """The arguments of a finished call are replayed as text. The newest releases keep that text beside an error or a
    denial; and the chunk that would bring its author, `tool-input-available`, is the one that must not come again."""
    for part in message["parts"]:
        if part.get("state", "").startswith("output-"):
            part.pop("rawInput", None)
            part.pop("callProviderMetadata", None)
    return message


@both_sources
@every_release
def test_our_fold_makes_the_message_that_the_client_makes(node: NodeDriver, release: str, source: Source) -> None:
    theirs = messages_of(node, release, logs_of(source))
    for seed, run in enumerate(runs_of(source)):
        fold = MessageFold()
        for chunk in retold(run):
            fold.feed(chunk)
        ours: dict[str, Any] = json.loads(encode_json(fold.message()))  # as the history route gives it
        assert _comparable(ours) == theirs[seed], f"seed {seed}"


@both_sources
@every_release
def test_a_replay_and_what_follows_it_make_the_uninterrupted_message(
    node: NodeDriver, release: str, source: Source
) -> None:
    resumed: list[list[bytes]] = []
    for seed, run in enumerate(runs_of(source)):
        earlier, log = encode_chunks(earlier_segments(run)), encode_chunks(run[-1])
        cut = Random(seed).randint(1 if earlier else 0, len(log))
        resumed.append([*(chunk for _, chunk in replayed(earlier, log[:cut])), *log[cut:]])
    changed = sum(log != whole for log, whole in zip(resumed, logs_of(source), strict=True))
    assert changed > RUNS / 10, "hardly a call was finished before the cut"
    wholes = messages_of(node, release, logs_of(source))
    for seed, message in enumerate(messages_of(node, release, resumed)):
        assert _without_traces_of_replay(message) == _without_traces_of_replay(wholes[seed]), f"seed {seed}"


def test_walks_go_over_several_segments() -> None:
    assert sum(len(run) > 2 for run in runs_of(walked)) > RUNS / 10
