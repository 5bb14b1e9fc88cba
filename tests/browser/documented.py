"""Serves the application of a page of the docs, with another model: `python documented.py FILE PORT`."""

import asyncio
import runpy
import sys
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.testing import ScriptedModel, call, text


class Obedient(ScriptedModel):
    """Calls the tools of the docs when the user's words ask for them, and says other words back."""

    def next_reply(self, llm_request: LlmRequest) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        if answer := parts[-1].function_response:
            return f"{answer.name} gave {answer.response}"
        words = parts[-1].text or ""
        if words.startswith("Send"):
            return [call("pay", amount=5, recipient="Bob")]
        return [call("get_location")] if words.startswith("Where") else f"You said: {words}"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if "story" in str(llm_request.contents[-1]):
            yield LlmResponse(content=types.Content(role="model", parts=[text("Once upon a time ")]), partial=True)
            await asyncio.Event().wait()  # it has no end: somebody has to stop it
        async for response in super().generate_content_async(llm_request, stream):
            yield response


if __name__ == "__main__":
    _, file, port = sys.argv
    names = runpy.run_path(file, run_name="app")
    names["root_agent"].model = Obedient()
    uvicorn.run(names["app"], port=int(port), log_level="warning", timeout_graceful_shutdown=1)
