"""What the first request after a start costs: CPU to the first word, and what is imported on the way.

    python benchmarks/first_request.py [processes]

Each figure is of a new process that has made its server, or its runner, and served nothing yet. Beside it, the median
of the requests that follow in the same process.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

LATER = 20
FIGURE = "figure "

Turn = Callable[[str], Awaitable[float]]
"""One turn of a new chat. Gives the CPU clock at its first word."""


async def bare() -> Turn:
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.genai import types
    from scripted_model import AGENT_NAME, script_of, scripted_agent

    agent = scripted_agent(script_of(3, "idle"))
    runner = Runner(
        app_name=AGENT_NAME, agent=agent, session_service=InMemorySessionService(), auto_create_session=True
    )

    async def turn(chat_id: str) -> float:
        said = types.Content(role="user", parts=[types.Part(text="go")])
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        events = runner.run_async(user_id="bench", session_id=chat_id, new_message=said, run_config=config)
        first_at = 0.0
        async with aclosing(events):
            async for _ in events:
                first_at = first_at or time.process_time()
        return first_at

    return turn


async def ours() -> Turn:
    from asgi_call import post
    from fastapi import FastAPI
    from scripted_model import FIRST_DELTA, script_of, scripted_agent

    from adk_stream_protocol import ChatBridge

    bridge = ChatBridge(scripted_agent(script_of(3, "idle")), user_id=lambda _: "bench")
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))

    async def turn(chat_id: str) -> float:
        first_at = 0.0

        def write(frame: bytes) -> None:
            nonlocal first_at
            if FIRST_DELTA.encode() in frame:
                first_at = first_at or time.process_time()

        message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        body = {"id": chat_id, "trigger": "submit-message", "messages": [message]}
        await post(app, "/api/chat", json.dumps(body).encode(), write)
        return first_at

    return turn


async def measured(make: Callable[[], Awaitable[Turn]]) -> dict[str, Any]:
    turn = await make()
    known, began_at = set(sys.modules), time.process_time()
    first = await turn("chat-0") - began_at
    imported = sorted(set(sys.modules) - known)
    later: list[float] = []
    for number in range(1, LATER + 1):
        began_at = time.process_time()
        later.append(await turn(f"chat-{number}") - began_at)
    return {"first": first * 1e3, "later": statistics.median(later) * 1e3, "imported": imported}


def main() -> None:
    warnings.filterwarnings("ignore")
    cases = {"bare": bare, "ours": ours}
    if sys.argv[1:2] and sys.argv[1] in cases:
        print(FIGURE + json.dumps(asyncio.run(measured(cases[sys.argv[1]]))))
        return
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in cases}
    for _ in range(int(sys.argv[1]) if sys.argv[1:] else 7):
        for name in cases:  # in turns, so that both have the same neighbours
            printed = subprocess.run(
                [sys.executable, __file__, name], capture_output=True, text=True, check=True
            ).stdout
            line = next(line for line in printed.splitlines() if line.startswith(FIGURE))
            found[name].append(json.loads(line.removeprefix(FIGURE)))
    print(f"{'CPU ms to the first word':28} {'first request':>24} {'later':>8}")
    for name, figures in found.items():
        low, middle, high = statistics.quantiles([figure["first"] for figure in figures], n=4, method="inclusive")
        later = statistics.median(figure["later"] for figure in figures)
        print(f"{name:28} {middle:8.1f} [{low:5.1f}-{high:5.1f}] {later:8.1f}")
    for name, figures in found.items():
        imported = figures[0]["imported"]
        print(f"{name}: {len(imported)} modules imported by the first request {' '.join(imported[:8])}")


if __name__ == "__main__":
    main()
