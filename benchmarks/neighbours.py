"""What a few users who mean ill cost fifty others, on one `adk-stream serve`.

    python benchmarks/neighbours.py [--source path/to/another/src]

Fifty users chat all the time; the model says a word every 50 ms and with it when the word was due. First alone; then
beside one who edits a chat of 2,000 turns, one who lists 50 chats with files, unfinished uploads, deflate bombs and
giant headers, and 200 readers of a log of 60,000 chunks who never read. Told: how late words came, leases that were
lost, memory and descriptors before, at worst and afterwards.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai import types
from neighbours_agent import PERIOD_S
from neighbours_attacks import bombs, dead_readers, flood, giant_headers, request_head, slow_uploads

HERE = Path(__file__).resolve().parent
USERS, LISTED, TURNS = 50, 50, 2_000
# In memory, where there is such a place: what a slow disk costs everybody is not the question.
FAST_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
QUIET_S, ATTACK_S, AFTER_S = 15, 40, 20
FILE = types.Part(inline_data=types.Blob(data=b"\0" * 2**20, mime_type="image/png"))


async def fill(url: str, source: Path) -> None:
    """A chat of 2,000 turns, and fifty with a file in each."""
    sys.path.insert(0, str(source))
    from adk_stream_protocol.adk.session import MessageIds

    service = DatabaseSessionService(url)

    async def chat(user: str, chat_id: str, turns: int, *first: types.Part) -> None:
        session = await service.create_session(app_name="neighbours", user_id=user, session_id=chat_id)
        for number in range(turns):
            ids = MessageIds(user_message_id=f"u{number}", message_id=f"m{number}").metadata()
            for author, role in (("user", "user"), ("neighbours", "model")):
                parts = [types.Part(text=f"words, number {number}"), *(first if number == 0 and role == "user" else ())]
                content = types.Content(role=role, parts=parts)
                event = Event(author=author, invocation_id=f"i{number}", content=content, custom_metadata=ids)
                await service.append_event(session, event)

    await chat("editor", "long", TURNS)
    for number in range(LISTED):
        await chat("lister", f"files-{number}", 1, FILE)
    await service.close()


class Server:
    """`adk-stream serve` as a process, and what it takes."""

    def __init__(self, source: Path, url: str, log: Path) -> None:
        self.port = 18_744
        self._log = log
        environment = {**os.environ, "PYTHONPATH": f"{source}:{HERE}", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-c", "from adk_stream_protocol.cli import main; main()", "serve"]
        command += ["neighbours_agent:agent", "--port", str(self.port), "--database", url]
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, env=environment, cwd=HERE, stdout=out, stderr=out)
        self.most_mib = 0.0
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def wait(self) -> None:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/chat", timeout=5)
                break
            time.sleep(0.2)
        self._watching.start()

    def _watch(self) -> None:
        while self._process.poll() is None:
            with suppress(OSError, IndexError):
                self.most_mib = max(self.most_mib, self.memory_mib())
            time.sleep(0.05)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def lost_leases(self) -> int:
        return self._log.read_text(errors="replace").count("lost its lease")

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        self._process.kill()


async def send(port: int, user: str, body: dict[str, Any], take: Callable[[bytes], None]) -> str:
    """One turn. Gives its status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    encoded = json.dumps(body).encode()
    writer.write(request_head("POST", "/api/chat", user, len(encoded)) + encoded)
    try:
        status = (await reader.readline()).decode().split(" ")[1]
        while line := await reader.readline():
            take(line)
            if b"[DONE]" in line or (status != "200" and line.startswith(b"{")):
                break
        return status
    finally:
        writer.close()


def said(chat_id: str, text: str, **more: Any) -> dict[str, Any]:
    message = {"id": uuid.uuid4().hex, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": chat_id, "messages": [message], **more}


class Others:
    """Fifty users who chat. Keeps how late each word came, and what went wrong."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.late_s: list[float] = []
        self.to_first_s: list[float] = []
        self.failed = 0

    async def chat_until(self, end_at: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(USERS):
                tasks.create_task(self._chat(f"user-{number}", end_at, number / USERS))

    async def _chat(self, user: str, end_at: float, begins_after: float) -> None:
        await asyncio.sleep(begins_after * 2)
        while time.time() < end_at:
            if not await self._turn(user):
                self.failed += 1
                await asyncio.sleep(1)

    async def _turn(self, user: str) -> bool:
        asked_at, words = time.time(), 0

        def take(line: bytes) -> None:
            nonlocal words
            for due_at in re.findall(rb'"delta":"@([\d.]+)', line):
                if not words:
                    self.to_first_s.append(time.time() - asked_at)
                words += 1
                self.late_s.append(time.time() - float(due_at))

        with suppress(OSError, TimeoutError, IndexError):
            await asyncio.wait_for(send(self._port, user, said(uuid.uuid4().hex, "go"), take), 60)
        return words > 0


def told(name: str, others: Others) -> None:
    def figures(values: list[float]) -> str:
        if len(values) < 2:
            return "none"
        cuts = statistics.quantiles(values, n=100)
        return f"p50 {cuts[49] * 1e3:6.0f}  p99 {cuts[98] * 1e3:6.0f}  most {max(values) * 1e3:6.0f} ms"

    print(f"{name:14} words late: {figures(others.late_s)}   to the first word: {figures(others.to_first_s)}")
    print(f"{'':14} {len(others.late_s)} words, {others.failed} turns failed", flush=True)


async def edits(port: int, end_at: float, counts: dict[str, int]) -> None:
    while time.time() < end_at:
        body = said("long", "ok", messageId="u1000", trigger="submit-message")
        body["messages"][0]["id"] = "u1000"
        with suppress(OSError, TimeoutError, IndexError):
            status = await asyncio.wait_for(send(port, "editor", body, lambda _: None), 120)
            counts[f"edits: {status}"] = counts.get(f"edits: {status}", 0) + 1


async def lists(port: int, end_at: float, counts: dict[str, int]) -> None:
    while time.time() < end_at:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**26)
        writer.write(request_head("GET", "/api/chat", "lister"))
        with suppress(OSError, TimeoutError):
            status = (await asyncio.wait_for(reader.readline(), 120)).decode().split(" ")[1:2]
            counts[f"lists: {status}"] = counts.get(f"lists: {status}", 0) + 1
        writer.close()


def in_a_process(work: Callable[..., None], *about: Any) -> subprocess.Popen[bytes]:
    """So that the attackers' own work is not the measuring one's."""
    code = f"import neighbours_attacks as a; a.{work.__name__}(*{about!r})"
    return subprocess.Popen([sys.executable, "-c", code], cwd=HERE, stdout=sys.stdout)


async def measure(source: Path) -> None:
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as directory:
        url = f"sqlite+aiosqlite:///{directory}/chats.db"
        await fill(url, source)
        server = Server(source, url, Path(directory) / "log.txt")
        server.wait()
        flooding = flood(server.port)
        quiet, attacked, after = Others(server.port), Others(server.port), Others(server.port)
        await quiet.chat_until(time.time() + QUIET_S)
        told("alone", quiet)
        memory, descriptors, cpu = server.memory_mib(), server.descriptors(), server.cpu_s()
        print(f"{'':14} {memory:.0f} MiB, {descriptors} descriptors", flush=True)
        end_at = time.time() + ATTACK_S
        counts: dict[str, int] = {}
        attackers = [
            in_a_process(work, server.port, end_at) for work in (slow_uploads, giant_headers, bombs, dead_readers)
        ]
        editing: list[Awaitable[None]] = [edits(server.port, end_at, counts)]
        editing += [lists(server.port, end_at, counts) for _ in range(2)]
        await asyncio.gather(attacked.chat_until(end_at), *editing)
        told("attacked", attacked)
        print(
            f"{'':14} at most {server.most_mib:.0f} MiB, {server.descriptors()} descriptors, "
            f"{server.cpu_s() - cpu:.0f} s of CPU, leases lost: {server.lost_leases()}, {counts}",
            flush=True,
        )
        flooding.close()
        for attacker in attackers:
            await asyncio.to_thread(attacker.wait)
        await asyncio.sleep(AFTER_S)
        await after.chat_until(time.time() + QUIET_S)
        told("afterwards", after)
        print(f"{'':14} {server.memory_mib():.0f} MiB, {server.descriptors()} descriptors")
        server.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, default=HERE.parent / "src", help="of another version of this library")
    warnings.filterwarnings("ignore")
    print(f"{USERS} users, a word every {PERIOD_S * 1e3:.0f} ms each")
    asyncio.run(measure(parser.parse_args().source.resolve()))


if __name__ == "__main__":
    main()
