"""The watch finds what leaks: sent at once or in pieces, over a socket, or into a log."""

import logging

from fastapi import FastAPI, WebSocket
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient

from support.canary import CANARY, watch

app = FastAPI()


@app.get("/whole")
def whole() -> str:
    return CANARY


@app.get("/pieces")
def pieces() -> StreamingResponse:
    return StreamingResponse(iter([CANARY[:5], CANARY[5:]]))


@app.websocket("/socket")
async def socket(connection: WebSocket) -> None:
    await connection.accept()
    await connection.send_text(f"<{CANARY}>")
    await connection.close()


def test_what_is_sent_is_seen() -> None:
    client = TestClient(app)
    client.get("/whole")
    client.get("/pieces")
    with client.websocket_connect("/socket") as connection:
        connection.receive_text()
    assert watch.take_leaks() == ["http /whole", "http /pieces", "websocket /socket"]


def test_what_is_logged_is_seen_with_its_traceback() -> None:
    logging.getLogger("adk_stream_protocol.any").error("the key is %s", CANARY)
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("any").exception("failed")
    logging.getLogger("google_adk.any").error(CANARY)
    assert watch.take_leaks() == ["a log entry of adk_stream_protocol.any", "a log entry of any"]


def test_nothing_is_seen_where_nothing_leaks() -> None:
    TestClient(app).get("/elsewhere")
    assert watch.take_leaks() == []
