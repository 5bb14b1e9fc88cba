"""The agent behind benchmarks/neighbours.py: it says when each of its words was due."""

import asyncio
import time
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types

WORDS, PERIOD_S = 40, 0.05
LONG_LOG, KEPT_OPEN_S = 60_000, 180


def _text(text: str, *, partial: bool) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=partial)


class Timed(BaseLlm):
    """`go`: a word every 50 ms. `flood`: 60,000 words at once, then silence."""

    model: str = "timed"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        asked = next((part.text for part in llm_request.contents[-1].parts or () if part.text), "")
        said: list[str] = []
        if asked == "flood":
            for number in range(LONG_LOG):
                said.append("word ")
                yield _text(said[-1], partial=True)
                if number % 100 == 0:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(KEPT_OPEN_S)
        elif asked == "go":
            began_at = time.time()
            for number in range(WORDS):
                due_at = began_at + number * PERIOD_S
                await asyncio.sleep(max(0.0, due_at - time.time()))
                said.append(f"@{due_at:.6f} ")
                yield _text(said[-1], partial=True)
        else:
            said.append("ok ")
            yield _text(said[-1], partial=True)
        yield _text("".join(said), partial=False)


agent = LlmAgent(name="neighbours", model=Timed())
