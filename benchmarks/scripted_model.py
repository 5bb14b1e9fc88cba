"""A model that streams a known text at a known pace, so that every case runs the same turn."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

AGENT_NAME = "bench"


@dataclass(frozen=True)
class Pace:
    """How deltas arrive: so many from one read, with so many turns of the event loop before each read."""

    deltas_per_read: int
    loop_turns_per_read: int


PACES = {
    # Six turns are enough for the consumer to be parked again, as it is behind a real socket.
    "idle": Pace(deltas_per_read=1, loop_turns_per_read=6),
    "nap": Pace(deltas_per_read=1, loop_turns_per_read=1),
    # One read from the network that holds eight server-sent events.
    "burst8": Pace(deltas_per_read=8, loop_turns_per_read=1),
}


@dataclass(frozen=True)
class Script:
    """What the model says in every turn."""

    deltas: tuple[str, ...]
    pace: Pace

    @property
    def text(self) -> str:
        return "".join(self.deltas)


def script_of(delta_count: int, pace_name: str) -> Script:
    # Numbered words: a delta that is lost, doubled or moved changes the joined text.
    return Script(tuple(f"w{number:04d} " for number in range(delta_count)), PACES[pace_name])


FIRST_DELTA = "w0000 "

# A real model ends with its token counts; without them ADK logs a complaint in every turn.
_USAGE = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1, total_token_count=2)


class ScriptedModel(BaseLlm):
    model: str = "scripted"
    script: Script

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if not stream:
            raise AssertionError("the run did not ask for streaming: this would measure something else")
        pace = self.script.pace
        for number, delta in enumerate(self.script.deltas):
            if number % pace.deltas_per_read == 0:
                for _ in range(pace.loop_turns_per_read):
                    await asyncio.sleep(0)
            yield LlmResponse(content=_model_content(delta), partial=True)
        yield LlmResponse(
            content=_model_content(self.script.text),
            partial=False,
            finish_reason=types.FinishReason.STOP,
            usage_metadata=_USAGE,
        )


def _model_content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def scripted_agent(script: Script) -> LlmAgent:
    return LlmAgent(name=AGENT_NAME, model=ScriptedModel(script=script))
