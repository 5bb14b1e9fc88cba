"""A scripted Gemini API on real HTTPS.

ADK's own `Gemini` model talks to it through the real google-genai client, so a test sees the events that
a user's agent produces, faults on the wire included:

    with FakeGemini([[text("Hel"), text("lo"), finish()]]) as gemini:
        agent = LlmAgent(name="greeter", model=gemini.model())

A script is a list of turns, one per request, in order of arrival. A turn is an `HttpError`, or the chunks
that Gemini streams, up to a `CUT` if there is one. The chunks have the shapes that the API sends, down to
the empty text that closes a stream.
"""

import json
import re
import socketserver
import ssl
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

import trustme
from google.adk.models.google_llm import Gemini
from google.genai.types import HttpOptions, HttpRetryOptions

Chunk = dict[str, Any]


class Fault(Enum):
    CUT = "the connection dies in the middle of a chunk"


CUT: Final = Fault.CUT


@dataclass(frozen=True)
class HttpError:
    """A refusal, with the error body that Google's APIs send.

    The body is a chunk as well: that is how Gemini reports a failure after the stream has begun.
    """

    code: int
    status: str
    message: str

    @property
    def body(self) -> Chunk:
        return {"error": {"code": self.code, "message": self.message, "status": self.status}}


QUOTA_EXCEEDED: Final = HttpError(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.")
INTERNAL_ERROR: Final = HttpError(500, "INTERNAL", "An internal error has occurred.")

Turn = HttpError | Sequence[Chunk | Fault]

USAGE: Final = {"promptTokenCount": 7, "candidatesTokenCount": 11, "totalTokenCount": 18}


def chunk(*parts: dict[str, Any], **candidate_fields: Any) -> Chunk:
    """Any chunk the constructors below do not cover; without parts it has no content at all."""
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return {
        "candidates": [{**content, **candidate_fields, "index": 0}],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-fake",
        "responseId": "fake-response",
    }


def text(delta: str) -> Chunk:
    return chunk({"text": delta})


def thought(delta: str) -> Chunk:
    return chunk({"text": delta, "thought": True})


def call(name: str, args: dict[str, Any], call_id: str | None = None) -> Chunk:
    """A whole call. Only some models name their calls, so there is an id only when one is given."""
    identity = {} if call_id is None else {"id": call_id}
    return chunk({"functionCall": {**identity, "name": name, "args": args}})


def streamed_call(
    name: str, fragments: Sequence[tuple[str, Any, bool]], *, closed_by_last_fragment: bool = False
) -> list[Chunk]:
    """A call whose arguments arrive as (JSON path, value, whether more of this value follows).

    Only the first chunk has the name. Gemini closes a call in one of two ways: with an empty call or, when
    the last argument is not a string, with a last fragment that does not announce more.
    """
    calls: list[dict[str, Any]] = [{"name": name, "willContinue": True}]
    for json_path, value, more_follows in fragments:
        fragment = {"jsonPath": json_path, **_typed_value(value)}
        if more_follows:
            fragment["willContinue"] = True
        calls.append({"partialArgs": [fragment], "willContinue": True})
    if closed_by_last_fragment:
        del calls[-1]["willContinue"]
    else:
        calls.append({})
    return [chunk({"functionCall": part}) for part in calls]


def together(*chunks: Chunk) -> Chunk:
    """One chunk with the parts of all, as Gemini sends parallel calls."""
    return chunk(*(part for one in chunks for part in _parts(one)))


def finish(reason: str = "STOP", **candidate_fields: Any) -> Chunk:
    return chunk({"text": ""}, finishReason=reason, **candidate_fields)


def _typed_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int() | float():
            return {"numberValue": value}
        case str():
            return {"stringValue": value}
        case None:
            return {"nullValue": "NULL_VALUE"}
        case _:
            raise TypeError(f"Gemini streams no {type(value).__name__} as one argument value")


def _parts(one: Chunk) -> list[dict[str, Any]]:
    return one["candidates"][0].get("content", {}).get("parts", [])


def _whole_response(chunks: Sequence[Chunk]) -> Chunk:
    """The chunks as the one answer that Gemini gives when it was not asked to stream."""
    parts: list[dict[str, Any]] = []
    candidate: dict[str, Any] = {}
    response: Chunk = {}
    for one in chunks:
        response |= one
        candidate |= one["candidates"][0]
        for part in _parts(one):
            if parts and "text" in part and part.keys() == parts[-1].keys():
                parts[-1] = {**part, "text": parts[-1]["text"] + part["text"]}
            elif part != {"text": ""}:
                parts.append(part)
    content = {"content": {"role": "model", "parts": parts}} if parts else {}
    return {**response, "candidates": [{**candidate, **content}]}


@cache  # new keys for every test would take most of its time
def _tls_contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


class FakeGemini:
    """Serves its turns on a port of its own and keeps the body of every request in `requests`."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._turns = list(turns)
        self._taking_turns = threading.Lock()
        self._server_tls, self.client_tls = _tls_contexts()

    def __enter__(self) -> Self:
        self._server = _Server(self, self._server_tls)
        # The poll interval is how long the end of the `with` block may take.
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def model(self) -> Gemini:
        """ADK's Gemini as it is with an API key of Google AI Studio."""
        return self._wired(vertex=False)

    def vertex_model(self) -> Gemini:
        """ADK's Gemini on Vertex AI, the only flavour that may ask for streamed call arguments."""
        return self._wired(vertex=True)

    def _wired(self, *, vertex: bool, name: str = "gemini-2.5-flash", **transport_options: Any) -> Gemini:
        transport = {
            "verify": self.client_tls,
            "ssl": self.client_tls,  # the name of `verify` where google-genai finds aiohttp installed
            "trust_env": False,  # no proxy of the machine may come between
            **transport_options,
        }
        return Gemini(
            model=name,
            base_url=self.base_url,
            client_kwargs={
                "api_key": "any-key",
                "enterprise": vertex,
                "http_options": HttpOptions(
                    base_url=self.base_url,  # again: ADK below 2.13 takes the options from here, or from there
                    # On aiohttp, google-genai would otherwise sleep for seconds and then ask again by itself.
                    retry_options=HttpRetryOptions(attempts=1),
                    async_client_args=transport,
                ),
            },
        )

    def next_turn(self, request: dict[str, Any]) -> Turn:
        with self._taking_turns:
            self.requests.append(request)
            if not self._turns:
                return HttpError(400, "FAILED_PRECONDITION", f"no turn for request {len(self.requests)}")
            return self._turns.pop(0)

    def converse(self, request: BaseHTTPRequestHandler) -> None:
        """A request to open a WebSocket. This one has none; see `fake_gemini_live`."""
        request.send_error(404)


# The same methods, the way the API of Google AI Studio and the way Vertex AI spells them.
_KNOWN_PATHS = re.compile(
    r"/(v1beta|v1alpha|v1beta1/publishers/google)/models/[^/:]+:(generateContent|streamGenerateContent\?alt=sse)"
)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True  # a connection that never sends its request must not keep the tests from ending
    request_queue_size = 128

    def __init__(self, script: FakeGemini, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.script = script
        self.tls = tls

    def handle_error(self, request: Any, client_address: Any) -> None:
        client_has_left = isinstance(sys.exception(), OSError)
        if not client_has_left:
            super().handle_error(request, client_address)


class _Conversation(BaseHTTPRequestHandler):
    """One connection with one request: a kept connection would outlive the event loop of its test."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        # Here, in the thread of this connection, so that a slow handshake holds up nobody else.
        self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        self.server.script.converse(self)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = _KNOWN_PATHS.fullmatch(self.path)
        turn = self.server.script.next_turn(body) if known else HttpError(404, "NOT_FOUND", self.path)
        if isinstance(turn, HttpError):
            self._send_whole(turn.code, turn.body)
        elif self.path.endswith(":generateContent"):
            chunks = [one for one in turn if one is not CUT]
            self._send_whole(200, _whole_response(chunks), cut=CUT in turn)
        else:
            self._send_stream(turn)

    def _send_whole(self, code: int, body: dict[str, Any], *, cut: bool = False) -> None:
        payload = json.dumps(body).encode()
        self._send_head(code, "application/json", "Content-Length", str(len(payload)))
        self.wfile.write(payload[: len(payload) // 2] if cut else payload)

    def _send_stream(self, turn: Sequence[Chunk | Fault]) -> None:
        self._send_head(200, "text/event-stream", "Transfer-Encoding", "chunked")
        for one in turn:
            if one is CUT:
                self.wfile.write(b'ff\r\ndata: {"candid')
                return
            event = f"data: {json.dumps(one)}\r\n\r\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, code: int, content_type: str, framing: str, size: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header(framing, size)
        self.send_header("Connection", "close")
        self.end_headers()
