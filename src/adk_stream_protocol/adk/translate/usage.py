"""What the model calls of a run used, for the message's metadata."""

from typing import Any

from google.adk.events import Event


class Usage:
    """Sums in the AI SDK's terms: its output includes the reasoning, Gemini's does not."""

    def __init__(self) -> None:
        self._sums = {
            "inputTokens": 0,
            "outputTokens": 0,
            "totalTokens": 0,
            "reasoningTokens": 0,
            "cachedInputTokens": 0,
        }
        self._model_version: str | None = None

    def add(self, event: Event) -> None:
        self._model_version = event.model_version or self._model_version
        used = event.usage_metadata
        if used is None:
            return
        reasoning = used.thoughts_token_count or 0
        self._sums["inputTokens"] += (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
        self._sums["outputTokens"] += (used.candidates_token_count or 0) + reasoning
        self._sums["totalTokens"] += used.total_token_count or 0
        self._sums["reasoningTokens"] += reasoning
        self._sums["cachedInputTokens"] += used.cached_content_token_count or 0

    def metadata(self) -> dict[str, Any] | None:
        metadata: dict[str, Any] = {}
        if self._sums["totalTokens"]:
            optional = ("reasoningTokens", "cachedInputTokens")
            metadata["usage"] = {name: n for name, n in self._sums.items() if n or name not in optional}
        if self._model_version:
            metadata["modelVersion"] = self._model_version
        return metadata or None
