"""A model that needs no key and no network: the same text always gets the same answer.

It streams as Gemini does through ADK: word by word as partial responses, then one complete response. What it does in
live mode is in `offline_live`.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from google.adk.models import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from ..testing.live_session import Family, LiveSession
from .offline_live import OfflineConversation
from .phrases import PlannedCall, is_japanese, plan_calls, wants_reasoning, wants_story

# English, Japanese. Sentences about results are filled from the result, names of calls from the arguments.
_RESULTS = {
    "get_weather": (
        "The weather in {location} is {condition} at {temperature_c} °C.",
        "{location}の天気は{condition}、気温は{temperature_c}℃です。",
    ),
    "process_payment": (
        "Paid {amount} {currency} to {recipient}. The new balance is {balance} {currency}.",
        "{recipient}に{amount} {currency}を送金しました。残高は{balance} {currency}です。",
    ),
    "change_bgm": ("The background music is now track {track}.", "BGMをトラック{track}に変更しました。"),
    "get_location": (
        "You are at latitude {latitude} and longitude {longitude}.",
        "現在地は緯度{latitude}、経度{longitude}です。",
    ),
}
_CALL_NAMES = {
    "get_weather": ("The weather in {location}", "{location}の天気"),
    "process_payment": (
        "The payment of {amount} {currency} to {recipient}",
        "{recipient}への{amount} {currency}の送金",
    ),
    "change_bgm": ("The change to track {track}", "トラック{track}への変更"),
    "get_location": ("The request for your location", "現在地の取得"),
}
_JAPANESE_CONDITIONS = {"sunny": "晴れ", "cloudy": "曇り", "rainy": "雨", "windy": "強風", "snowy": "雪"}
_FAILURES = [
    (r"requires? confirmation", " is still waiting for your approval.", "は承認待ちです。"),
    (r"reject|denied|declined", " was denied.", "は拒否されました。"),
    (r"expired|timed out|in time\b", " has expired: no answer came in time.", "は期限切れになりました。"),
]
_HELP = (
    """\
I am a small offline model. I can:

- tell the **weather** of a place
- **send money** from your wallet, once you approve
- change the **background music**
- find your **location**
- *think* before I answer, or tell a long story

Try one of these:

```text
What is the weather in Tokyo?
Send 50 dollars to Hanako
Change BGM to track 1
What is my location?
```
""",
    """\
オフラインの小さなモデルです。できること:

- **天気**を調べる
- 承認後に**送金**する
- **BGM**を変える
- **現在地**を調べる

例:

```text
東京の天気は？
花子さんに50ドル送金してください
BGMをトラック1に変えて
現在地を教えて
```
""",
)
_THOUGHT_OVER = (
    "I have thought it over. I am only a small offline model, so all I know for sure is what my tools tell me.",
    "考えてみました。オフラインの小さなモデルなので、確かなことはツールの結果だけです。",
)
_STORY = (
    "Once upon a time a small boat set out to find the end of the river.\n\n"
    + "".join(
        f"On the {day} day it came to {place}, where {someone} was waiting with {thing}. "
        "They talked until the stars came out, and each of them told the other what the water had told them. "
        "In the morning the boat took a little of the story on board and went on.\n\n"
        for day, place, someone, thing in (
            ("first", "a mill", "an old miller", "a sack of warm flour"),
            ("second", "a stone bridge", "a girl with a kite", "a very long question"),
            ("third", "a quiet lake", "a heron", "the patience of a statue"),
            ("fourth", "a market town", "a seller of clocks", "a clock that ran backwards"),
            ("fifth", "a deep forest", "a family of owls", "one pair of spectacles"),
            ("sixth", "a row of locks", "the keeper of the gates", "a kettle that never cooled"),
            ("seventh", "a wide delta", "a thousand frogs", "a song in a thousand parts"),
            ("eighth", "the open sea", "the moon", "a silver road across the waves"),
        )
    )
    + "And there the river ended, but the story did not, for the boat had learned to sail."
)


def _sentence_about(call: types.FunctionCall, answer: dict[str, Any] | None, japanese: bool) -> str:
    call_name = _call_name(call, japanese)
    if answer is None:
        return call_name + (" has no answer yet.", "はまだ回答がありません。")[japanese]
    error = answer.get("error") or (answer.get("message") if answer.get("success") is False else None)
    if error:
        reason = error if isinstance(error, str) else _as_json(error)
        for pattern, *sentences in _FAILURES:
            if re.search(pattern, reason, re.I):
                return call_name + sentences[japanese]
        return call_name + (f" failed: {reason}", f"は失敗しました: {reason}")[japanese]
    if japanese and "condition" in answer:
        answer = answer | {"condition": _JAPANESE_CONDITIONS.get(answer["condition"], answer["condition"])}
    try:
        return _RESULTS[call.name or ""][japanese].format_map(answer)
    except KeyError:  # an unknown result is shown as it is
        return call_name + (f" returned {_as_json(answer)}.", f"の結果: {_as_json(answer)}")[japanese]


def _call_name(call: types.FunctionCall, japanese: bool) -> str:
    any_call = (f"The call of {call.name}", f"{call.name}の呼び出し")
    try:
        return _CALL_NAMES.get(call.name or "", any_call)[japanese].format_map(call.args or {})
    except KeyError:
        return any_call[japanese]


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True)
class _Turn:
    """The user's last text, and each call since then with its response."""

    text: str
    calls: list[tuple[types.FunctionCall, dict[str, Any] | None]]


class OfflineModel(BaseLlm):
    """A deterministic model, for demos and tests without key or network."""

    model: str = "offline"
    story_word_delay: float = 0.05
    """Seconds between the words of the long story, so that there is time to stop it."""
    live_family: Family = "2.5"
    """The family of Gemini that it imitates in live mode: 2.5 makes one call at a time, 3 may make several at once."""
    voice_piece_delay: float = 0.05
    """Seconds between the pieces of 100 ms in which it repeats speech."""

    def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        return self._respond(llm_request, stream=stream)

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        def respond(contents: Sequence[types.Content]) -> AsyncGenerator[LlmResponse, None]:
            request = llm_request.model_copy(update={"contents": list(contents)})
            return self._respond(request, stream=True, one_call_at_a_time=self.live_family == "2.5")

        session = LiveSession(llm_request, family=self.live_family, model_version=self.model)
        conversation = OfflineConversation(session, respond, voice_piece_delay=self.voice_piece_delay)
        with session.played_by(lambda _: conversation.converse()):
            yield session.connection

    async def _respond(
        self, llm_request: LlmRequest, *, stream: bool, one_call_at_a_time: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = _reply(_last_turn(llm_request.contents), one_call_at_a_time=one_call_at_a_time)
        usage = _usage(llm_request, parts)
        delay = self.story_word_delay if parts[-1].text == _STORY else 0
        pieces = [piece for part in parts for piece in _pieces(part)] if stream else []
        for position, piece in enumerate(pieces, start=1):
            last = position == len(pieces)
            yield LlmResponse(
                content=types.Content(role="model", parts=[piece]),
                partial=True,
                # As with Gemini, the last piece has the finish reason and the usage.
                finish_reason=types.FinishReason.STOP if last else None,
                usage_metadata=usage if last else None,
                model_version=self.model,
            )
            # Lets the reader of the stream run between two pieces.
            await asyncio.sleep(delay)
        await asyncio.sleep(0)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            partial=False if stream else None,
            finish_reason=types.FinishReason.STOP,
            usage_metadata=usage,
            model_version=self.model,
        )


def _last_turn(contents: Sequence[types.Content]) -> _Turn:
    text = ""
    calls: list[types.FunctionCall] = []
    answers: list[types.FunctionResponse] = []
    for content in contents:
        parts = content.parts or []
        if content.role == "user" and not all(part.function_response for part in parts):
            text = "\n".join(part.text for part in parts if part.text)
            calls, answers = [], []
        calls += [part.function_call for part in parts if part.function_call]
        answers += [part.function_response for part in parts if part.function_response]
    return _Turn(text, [(call, _take_answer(call, answers)) for call in calls])


def _take_answer(call: types.FunctionCall, answers: list[types.FunctionResponse]) -> dict[str, Any] | None:
    for answer in answers:
        if (answer.id, answer.name) == (call.id, call.name):
            answers.remove(answer)  # other models may give calls without an id: each response counts once
            return answer.response or {}
    return None


def _reply(turn: _Turn, *, one_call_at_a_time: bool) -> list[types.Part]:
    japanese = is_japanese(turn.text)
    rounds = plan_calls(turn.text)
    if one_call_at_a_time:
        rounds = [[call] for planned in rounds for call in planned]
    reply: list[types.Part] = []
    if wants_reasoning(turn.text) and not turn.calls:
        reply.append(types.Part(text=_reasoning(turn.text, rounds), thought=True))
    started = 0
    for planned in rounds:
        missing = planned[max(0, len(turn.calls) - started) :]
        if missing:
            return reply + [_call_part(call) for call in missing]
        started += len(planned)
    reply.append(types.Part(text=_answer(turn, japanese)))
    return reply


def _answer(turn: _Turn, japanese: bool) -> str:
    if turn.calls:
        return ("" if japanese else " ").join(_sentence_about(call, answer, japanese) for call, answer in turn.calls)
    if wants_story(turn.text):
        return _STORY
    return (_THOUGHT_OVER if wants_reasoning(turn.text) else _HELP)[japanese]


def _reasoning(text: str, rounds: list[list[PlannedCall]]) -> str:
    tools = ", ".join(call.name for calls in rounds for call in calls)
    conclusion = f"This needs {tools}." if tools else "None of my tools is needed, so I can answer at once."
    return f"The user wrote: {text.strip()[:200]}\nLet me see which of my tools can help with that. {conclusion}"


def _call_part(call: PlannedCall) -> types.Part:
    # An id of our own: ADK would give the partial and the final response different ones.
    return types.Part(function_call=types.FunctionCall(id=f"call-{uuid.uuid4().hex}", name=call.name, args=call.args))


def _pieces(part: types.Part) -> list[types.Part]:
    """A call stays whole. Text is split into words, Japanese text at its commas and full stops."""
    if part.text is None:
        return [part]
    return [types.Part(text=word, thought=part.thought) for word in re.findall(r"[^\s、。]+[\s、。]*", part.text)]


def _usage(request: LlmRequest, parts: list[types.Part]) -> types.GenerateContentResponseUsageMetadata:
    prompt = sum(_tokens(part) for content in request.contents for part in content.parts or [])
    thoughts = sum(_tokens(part) for part in parts if part.thought)
    spoken = sum(_tokens(part) for part in parts if not part.thought)
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=spoken,
        thoughts_token_count=thoughts or None,
        total_token_count=prompt + thoughts + spoken,
    )


def _tokens(part: types.Part) -> int:
    """The usual rule of thumb: four characters to a token."""
    call, answer = part.function_call, part.function_response
    text = part.text or (call and _as_json(call.args)) or (answer and _as_json(answer.response)) or ""
    return 1 + len(text) // 4
