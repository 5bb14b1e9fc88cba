"""Serves a recording as the chat API that it was made from: each turn of a client gets the next recorded turn."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from ..errors import BridgeError, MalformedRequest, NotFound
from ..protocol import frames, sse
from ..transports.http import refusal
from ..transports.security import POLICY_VIOLATION, Access
from .reader import Recorded, RecordedTurn

_MAX_PAUSE_S = 0.2  # nobody wants to wait again for a slow tool or person
_TO_DECIDE = timedelta(minutes=10)
_SEGMENT = b"replay"
_APPROVAL_FIELDS = {"data-adk-approval": "data", "tool-approval-request": "approvalDescriptor"}


class Replay:
    """The position of each chat in a recording. Recorded turns come in order, whatever the client sends."""

    def __init__(self, recorded: Recorded, *, speed: float = 1) -> None:
        self.recorded = recorded
        self._speed = speed
        self._positions: Counter[str] = Counter()
        self._is_closing = asyncio.Event()

    async def aclose(self) -> None:
        self._is_closing.set()

    def announced_turn(self, chat_id: str) -> RecordedTurn | None:
        """The next turn, if no request asked for it."""
        position = self._positions[chat_id]
        turn = self.recorded.turns[position] if position < len(self.recorded.turns) else None
        return turn if turn is not None and turn.is_announced else None

    def next_turn(self, chat_id: str) -> RecordedTurn:
        position = self._positions[chat_id]
        if position == len(self.recorded.turns):
            raise NotFound("The recording ends here. A new chat begins it again.")
        self._positions[chat_id] += 1
        return self.recorded.turns[position]

    async def chunks(self, turn: RecordedTurn) -> AsyncGenerator[bytes]:
        last = turn.requested_at
        for at, chunk in turn.chunks:
            pause = min(at - last, _MAX_PAUSE_S) / self._speed
            last = at
            if pause > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._is_closing.wait()
            if self._is_closing.is_set():
                return
            yield _with_new_deadline(chunk)


def _with_new_deadline(chunk: bytes) -> bytes:
    """The recorded deadline of an approval has passed; with a new one it can be approved."""
    if b'"deadline"' not in chunk:
        return chunk
    decoded = cast(dict[str, Any], msgspec.json.decode(chunk))
    approval = decoded.get(_APPROVAL_FIELDS.get(decoded["type"], ""))
    if approval:
        deadline = datetime.now(UTC) + _TO_DECIDE
        approval["deadline"] = deadline.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return msgspec.json.encode(decoded)


class _TurnBody(msgspec.Struct):
    id: str


class _Error(msgspec.Struct):
    code: str = "internal"
    message: str = ""


class _Refused(msgspec.Struct):
    error: _Error = msgspec.field(default_factory=_Error)


def _error_in(refusal: bytes) -> _Error:
    try:
        return msgspec.json.decode(refusal, type=_Refused).error
    except msgspec.DecodeError:  # perhaps a proxy has sent it
        return _Error()


def build_replay_router(replay: Replay, prefix: str) -> APIRouter:
    access = Access()

    async def turn(request: Request) -> Response:
        try:
            body = msgspec.json.decode(await request.body(), type=_TurnBody)
            recorded = replay.next_turn(body.id)
        except msgspec.DecodeError:
            return refusal(MalformedRequest())
        except NotFound as error:
            return refusal(error)
        return _response(replay, recorded)

    async def stream(request: Request) -> Response:
        chat_id = request.path_params["chat_id"]
        if replay.announced_turn(chat_id) is None:
            return Response(status_code=204)
        return _response(replay, replay.next_turn(chat_id))

    async def read(request: Request) -> Response:
        path = request.path_params.get("path")
        recorded = replay.recorded.response("" if path is None else f"/{path}")
        if recorded is not None:
            status, body = recorded
            return Response(body, status, media_type="application/json")
        return JSONResponse([]) if path is None else refusal(NotFound())

    async def inbox(request: Request) -> Response:
        return JSONResponse({"approvals": [], "cursor": None})  # nobody asks for what was decided long ago

    async def accept(request: Request) -> Response:
        return Response(status_code=204)

    async def live(websocket: WebSocket) -> None:
        # As in live mode: browsers let pages of any site open sockets to us.
        if access.may_open_socket(websocket.headers):
            await _ReplaySocket(replay, websocket).serve()
        else:
            await websocket.close(POLICY_VIOLATION)

    router = APIRouter(prefix=prefix)
    router.add_api_route("", turn, methods=["POST"], response_class=Response)
    router.add_api_route("", read, methods=["GET"], response_class=Response)
    router.add_api_websocket_route("/live", live)
    router.add_api_route("/approvals", inbox, methods=["GET"], response_class=Response)
    router.add_api_route("/{chat_id}/stream", stream, methods=["GET"], response_class=Response)
    router.add_api_route("/{chat_id}/stop", accept, methods=["POST"], response_class=Response)
    router.add_api_route("/{chat_id}", accept, methods=["DELETE"], response_class=Response)
    router.add_api_route("/{path:path}", read, methods=["GET"], response_class=Response)
    return router


def _response(replay: Replay, turn: RecordedTurn) -> Response:
    if turn.refusal is not None:
        status, body = turn.refusal
        return Response(body, status, media_type="application/json")

    async def events() -> AsyncGenerator[bytes]:
        place = 0
        async for chunk in replay.chunks(turn):
            yield sse.encode_event(_SEGMENT, place, chunk)
            place += 1
        yield sse.DONE

    return StreamingResponse(events(), headers=sse.HEADERS)


class _ReplaySocket:
    def __init__(self, replay: Replay, websocket: WebSocket) -> None:
        self._replay = replay
        self._websocket = websocket
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        offered = self._websocket.scope.get("subprotocols", ())
        await self._websocket.accept(subprotocol=frames.SUBPROTOCOL if frames.SUBPROTOCOL in offered else None)
        try:
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if (text := message.get("text")) is not None:  # voice is ignored
                    await self._act_on(text)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _act_on(self, text: str) -> None:
        try:
            match frames.decode_frame(text):
                case frames.Send() as frame:
                    self._begin(frame.request_id, frame.id)
                case frames.Resume() as frame if self._replay.announced_turn(frame.id) is not None:
                    await self._send(frames.encode_start(frame.request_id))
                    self._begin(frame.request_id, frame.id)
                case frames.Resume() as frame:
                    await self._send(frames.encode_no_active(frame.request_id))
                case frames.Abort() as frame if frame.request_id in self._tasks:
                    self._tasks[frame.request_id].cancel()
                case frames.Ping():
                    await self._send(frames.encode_own("pong", {}))
                case frames.Attach() as frame:
                    await self._send(frames.encode_own("attached", {"id": frame.id}))
                    await self._announce(frame.id)
                case _:
                    pass
        except BridgeError as error:
            await self._send(frames.encode_error(frames.decode_request_id(text), error))

    def _begin(self, request_id: str, chat_id: str) -> None:
        turn = self._replay.next_turn(chat_id)
        task = asyncio.create_task(self._stream(request_id, chat_id, turn), name=f"adk-stream replay {request_id}")
        self._tasks[request_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request_id, None))

    async def _stream(self, request_id: str, chat_id: str, turn: RecordedTurn) -> None:
        if turn.refusal is not None:
            error = _error_in(turn.refusal[1])
            frame = {"type": "error", "requestId": request_id, "code": error.code, "errorText": error.message}
            await self._send(msgspec.json.encode(frame).decode())
            return
        sequence = 0
        async for chunk in self._replay.chunks(turn):
            await self._send(frames.encode_chunk(request_id, sequence, chunk))
            sequence += 1
        await self._send(frames.encode_end(request_id))
        await self._announce(chat_id)

    async def _announce(self, chat_id: str) -> None:
        turn = self._replay.announced_turn(chat_id)
        if turn is not None:
            await self._send(frames.encode_own("turn", {"id": chat_id, "messageId": turn.message_id}))

    async def _send(self, text: str) -> None:
        with suppress(RuntimeError, OSError, WebSocketDisconnect):  # the client has disconnected
            await self._websocket.send_text(text)
