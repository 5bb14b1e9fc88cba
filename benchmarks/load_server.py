"""One way to serve the same words over HTTP, as a process of its own: `load_server.py CASE PORT`.

The prompt says how many words come, and how many a second. Each word is the moment at which it was due, on the clock
that all processes of a machine share, so that clients know how late it is.
"""

# ruff: noqa: E402
import sys

sys.dont_write_bytecode = False

import asyncio
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response

AGENT_NAME = "bench"
_WIDTH = 20  # digits of a word


async def due_words(prompt: str) -> AsyncIterator[str]:
    """Words at a steady pace. One that is late does not make the next ones later."""
    count, rate = prompt.split()[-2:]
    began_at = time.monotonic()
    for number in range(int(count)):
        due_at = began_at + (number + 1) / float(rate)
        if (left_s := due_at - time.monotonic()) > 0:
            await asyncio.sleep(left_s)
        yield f"{int(due_at * 1e9):0{_WIDTH}d} "


def _adk_agent() -> Any:
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.genai import types

    class PacedModel(BaseLlm):
        model: str = "paced"

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            said: list[str] = []
            async for word in due_words(llm_request.contents[-1].parts[-1].text):
                said.append(word)
                yield LlmResponse(content=_content(word), partial=True)
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
            yield LlmResponse(
                content=_content("".join(said)),
                partial=False,
                finish_reason=types.FinishReason.STOP,
                usage_metadata=usage,
            )

    def _content(text: str) -> types.Content:
        return types.Content(role="model", parts=[types.Part(text=text)])

    return LlmAgent(name=AGENT_NAME, model=PacedModel())


def ours(*, direct_text: bool = True) -> FastAPI:
    from adk_stream_protocol import ChatBridge, Limits

    limits = Limits(max_runs_per_user=10_000)
    bridge = ChatBridge(_adk_agent(), user_id=lambda _: "bench", limits=limits, direct_text=direct_text)
    app = FastAPI()
    app.include_router(bridge.router("/chat"))
    return app


def run_sse() -> FastAPI:
    """ADK's own server."""
    from google.adk.cli.fast_api import get_fast_api_app
    from google.adk.cli.utils.base_agent_loader import BaseAgentLoader

    agent = _adk_agent()

    class Loader(BaseAgentLoader):
        def load_agent(self, agent_name: str) -> Any:
            return agent

        def list_agents(self) -> list[str]:
            return [AGENT_NAME]

    return get_fast_api_app(
        agents_dir=".", agent_loader=Loader(), session_service_uri="memory://", artifact_service_uri="memory://",
        use_local_storage=False, web=False, auto_create_session=True,
    )  # fmt: skip


def ag_ui() -> FastAPI:
    from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
    from google.adk.sessions import InMemorySessionService

    adapter = ADKAgent(
        adk_agent=_adk_agent(),
        app_name=AGENT_NAME,
        user_id_extractor=lambda run_input: run_input.thread_id,
        session_service=InMemorySessionService(),
        use_thread_id_as_session_id=True,
        max_concurrent_executions=10_000,
    )
    app = FastAPI()
    add_adk_fastapi_endpoint(app, adapter, path="/chat")
    return app


def pydantic_ai() -> FastAPI:
    """Another framework's agent behind its own adapter for the AI SDK: a yardstick from another world."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.ui.vercel_ai import VercelAIAdapter

    async def stream(messages: list[Any], _: Any) -> AsyncIterator[str]:
        async for word in due_words(str(messages[-1].parts[-1].content)):
            yield word

    agent = Agent(FunctionModel(stream_function=stream))
    app = FastAPI()

    @app.post("/chat")
    async def chat(request: Request) -> Response:
        return await VercelAIAdapter.dispatch_request(request, agent=agent)

    return app


CASES: dict[str, Callable[[], FastAPI]] = {
    "adk run_sse": run_sse,
    "ag-ui-adk": ag_ui,
    "pydantic-ai": pydantic_ai,
    "ours, all through ADK": lambda: ours(direct_text=False),
    "ours": ours,
}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    uvicorn.run(CASES[sys.argv[1]](), port=int(sys.argv[2]), log_level="error", backlog=4096)
