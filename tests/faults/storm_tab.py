"""One page of a chat in a storm: its socket, its microphone, and what it has read."""

import itertools
from typing import Any

from adk_stream_protocol.protocol.chunks import SdkVersion
from adk_stream_protocol.protocol.frames import SUBPROTOCOL
from protocol.segment_checker import check_segment
from support.live_client import LiveClient, live_socket

CHAT_ID = "chat-1"
TERMINAL = ("finish", "abort", "error")
_NUMBERS = itertools.count()  # no two requests of a user's have one


class Tab:
    def __init__(self, app: Any, version: SdkVersion) -> None:
        self._socket = live_socket(app, subprotocols=(SUBPROTOCOL,), client=LiveClient(CHAT_ID))
        self._version: SdkVersion = version
        self.client = LiveClient()
        self.is_left = False
        self._requests: dict[str, bool] = {}  # whether their ends are waited for
        self._turns_read = 0

    async def enter(self) -> None:
        self.client = await self._socket.__aenter__()
        self.client.tell("attach", id=CHAT_ID)

    async def leave(self) -> None:
        self.is_left = True
        await self._socket.__aexit__(None, None, None)

    # -- what it does -------------------------------------------------------------------------------------------------

    def send(self, message: dict[str, Any], **fields: Any) -> str:
        frame = {"type": "send", "trigger": "submit-message", "messages": [message], **fields}
        return self._request(frame)

    def resume(self) -> str:
        return self._request({"type": "resume"})

    def _request(self, frame: dict[str, Any]) -> str:
        request_id = f"r{next(_NUMBERS)}"
        self._requests[request_id] = True
        body = {"sdkVersion": self._version}
        self.client.send_frame({**frame, "requestId": request_id, "id": CHAT_ID, "headers": {}, "body": body})
        return request_id

    def read_turns(self) -> None:
        """A page reads what it is told of."""
        if (told := len(self.own("turn"))) > self._turns_read:
            self._turns_read = told
            self.resume()

    def speak(self, samples: bytes) -> None:
        self.client.tell("voice-start", client=f"client-{id(self)}", sdkVersion=self._version)
        self.client.send_frame(samples)

    def abort(self) -> None:
        """Stop, as stock clients say it. What the stream still has is not read."""
        for request_id in self.open_requests():
            self._requests[request_id] = False
            self.client.send_frame({"type": "abort", "requestId": request_id})

    def detach(self) -> None:
        self._requests = dict.fromkeys(self._requests, False)
        self.client.tell("detach", id=CHAT_ID)
        self.client.tell("attach", id=CHAT_ID)

    # -- what it has read ---------------------------------------------------------------------------------------------

    def own(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.client.frames.get("-", []) if frame["type"] == kind]

    @property
    def owns_voice(self) -> bool:
        told = self.own("voice")
        return bool(told) and told[-1]["owner"] == "you"

    def chunks(self, request_id: str) -> list[dict[str, Any]]:
        return [frame["chunk"] for frame in self.client.frames.get(request_id, []) if frame["type"] == "chunk"]

    def is_over(self, request_id: str) -> bool:
        told = self.client.frames.get(request_id)
        return bool(told) and told[-1]["type"] in ("end", "error", "no-active")

    def open_requests(self) -> list[str]:
        """Those that still wait for something."""
        waits = [request_id for request_id, is_waited_for in self._requests.items() if is_waited_for]
        return [] if self.is_left else [request_id for request_id in waits if not self.is_over(request_id)]

    def look_for_questions(self, asked: dict[str, dict[str, Any]]) -> None:
        for chunks in map(self.chunks, self._requests):
            inputs = {chunk["toolCallId"]: chunk for chunk in chunks if chunk["type"] == "tool-input-available"}
            for chunk in chunks:
                if chunk["type"] == "tool-approval-request" and chunk["toolCallId"] in inputs:
                    made = inputs[chunk["toolCallId"]]
                    asked[chunk["toolCallId"]] = {
                        "messageId": chunks[0]["messageId"],
                        "type": f"tool-{made['toolName']}",
                        "toolCallId": chunk["toolCallId"],
                        "input": made["input"],
                        "approval": {"id": chunk["approvalId"]},
                    }

    def _made(self, message_id: str | None) -> set[str]:
        """The calls of a message, as far as this tab has read of them."""
        streams = [chunks for chunks in map(self.chunks, self._requests) if chunks]
        told = [chunk for chunks in streams if chunks[0].get("messageId") == message_id for chunk in chunks]
        return {chunk["toolCallId"] for chunk in told if chunk["type"] == "tool-input-start"}

    def check_streams(self, asked: dict[str, dict[str, Any]]) -> None:
        """`asked`: a segment may go on in a step with questions that an earlier one has told and that still wait. This
        one does not say which they are. If they have ended since, a replay of the message says so."""
        for request_id in self._requests:
            chunks, told = self.chunks(request_id), self.client.frames.get(request_id, [])
            if told and told[-1]["type"] == "end":
                assert chunks[-1]["type"] in TERMINAL
                known = {chunk["toolCallId"] for chunk in chunks if "toolCallId" in chunk}
                opened = {chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-input-start"}
                message_id = chunks[0].get("messageId")
                before = {id for id, part in asked.items() if part["messageId"] == message_id} | self._made(message_id)
                try:
                    check_segment(chunks, self._version, frozenset(known - opened))
                except AssertionError:
                    check_segment(chunks, self._version, frozenset((known | before) - opened))
