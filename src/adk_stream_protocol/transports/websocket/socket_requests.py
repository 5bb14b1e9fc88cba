"""The requests of one live socket, and their streams to the client."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ...chunk_log import ChunkLog, LogReader
from ...errors import MalformedRequest
from ...protocol import frames
from ...protocol.turn import is_chat_id
from .live_requests import LiveRequests, RequestStream
from .socket_client import SocketClient
from .socket_listener import SocketListener


class SocketRequests:
    """Each request has a task, which streams to the client until the end of its log."""

    def __init__(self, client: SocketClient, listener: SocketListener, known: LiveRequests) -> None:
        """`known`: the requests of all sockets."""
        self._client = client
        self._listener = listener
        self._known = known
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._streaming: dict[str, tuple[str, ChunkLog]] = {}  # the chat and the log of each open stream
        self._aborted: set[str] = set()  # requests that were aborted before their streams were open
        self._stops: set[asyncio.Task[None]] = set()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return list(self._tasks.values())

    def begin_send(self, frame: frames.Send) -> None:
        self._begin(frame.request_id, self._send(frame))

    def begin_resume(self, frame: frames.Resume) -> None:
        self._begin(frame.request_id, self._resume(frame))

    def _begin(self, request_id: str, work: Coroutine[Any, Any, None]) -> None:
        if request_id in self._tasks:
            work.close()
            raise MalformedRequest("This requestId is under way.")

        async def run() -> None:
            try:
                with self._client.refusing(request_id):
                    await work
            finally:
                self._tasks.pop(request_id, None)
                self._streaming.pop(request_id, None)
                self._aborted.discard(request_id)

        self._tasks[request_id] = asyncio.create_task(run(), name=f"adk-stream request {request_id}")

    # -- what they read -----------------------------------------------------------------------------------------------

    async def _send(self, frame: frames.Send) -> None:
        client = self._client
        is_large = frame.is_larger_than(client.limits.threaded_decode_bytes)
        digest = await asyncio.to_thread(frame.digest) if is_large else frame.digest()
        await client.require_login()
        self._listener.listen(frame.id, frame.body)
        stream = await self._known.open(
            (client.user, frame.id, frame.request_id),
            digest,
            lambda: client.service.open_live_turn(client.caller, frame, self._listener),
        )
        self._listener.unread.pop(frame.id, None)
        stream.log.require_room(client.limits.max_readers_per_run)
        reader = await stream.reader(0, client.limits.max_send_bytes)
        await self._stream(frame.request_id, frame.id, stream.log, reader, 0)

    async def _resume(self, frame: frames.Resume) -> None:
        client = self._client
        if not is_chat_id(frame.id):
            client.outbox.put(frames.encode_no_active(frame.request_id))
            return
        self._listener.listen(frame.id, frame.body)
        key = (client.user, frame.id, frame.request_id)
        stream = await self._known.find(key)
        log = stream.log if stream is not None else self._log_of(frame.id)
        if log is None or (stream is None and frame.last_sequence is not None):
            client.outbox.put(frames.encode_no_active(frame.request_id))
            return
        log.require_room(client.limits.max_readers_per_run)
        if stream is None:
            self._listener.unread.pop(frame.id, None)
            stream = self._known.add(key, RequestStream.replaying(log))
        start = 0 if frame.last_sequence is None else frame.last_sequence + 1
        reader = await stream.reader(start, client.limits.max_send_bytes)
        client.outbox.put(frames.encode_start(frame.request_id))
        await self._stream(frame.request_id, frame.id, log, reader, start)

    def _log_of(self, chat_id: str) -> ChunkLog | None:
        """The message that is being written in this chat, or one that has ended and that this client has not read."""
        service, user = self._client.service, self._client.user
        log, unread = service.running(user, chat_id), self._listener.unread.get(chat_id)
        return service.running(user, chat_id, unread) if log is None and unread is not None else log

    # -- their streams ------------------------------------------------------------------------------------------------

    async def _stream(self, request_id: str, chat_id: str, log: ChunkLog, reader: LogReader, sequence: int) -> None:
        """`sequence`: the number of the next chunk."""
        self._streaming[request_id] = (chat_id, log)
        if request_id in self._aborted:
            self.abort(request_id)
        outbox = self._client.outbox
        waker = asyncio.Event()
        log.watch(waker)
        try:
            while True:
                for _, chunk in reader.take():
                    outbox.put(frames.encode_chunk(request_id, sequence, chunk))
                    sequence += 1
                if reader.is_at_end:
                    outbox.put(frames.encode_end(request_id))
                    return
                await outbox.wait_for_room()
                if reader.has_more:
                    await asyncio.sleep(0)  # with room in the outbox, nothing else here would let other tasks run
                else:
                    waker.clear()
                    await waker.wait()
        finally:
            log.unwatch(waker)

    def abort(self, request_id: str) -> None:
        streaming = self._streaming.get(request_id)
        if streaming is None:
            if request_id in self._tasks:
                self._aborted.add(request_id)
            return
        chat_id, log = streaming
        if self._client.limits.abort_stops_run and not log.is_closed:
            self.stop_run(chat_id)  # the log is then closed, and the stream ends by itself
        elif (task := self._tasks.get(request_id)) is not None:
            task.cancel()

    def stop_run(self, chat_id: str) -> None:
        stop = self._client.service.stop(self._client.user, chat_id)
        task = asyncio.create_task(stop, name="adk-stream stop")
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio logs the exception
