"""Direct text in a live session: see `../words/direct_text.py`."""

from collections.abc import AsyncGenerator, Callable

from google.adk.events import Event
from google.adk.models.llm_response import LlmResponse

from ..run import RunContext
from ..words.direct_text import DirectText
from .live_segments import LiveSegments

_CONNECTION = ""  # one model speaks at a time, and each event says which


class DirectWords:
    """The words of a live model that go past ADK: more of a text, where the live table has nothing to decide."""

    def __init__(self, context: RunContext, segments: LiveSegments, heard: Callable[[], None]) -> None:
        """`heard`: called when the model has said something."""
        ways = context.chat.model_ways()
        self._agents = ways.direct.keys()
        self._direct_text = DirectText(ways, self._grow)
        self._segments = segments
        self._heard = heard
        self._max_log_bytes = context.limits.max_log_bytes

    def skim(self, responses: AsyncGenerator[LlmResponse, None]) -> AsyncGenerator[LlmResponse, None]:
        """What ADK is to get of these."""
        return self._direct_text.skim(responses, _CONNECTION) if self._agents else responses

    def came_out(self, event: Event) -> None:
        if event.author in self._agents:
            self._direct_text.came_out(event)
        else:
            self._direct_text.pause()

    def _grow(self, text: str, *, is_thought: bool) -> bool:
        segments = self._segments
        name = segments.turns.more_said() if segments.effect_queue.is_idle else None
        message = segments.messages[name] if name is not None else None
        if message is None or message.log is None or message.log.size_bytes > self._max_log_bytes:
            return False
        chunk = message.translator.grow(text, is_thought=is_thought)
        if chunk is None:
            return False
        self._heard()
        message.log.append([chunk])
        return True
