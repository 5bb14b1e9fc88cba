"""Prints what a run tells OpenTelemetry: with ADK's default telemetry and with ours, behind a bridge with direct text
and without. A program that forks for each environment: providers are global, and set once a process."""

import asyncio
import json
import os
import sys
from typing import Any

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry import metrics, trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import (
    Counter,
    Histogram,
    MeterProvider,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.adk.run_config import effective_run_config, resolve_telemetry
from adk_stream_protocol.testing import ChatClient, ScriptedModel, call


def get_weather(location: str) -> dict[str, str]:
    """The weather."""
    return {"location": location}


def helper() -> LlmAgent:
    invoked = call("get_weather", location="Oslo")
    assert invoked.function_call
    invoked.function_call.id = "call-1"
    return LlmAgent(name="helper", model=ScriptedModel([[invoked], "It is fine there."]), tools=[get_weather])


async def run(run_config: RunConfig) -> None:
    agent = helper()
    runner = Runner(agent=agent, app_name="probe", session_service=InMemorySessionService(), auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text="Weather?")])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=message, run_config=run_config):
        pass


async def run_bridge(*, direct_text: bool) -> None:
    app, bridge = FastAPI(), ChatBridge(helper(), user_id=lambda _: "u", direct_text=direct_text)
    app.include_router(bridge.router("/api/chat"))
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Weather?"}]}
    answer = await ChatClient(app, "/api/chat").post({"id": "c1", "trigger": "submit-message", "messages": [message]})
    assert answer.text == "It is fine there."
    await bridge.aclose()


def told(value: Any) -> str:
    """As text, without the ids that differ between any two runs."""
    volatile = ("invocation_id", "event_id", "start_time", "end_time", "timestamp")
    shown = {name: str(item) for name, item in dict(value or {}).items() if not any(v in name for v in volatile)}
    return json.dumps(shown, sort_keys=True)


_INSTRUMENTS = (Counter, Histogram, UpDownCounter, ObservableCounter, ObservableGauge, ObservableUpDownCounter)


def counted(reader: InMemoryMetricReader) -> list[str]:
    """What was measured, and how often: how long it took differs between any two runs."""
    data = reader.get_metrics_data()
    found = (
        [metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics]
        if data
        else []
    )
    points = [(metric.name, point) for metric in found for point in metric.data.data_points]
    return sorted(f"metric {name} {told(point.attributes)} {getattr(point, 'count', '')}" for name, point in points)


def heard_in(environment: dict[str, str]) -> dict[str, list[str]]:
    os.environ.update(environment)
    spans, logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
    tracing, logging = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logging.add_log_record_processor(SimpleLogRecordProcessor(logs))
    trace.set_tracer_provider(tracing)
    reader = InMemoryMetricReader(preferred_temporality=dict.fromkeys(_INSTRUMENTS, AggregationTemporality.DELTA))
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    set_logger_provider(logging)
    heard: dict[str, list[str]] = {}
    resolved = effective_run_config(None, {}, {})
    resolve_telemetry(resolved, is_traced=True)
    runs = {
        "default": lambda: run(RunConfig(streaming_mode=StreamingMode.SSE)),
        "ours": lambda: run(resolved),
        "direct": lambda: run_bridge(direct_text=True),
        "through ADK": lambda: run_bridge(direct_text=False),
    }
    for name, make in runs.items():
        asyncio.run(make())
        heard[name] = [f"span {span.name} {told(span.attributes)}" for span in spans.get_finished_spans()]
        for finished in logs.get_finished_logs():
            record = finished.log_record
            body = json.dumps(record.body, default=str)
            heard[name].append(f"log {record.event_name} {told(record.attributes)} {body}")
        heard[name] += counted(reader)
        spans.clear()
        logs.clear()
    return heard


def main() -> None:
    """Its argument: the environments, as JSON. A line for each."""
    for environment in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            sys.stdout.write(json.dumps(heard_in(environment)) + "\n")
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main()
