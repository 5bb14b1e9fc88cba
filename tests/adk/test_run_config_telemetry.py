"""Telemetry that is resolved once a run tells the same as telemetry that is resolved for every delta."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.telemetry.context import TelemetryConfig

from adk_stream_protocol.adk.run_config import effective_live_config, effective_run_config, resolve_telemetry

PROBE = Path(__file__).parent.parent / "support" / "telemetry_probe.py"


ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {"ADK_EXPERIMENTAL_TELEMETRY": "true"},
    {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT"},
    {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"},
    {"ADK_EXPERIMENTAL_TELEMETRY_FEATURES": "all"},
    {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"},
    {"ADK_TELEMETRY_IGNORE_RUN_CONFIG": "true"},
]


@pytest.fixture(scope="module")
def told() -> list[str]:
    """A line for each environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ADK_", "OTEL_"))}
    command = [sys.executable, str(PROBE), json.dumps(ENVIRONMENTS)]
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("place", range(len(ENVIRONMENTS)), ids=lambda place: str(ENVIRONMENTS[place]))
def test_spans_logs_and_metrics_are_the_same_in_every_environment(place: int, told: list[str]) -> None:
    heard = json.loads(told[place])
    assert heard["default"] == heard["ours"]
    assert heard["direct"] == heard["through ADK"]
    assert any(line.startswith("metric") for line in heard["direct"])
    assert len([line for line in heard["ours"] if line.startswith("span")]) >= 4


@pytest.mark.parametrize("is_traced", [True, False])
def test_telemetry_of_the_users_own_is_left_alone(*, is_traced: bool) -> None:
    own = TelemetryConfig(genai_semconv_stability_opt_in="stable")
    config = effective_run_config(RunConfig(telemetry=own), {}, {})
    resolve_telemetry(config, is_traced=is_traced)
    assert config.telemetry is own


def test_of_a_live_session_it_is_resolved_as_where_somebody_traces() -> None:
    config = effective_run_config(None, {}, {})
    resolve_telemetry(config, is_traced=True)
    assert config.telemetry is not None
    assert effective_live_config(None, {}, {}).telemetry is config.telemetry


def test_where_nobody_traces_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_telemetry(effective_run_config(None, {}, {}), is_traced=False)  # what is left out is made once
    with monkeypatch.context() as patched:
        patched.setattr(os, "environ", None)
        config = effective_run_config(None, {}, {})
        resolve_telemetry(config, is_traced=False)
    assert config.telemetry is not None
