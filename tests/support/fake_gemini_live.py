"""A scripted Gemini Live API on real TLS, beside the HTTP of `fake_gemini` on the same port.

ADK's own `Gemini` talks to it through the real google-genai client and a real WebSocket. A function of the test plays
the service, once for each connection, in a thread of the server's:

    def service(session: WireSession) -> None:
        assert session.expect_text() == "Hello"
        session.text("Hel")
        session.text("lo")
        session.turn_complete()

    with FakeGeminiLive(service) as gemini:
        agent = LlmAgent(name="greeter", model=gemini.live_model(GEMINI_3))

Pings are answered while the service expects something, and when it has returned. What went wrong in a service is raised
at the end of the block.
"""

import base64
import json
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Literal

from google.adk.models.google_llm import Gemini
from websockets.frames import OP_BINARY, OP_PING, OP_TEXT, Frame
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from support.fake_gemini import FakeGemini, Turn

GEMINI_2_5: Final = "gemini-2.5-flash-native-audio-latest"
GEMINI_3: Final = "gemini-3.1-flash-live-preview"

Message = dict[str, Any]
Kind = Literal["client_content", "realtime_input", "tool_response"]

_PATH: Final = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContent"


class Left(Exception):
    """The client has gone."""


class WireSession:
    """The service's end of one connection."""

    def __init__(self, request: BaseHTTPRequestHandler) -> None:
        self.number = 0
        """1 for the first connection."""
        self.received: list[Message] = []
        """What the client has sent after its setup."""
        self.setup: Message = {}
        self.close_code: int | None = None
        """With which the client has closed."""
        self.pings = 0
        self._accepted = False
        self._is_collecting = False
        self._arrived: deque[Message] = deque()
        self._socket: socket.socket = request.request
        self._protocol = ServerProtocol()
        # The web server has read the request already: here it is again.
        headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        self._protocol.receive_data(request.raw_requestline + headers.encode() + b"\r\n")
        (asked,) = self._protocol.events_received()
        assert isinstance(asked, Request)
        self._protocol.send_response(self._protocol.accept(asked))
        self._flush()
        self.setup = self._read()["setup"]

    @property
    def family(self) -> Literal["2.5", "3"]:
        """Whose ways the model has that the client asks for."""
        return "3" if re.match(r"models/gemini-3\..*-live", self.setup["model"]) else "2.5"

    @property
    def handle(self) -> str | None:
        """Which conversation the client wants to go on with."""
        return self.setup.get("sessionResumption", {}).get("handle")

    # -- what the client sends -----------------------------------------------------------------------------------------

    def expect(self, kind: Kind) -> Message:
        """The next message, which must be of this kind."""
        self.accept()
        message = self._read()
        self.received.append(message)
        assert list(message) == [kind], f"The service expects {kind}, and gets {message}."
        return message[kind]

    def expect_text(self) -> str:
        """A whole turn of text, in the form that this model wants."""
        if self.family == "3":
            return self.expect("realtime_input")["text"]
        content = self.expect("client_content")
        assert content["turn_complete"] is True
        return "".join(part["text"] for turn in content["turns"] for part in turn["parts"])

    def expect_audio(self) -> bytes:
        realtime = self.expect("realtime_input")
        blob = realtime["audio"] if self.family == "3" else realtime["mediaChunks"][0]
        return base64.b64decode(blob["data"])

    def expect_responses(self) -> list[Message]:
        return self.expect("tool_response")["functionResponses"]

    def expect_close(self) -> int | None:
        """Reads on until the client closes. Gives the code."""
        try:
            self.accept()
            while True:
                self.received.append(self._read())
        except Left:
            return self.close_code

    def expect_pings(self, count: int) -> None:
        """As many more pings, each answered."""
        wanted = self.pings + count
        while self.pings < wanted:
            self._receive()

    # -- what the service sends ----------------------------------------------------------------------------------------

    def accept(self, session_id: str | None = None) -> None:
        """Happens by itself, before anything else is sent or expected."""
        if not self._accepted:
            self._accepted = True
            self._write({"setupComplete": {"sessionId": session_id} if session_id else {}})

    @contextmanager
    def in_one_write(self) -> Generator[None]:
        """The client receives all of it at once, and has no time to do anything in between."""
        self._is_collecting = True
        yield
        self._is_collecting = False
        self._flush()

    def send(self, message: Message) -> None:
        self.accept()
        self._write(message)

    def content(self, **fields: Any) -> None:
        self.send({"serverContent": fields})

    def text(self, delta: str, *, thought: bool = False) -> None:
        self.content(modelTurn={"parts": [{"text": delta, **({"thought": True} if thought else {})}]})

    def audio(self, samples: bytes, rate: int = 24_000) -> None:
        blob = {"mimeType": f"audio/pcm;rate={rate}", "data": base64.b64encode(samples).decode()}
        self.content(modelTurn={"parts": [{"inlineData": blob}]})

    def call(self, name: str, args: Message, call_id: str = "call-1") -> None:
        self.calls((name, args, call_id))

    def calls(self, *calls: tuple[str, Message, str]) -> None:
        """One message, with which the turn of a 2.5 model ends."""
        made = [{"id": call_id, "name": name, "args": args} for name, args, call_id in calls]
        self.send({"toolCall": {"functionCalls": made}})
        if self.family == "2.5":
            self.turn_complete()

    def cancel(self, *call_ids: str) -> None:
        self.send({"toolCallCancellation": {"ids": list(call_ids)}})

    def input_transcript(self, heard: str, **fields: Any) -> None:
        self.content(inputTranscription={"text": heard, **fields})

    def output_transcript(self, said: str, **fields: Any) -> None:
        self.content(outputTranscription={"text": said, **fields})

    def generation_complete(self) -> None:
        self.content(generationComplete=True)

    def interrupted(self) -> None:
        self.content(interrupted=True)

    def turn_complete(self, **fields: Any) -> None:
        self.content(turnComplete=True, **fields)

    def usage(self, prompt: int, response: int) -> None:
        counts = {"promptTokenCount": prompt, "responseTokenCount": response, "totalTokenCount": prompt + response}
        self.send({"usageMetadata": counts})

    def resumable(self, handle: str) -> None:
        self.send({"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}})

    def go_away(self, time_left: str = "5s") -> None:
        self.send({"goAway": {"timeLeft": time_left}})

    # -- how a connection ends -----------------------------------------------------------------------------------------

    def close(self, code: int, reason: str = "") -> None:
        """In good order, whatever the code says."""
        if self._protocol.state is OPEN:
            self._protocol.send_close(code, reason)
            self._flush()
            self.expect_close()

    def cut(self) -> None:
        """Without a word, which a client calls 1006."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._protocol.receive_eof()

    def _write(self, message: Message) -> None:
        if self._protocol.state is not OPEN:
            raise Left(f"The client has closed with {self.close_code}.")
        self._protocol.send_binary(json.dumps(message).encode())
        if not self._is_collecting:
            self._flush()

    def _flush(self) -> None:
        try:
            self._socket.sendall(b"".join(self._protocol.data_to_send()))
        except OSError as error:
            raise Left(str(error)) from None

    def _read(self) -> Message:
        while not self._arrived:
            self._receive()
        return self._arrived.popleft()

    def _receive(self) -> None:
        if self._protocol.close_rcvd:
            raise Left(f"The client has closed with {self.close_code}.")
        try:
            data = self._socket.recv(65_536)
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
        except (
            OSError,
            EOFError,
        ) as error:  # EOFError: something comes after the end, on a connection that we have cut
            raise Left(str(error)) from None
        for frame in self._protocol.events_received():
            if isinstance(frame, Frame) and frame.opcode in (OP_TEXT, OP_BINARY):
                self._arrived.append(json.loads(bytes(frame.data)))
            elif isinstance(frame, Frame) and frame.opcode is OP_PING:
                self.pings += 1
        self._flush()  # pongs
        if self._protocol.close_rcvd:
            self.close_code = self._protocol.close_rcvd.code
        if not self._arrived and (not data or self._protocol.close_rcvd):
            raise Left(f"The client has closed with {self.close_code}.")


Service = Callable[[WireSession], None]


class FakeGeminiLive(FakeGemini):
    """The fake service with both of its doors, each connection in `sessions`."""

    def __init__(self, service: Service, turns: Sequence[Turn] = ()) -> None:
        super().__init__(turns)
        self.sessions: list[WireSession] = []
        self._service = service
        self._threads: list[threading.Thread] = []
        self._failures: list[Exception] = []
        self._opening = threading.Lock()

    def live_model(self, name: str = GEMINI_2_5, **websocket_options: Any) -> Gemini:
        """ADK's Gemini; `websocket_options` are those of `websockets.connect`."""
        model = self._wired(vertex=False, name=name, proxy=None, **websocket_options)
        assert model.client_kwargs is not None
        model.client_kwargs["http_options"].api_version = "v1alpha"  # as ADK does itself from 2.13 on
        return model

    def __exit__(self, *reason: object) -> None:
        for thread in self._threads:
            thread.join(timeout=5)
        super().__exit__(*reason)
        if reason[0] is None and self._failures:
            raise self._failures[0]

    def converse(self, request: BaseHTTPRequestHandler) -> None:
        if request.path != _PATH or request.headers["x-goog-api-key"] != "any-key":
            request.send_error(404)
            return
        session = WireSession(request)
        with self._opening:
            self._threads.append(threading.current_thread())
            self.sessions.append(session)
            session.number = len(self.sessions)
        try:
            self._service(session)
            session.expect_close()
        except Exception as failure:
            self._failures.append(failure)
            session.close(1011, f"{type(failure).__name__} in the fake service")
