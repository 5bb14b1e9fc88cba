"""Serves a recording as the chat API that it was made of: each turn of a client gets the next recorded answer."""

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

_MAX_PAUSE_S = 0.2  # nobody wants to see again how long a tool or a person took
_TO_DECIDE = timedelta(minutes=10)
_SEGMENT = b"replay"


class Replay:
    """How far each chat is in a recording. Whatever a client says, what was answered comes in the order it came."""

    def __init__(self, recorded: Recorded, *, speed: float = 1) -> None:
        self.recorded = recorded
        self._speed = speed
        self._places: Counter[str] = Counter()
        self._is_closing = asyncio.Event()

    async def aclose(self) -> None:
        self._is_closing.set()

    def announced_turn(self, chat_id: str) -> RecordedTurn | None:
        """The next one, if it came without being asked for."""
        place = self._places[chat_id]
        turn = self.recorded.turns[place] if place < len(self.recorded.turns) else None
        return turn if turn is not None and turn.is_announced else None

    def next_turn(self, chat_id: str) -> RecordedTurn:
        place = self._places[chat_id]
        if place == len(self.recorded.turns):
            raise NotFound("The recording ends here. A new chat begins it again.")
        self._places[chat_id] += 1
        return self.recorded.turns[place]

    async def chunks(self, turn: RecordedTurn) -> AsyncGenerator[bytes]:
        last = turn.asked_at
        for at, chunk in turn.chunks:
            pause = min(at - last, _MAX_PAUSE_S) / self._speed
            last = at
            if pause > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_closing.wait(), pause)
            if self._is_closing.is_set():
                return
            yield _with_time_left(chunk)


def _with_time_left(chunk: bytes) -> bytes:
    """The recorded deadline of an approval has passed, and nobody could approve any more."""
    if b'"deadline"' not in chunk:
        return chunk
    told = cast(dict[str, Any], msgspec.json.decode(chunk))
    about = told.get({"data-adk-approval": "data", "tool-approval-request": "approvalDescriptor"}.get(told["type"], ""))
    if about:
        deadline = datetime.now(UTC) + _TO_DECIDE
        about["deadline"] = deadline.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return msgspec.json.encode(told)


class _Asked(msgspec.Struct):
    id: str


class _Error(msgspec.Struct):
    code: str = "internal"
    message: str = ""


class _Refused(msgspec.Struct):
    error: _Error = msgspec.field(default_factory=_Error)


def _error_in(refusal: bytes) -> _Error:
    try:
        return msgspec.json.decode(refusal, type=_Refused).error
    except msgspec.DecodeError:  # a proxy's, perhaps
        return _Error()


def build_replay_router(replay: Replay, prefix: str) -> APIRouter:
    access = Access()

    async def turn(request: Request) -> Response:
        try:
            asked = msgspec.json.decode(await request.body(), type=_Asked)
            told = replay.next_turn(asked.id)
        except msgspec.DecodeError:
            return refusal(MalformedRequest())
        except NotFound as error:
            return refusal(error)
        return _answer(replay, told)

    async def stream(request: Request) -> Response:
        chat_id = request.path_params["chat_id"]
        if replay.announced_turn(chat_id) is None:
            return Response(status_code=204)
        return _answer(replay, replay.next_turn(chat_id))

    async def read(request: Request) -> Response:
        path = request.path_params.get("path")
        answer = replay.recorded.answer("" if path is None else f"/{path}")
        if answer is not None:
            return Response(answer[1], answer[0], media_type="application/json")
        return JSONResponse([]) if path is None else refusal(NotFound())

    async def done(request: Request) -> Response:
        return Response(status_code=204)

    async def live(websocket: WebSocket) -> None:
        # As in live mode: browsers let the pages of all sites open sockets to us.
        if access.may_open_socket(websocket.headers):
            await _Socket(replay, websocket).serve()
        else:
            await websocket.close(POLICY_VIOLATION)

    router = APIRouter(prefix=prefix)
    router.add_api_route("", turn, methods=["POST"], response_class=Response)
    router.add_api_route("", read, methods=["GET"], response_class=Response)
    router.add_api_websocket_route("/live", live)
    router.add_api_route("/{chat_id}/stream", stream, methods=["GET"], response_class=Response)
    router.add_api_route("/{chat_id}/stop", done, methods=["POST"], response_class=Response)
    router.add_api_route("/{chat_id}", done, methods=["DELETE"], response_class=Response)
    router.add_api_route("/{path:path}", read, methods=["GET"], response_class=Response)
    return router


def _answer(replay: Replay, turn: RecordedTurn) -> Response:
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


class _Socket:
    def __init__(self, replay: Replay, websocket: WebSocket) -> None:
        self._replay = replay
        self._websocket = websocket
        self._telling: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        offered = self._websocket.scope.get("subprotocols", ())
        await self._websocket.accept(subprotocol=frames.SUBPROTOCOL if frames.SUBPROTOCOL in offered else None)
        try:
            while True:
                message = await self._websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                if (text := message.get("text")) is not None:  # voice finds nobody who listens
                    await self._hear(text)
        finally:
            for task in self._telling.values():
                task.cancel()
            await asyncio.gather(*self._telling.values(), return_exceptions=True)

    async def _hear(self, text: str) -> None:
        try:
            match frames.decode_frame(text):
                case frames.Send() as frame:
                    self._begin(frame.request_id, frame.id)
                case frames.Resume() as frame if self._replay.announced_turn(frame.id) is not None:
                    await self._say(frames.encode_start(frame.request_id))
                    self._begin(frame.request_id, frame.id)
                case frames.Resume() as frame:
                    await self._say(frames.encode_no_active(frame.request_id))
                case frames.Abort() as frame if frame.request_id in self._telling:
                    self._telling[frame.request_id].cancel()
                case frames.Ping():
                    await self._say(frames.encode_own("pong", {}))
                case frames.Attach() as frame:
                    await self._say(frames.encode_own("attached", {"id": frame.id}))
                    await self._announce(frame.id)
                case _:
                    pass
        except BridgeError as error:
            await self._say(frames.encode_error(frames.decode_request_id(text), error))

    def _begin(self, request_id: str, chat_id: str) -> None:
        turn = self._replay.next_turn(chat_id)
        task = asyncio.create_task(self._tell(request_id, chat_id, turn), name=f"adk-stream replay {request_id}")
        self._telling[request_id] = task
        task.add_done_callback(lambda _: self._telling.pop(request_id, None))

    async def _tell(self, request_id: str, chat_id: str, turn: RecordedTurn) -> None:
        if turn.refusal is not None:
            told = _error_in(turn.refusal[1])
            frame = {"type": "error", "requestId": request_id, "code": told.code, "errorText": told.message}
            await self._say(msgspec.json.encode(frame).decode())
            return
        sequence = 0
        async for chunk in self._replay.chunks(turn):
            await self._say(frames.encode_chunk(request_id, sequence, chunk))
            sequence += 1
        await self._say(frames.encode_end(request_id))
        await self._announce(chat_id)

    async def _announce(self, chat_id: str) -> None:
        turn = self._replay.announced_turn(chat_id)
        if turn is not None:
            await self._say(frames.encode_own("turn", {"id": chat_id, "messageId": turn.message_id}))

    async def _say(self, text: str) -> None:
        with suppress(RuntimeError, OSError, WebSocketDisconnect):  # it has left
            await self._websocket.send_text(text)
