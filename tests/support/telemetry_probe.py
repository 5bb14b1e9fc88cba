"""Prints what a run tells OpenTelemetry, with ADK's default telemetry and with ours. A program, since providers are
global and set once a process."""

import asyncio
import json
import sys
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_stream_protocol.adk.run_config import effective_run_config
from adk_stream_protocol.testing import ScriptedModel, call


def get_weather(location: str) -> dict[str, str]:
    """The weather."""
    return {"location": location}


async def run(run_config: RunConfig) -> None:
    invoked = call("get_weather", location="Oslo")
    assert invoked.function_call
    invoked.function_call.id = "call-1"
    agent = LlmAgent(name="helper", model=ScriptedModel([[invoked], "It is fine there."]), tools=[get_weather])
    runner = Runner(agent=agent, app_name="probe", session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="Weather?")])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=message, run_config=run_config):
        pass


def told(value: Any) -> str:
    """As text, without the ids that differ between any two runs."""
    volatile = ("invocation_id", "event_id", "start_time", "end_time", "timestamp")
    shown = {name: str(item) for name, item in dict(value or {}).items() if not any(v in name for v in volatile)}
    return json.dumps(shown, sort_keys=True)


def main() -> None:
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracing, logging = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logging.add_log_record_processor(SimpleLogRecordProcessor(logs))
    trace.set_tracer_provider(tracing)
    set_logger_provider(logging)
    heard: dict[str, list[str]] = {}
    configs = {"default": RunConfig(streaming_mode=StreamingMode.SSE), "ours": effective_run_config(None, {}, {})}
    for name, run_config in configs.items():
        asyncio.run(run(run_config))
        heard[name] = [f"span {span.name} {told(span.attributes)}" for span in spans.get_finished_spans()]
        for finished in logs.get_finished_logs():
            record = finished.log_record
            body = json.dumps(record.body, default=str)
            heard[name].append(f"log {record.event_name} {told(record.attributes)} {body}")
        spans.clear()
        logs.clear()
    sys.stdout.write(json.dumps(heard))


if __name__ == "__main__":
    main()
