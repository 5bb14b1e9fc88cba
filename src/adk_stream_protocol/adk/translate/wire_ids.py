"""The ids under which the client knows the calls of one message."""

from ...protocol.tool_parts import ToolParts
from .speakers import Speaker


class WireIds:
    def __init__(self, tools: ToolParts) -> None:
        self._tools = tools
        self._by_call: dict[str, str] = {}  # of all speakers; of calls with the same ADK id, the newest

    def new(self, speaker: Speaker, call_id: str) -> str:
        """The call's id, unless an earlier call of the message has it: LiteLLM's fall back to "0" in every step."""
        wire_id, count = call_id, 1
        while self._tools.knows(wire_id):
            count += 1
            wire_id = f"{call_id}-{count}"
        speaker.wire_ids[call_id] = self._by_call[call_id] = wire_id
        return wire_id

    def of(self, call_id: str) -> str | None:
        return self._by_call.get(call_id)
