"""A stream in pieces is the stream: readers of all speeds, cut at random places, who come back with their cursor."""

import asyncio
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adk_stream_protocol import Limits
from adk_stream_protocol.adk.translate.translator import Translator
from adk_stream_protocol.chat.leases import _Place
from adk_stream_protocol.chunk_log import ChunkLog, Reading
from adk_stream_protocol.protocol.chunks import encode_chunks
from adk_stream_protocol.transports.http import EventStreamResponse
from support.apps import app_of, bridge_with, figure
from support.asgi import exchange
from support.event_sequences import random_run

CUT_SETS = 10_000
READERS = 4  # of each log, and so cut sets
RUNS = 50
DONE = b"data: [DONE]"


def recorded(seed: int) -> list[bytes]:
    translator = Translator(root_author="agent0")
    chunks = translator.start(f"m{seed}")
    for event in random_run(seed):
        chunks += translator.feed(event)
    return encode_chunks(chunks + translator.finish())


def at_speed(app: ASGIApp, turns_per_send: int) -> ASGIApp:
    """An application whose reader lets the others go first so many times before it takes what is sent."""

    async def slowed(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_slowly(message: Message) -> None:
            for _ in range(turns_per_send):
                await asyncio.sleep(0)
            await send(message)

        await app(scope, receive, send_slowly)

    return slowed


@dataclass
class Reader:
    """Reads a turn and then, after its cursor, chat c1. The n-th connection is lost after `cuts[n]` events."""

    turn: ASGIApp
    app: ASGIApp
    speed: int
    cuts: list[int]
    resumes: int = 0

    async def read(self) -> bytes:
        events: list[bytes] = []
        for cut in self.cuts:
            events += await self._connection(events, cut)
            if events[-1] == DONE:
                return joined(events)
            self.resumes += 1
        return joined([*events, *await self._connection(events, None)])

    async def _connection(self, events: list[bytes], cut: int | None) -> list[bytes]:
        received = 0

        def is_lost(data: bytes) -> bool:
            nonlocal received
            received += data.count(b"\n\n")
            return cut is not None and received >= cut

        app = at_speed(self.app if events else self.turn, self.speed)
        cursor = {"last-event-id": id_of(events[-1])} if events else {}
        path = "/api/chat/c1/stream"
        answer = await exchange(app, method="GET", path=path, headers=cursor, leave_after=is_lost)
        assert answer.status == 200
        return answer.body.split(b"\n\n")[:-1][:cut]  # what was under way after the cut is lost


def id_of(event: bytes) -> str:
    return event.partition(b"\n")[0].removeprefix(b"id: ").decode()


def joined(events: list[bytes]) -> bytes:
    return b"".join(event + b"\n\n" for event in events)


async def write(log: ChunkLog, chunks: list[bytes], random: Random) -> None:
    """In bursts, with pauses between them; some logs are whole before anybody reads."""
    written = random.choice([0, 1, len(chunks)])
    log.append(chunks[:written])
    while written < len(chunks):
        for _ in range(random.randint(0, 5)):
            await asyncio.sleep(0)
        burst = random.randint(1, 8)
        log.append(chunks[written : written + burst])
        written += burst
    await asyncio.sleep(0)
    log.close()


def cut_set(random: Random, length: int) -> list[int]:
    """At least one event on the first connection: who has no cursor yet is told finished calls in another way."""
    most = random.choice([2, 5, length])
    first = random.choice([random.randint(1, most), length])  # all but the end, sometimes
    return [first, *(random.randint(0, most) for _ in range(random.randint(0, 6)))]


@pytest.mark.figures
def test_the_pieces_of_every_cut_set_are_the_uninterrupted_stream() -> None:
    async def scenario() -> int:
        random = Random(2)
        runs = [recorded(seed) for seed in range(RUNS)]
        bridges = [bridge_with(limits=Limits(max_send_bytes=size)) for size in (1, 300, 256 * 1024)]
        apps = [(bridge, app_of(bridge)) for bridge in bridges]
        resumes = 0
        for number in range(figure(CUT_SETS) // READERS):
            bridge, app = random.choice(apps)
            chunks = random.choice(runs)
            log = ChunkLog(f"segment-{number}")
            leases = bridge._service._leases
            leases._places[bridge._service._key("ann", "c1")] = _Place(run=SimpleNamespace(log=log))  # pyright: ignore
            # One is never cut; all have the response to the turn that they posted as their first connection.
            readers = [
                Reader(EventStreamResponse(Reading(log), bridge.limits), app, random.choice([0, 1, 3, 10]), cuts)
                for cuts in ([], *(cut_set(random, len(chunks)) for _ in range(READERS)))
            ]
            async with asyncio.TaskGroup() as tasks:
                reading = [tasks.create_task(reader.read()) for reader in readers]
                tasks.create_task(write(log, chunks, random))
            whole, *pieces = [task.result() for task in reading]
            assert [event.partition(b"data: ")[2] for event in whole.split(b"\n\n")[:-2]] == chunks
            assert whole.endswith(DONE + b"\n\n")
            assert pieces == [whole] * READERS, [reader.cuts for reader in readers]
            assert not log.is_read
            resumes += sum(reader.resumes for reader in readers)
        return resumes

    assert asyncio.run(scenario()) > figure(CUT_SETS)
