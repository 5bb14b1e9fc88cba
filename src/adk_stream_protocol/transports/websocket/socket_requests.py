"""The requests of one live socket, and their streams to the client."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ...chunk_log import ChunkLog, LogReader
from ...errors import MalformedRequest
from ...protocol import frames
from ...protocol.turn import is_chat_id
from .live_requests import LiveRequests, RequestStream
from .socket_client import SocketClient
from .socket_listener import SocketListener


@dataclass(eq=False)
class _Request:
    """One that is under way."""

    chat_id: str
    task: asyncio.Task[None]
    waker: asyncio.Event
    has_begun: bool
    """Whether the chat knows what it asks for, if it asks for anything."""
    is_left: bool = False
    """Whether its client has left before. It begins all the same."""
    log: ChunkLog | None = None
    """What it reads, once its stream is open."""
    is_aborted: bool = False
    """Whether it was aborted before its stream was open."""

    def leave(self) -> None:
        if self.log is not None:
            self.log.unwatch(self.waker)  # at once: the next reader to leave may be the last one
        if self.has_begun:
            self.task.cancel()
        else:
            self.is_left = True


class SocketRequests:
    """Each request has a task, which streams to the client until the end of its log."""

    def __init__(self, client: SocketClient, listener: SocketListener, known: LiveRequests) -> None:
        """`known`: the requests of all sockets."""
        self._client = client
        self._listener = listener
        self._known = known
        self._under_way: dict[str, _Request] = {}
        self._stops: set[asyncio.Task[None]] = set()

    def begin_send(self, frame: frames.Send) -> None:
        self._begin(frame, lambda: self._send(frame), has_begun=False)

    def begin_resume(self, frame: frames.Resume) -> None:
        self._begin(frame, lambda: self._resume(frame))

    def _begin(self, frame: frames.Request, work: Callable[[], Awaitable[None]], *, has_begun: bool = True) -> None:
        if frame.request_id in self._under_way:
            raise MalformedRequest("A request with this requestId is still running.")

        async def run() -> None:
            with self._client.refusing(frame.request_id):
                await work()

        task = asyncio.create_task(run(), name=f"adk-stream request {frame.request_id}")
        self._under_way[frame.request_id] = _Request(frame.id, task, asyncio.Event(), has_begun)
        self._listener.requests[frame.id] += 1
        task.add_done_callback(lambda _: self._ended(frame))  # also of a task that is cancelled before it begins

    def _ended(self, frame: frames.Request) -> None:
        del self._under_way[frame.request_id]
        self._listener.requests -= Counter([frame.id])  # without those that have none left

    # -- what they read -----------------------------------------------------------------------------------------------

    async def _send(self, frame: frames.Send) -> None:
        client = self._client
        is_large = frame.is_larger_than(client.limits.threaded_decode_bytes)
        digest = await asyncio.to_thread(frame.digest) if is_large else frame.digest()
        await client.require_login()
        request = self._under_way[frame.request_id]
        if not request.is_left:
            self._listener.listen(frame.id, frame.body)
        request.has_begun = True
        stream = await self._known.open(
            (client.user, frame.id, frame.request_id),
            digest,
            lambda: client.service.open_live_turn(client.caller, frame, self._listener),
        )
        if request.is_left:
            return
        self._listener.unread.pop(frame.id, None)
        stream.log.require_room(client.limits.max_readers_per_run)
        reader = await stream.reader(0, client.limits.max_send_bytes)
        await self._stream(frame.request_id, stream.log, reader, 0)

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
            stream = self._known.add(key, RequestStream.replaying(log))
        start = 0 if frame.last_sequence is None else frame.last_sequence + 1
        reader = await stream.reader(start, client.limits.max_send_bytes)
        client.outbox.put(frames.encode_start(frame.request_id))
        await self._stream(frame.request_id, log, reader, start)

    def _log_of(self, chat_id: str) -> ChunkLog | None:
        """The message that is being written in this chat, or one that has ended and that this client has not read."""
        service, user = self._client.service, self._client.user
        unread = self._listener.unread.get(chat_id, {})
        logs = [(message_id, service.running(user, chat_id, message_id)) for message_id in reversed(unread)]
        running = service.running(user, chat_id)
        # A result that came late and what the model says about it are two messages at once.
        logs.sort(key=lambda found: found[1] is not running)
        for message_id, log in logs:
            del unread[message_id]
            if log is not None:
                return log
        return running

    # -- their streams ------------------------------------------------------------------------------------------------

    async def _stream(self, request_id: str, log: ChunkLog, reader: LogReader, sequence: int) -> None:
        """`sequence`: the number of the next chunk."""
        outbox = self._client.outbox
        request = self._under_way[request_id]
        request.log, waker = log, request.waker
        log.watch(waker)
        try:
            if request.is_aborted:
                self.abort(request_id)
            while True:
                for _, chunk in reader.take():
                    self._put_chunk(request_id, sequence, chunk)
                    sequence += 1
                if reader.is_at_end:
                    self._put_end(request_id)
                    return
                await outbox.wait_for_room()
                if reader.has_more:
                    await asyncio.sleep(0)  # with room in the outbox, nothing else here would let other tasks run
                else:
                    waker.clear()
                    await waker.wait()
        finally:
            log.unwatch(waker)

    def _put_chunk(self, request_id: str, sequence: int, chunk: bytes) -> None:
        self._client.outbox.put(frames.encode_chunk(request_id, sequence, chunk))

    def _put_end(self, request_id: str) -> None:
        self._client.outbox.put(frames.encode_end(request_id))

    def abort(self, request_id: str) -> None:
        """The client reads no more of it. With the last reader of a message its run may be stopped, too."""
        request = self._under_way.get(request_id)
        if request is None:
            return
        log = request.log
        if log is None:
            request.is_aborted = True
        elif self._client.limits.abort_stops_run and not log.is_closed and log.reader_count == 1:
            self.stop_run(request.chat_id)  # the log is then closed, and the stream ends by itself
        else:
            request.leave()

    def leave(self, chat_id: str) -> None:
        """The client reads this chat no more; what runs there goes on."""
        for request in self._under_way.values():
            if request.chat_id == chat_id:
                request.leave()

    async def leave_all(self) -> None:
        """The socket has ended. What has come over it is done: an approval, and then the page was closed, say."""
        for request in self._under_way.values():
            request.leave()
        tasks = [request.task for request in self._under_way.values() if not request.is_left]
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop_run(self, chat_id: str) -> None:
        stop = self._client.service.stop(self._client.user, chat_id)
        task = asyncio.create_task(stop, name="adk-stream stop")
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio logs the exception
