"""The user's `RunConfig` with what every run of ours needs."""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage] -- the documented path
)
from google.adk.telemetry.context import TelemetryConfig
from google.genai import types
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError


def effective_run_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """The user's configuration with what every run of ours needs: streaming, telemetry resolved, our ids."""
    config = base or RunConfig()
    ours = {} if "streaming_mode" in config.model_fields_set else {"streaming_mode": StreamingMode.SSE}
    return _merged(config, {**ours, **changes}, metadata)


def effective_live_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """For live sessions: a lost connection is resumed, with the conversation so far."""
    config = base or RunConfig()
    is_resumed = config.session_resumption is not None
    ours = {} if is_resumed else {"session_resumption": types.SessionResumptionConfig()}
    return _merged(config, {**ours, **changes}, metadata)


def _merged(config: RunConfig, updates: dict[str, Any], metadata: dict[str, Any]) -> RunConfig:
    if config.telemetry is None:
        updates.setdefault("telemetry", resolved_telemetry())
    updates["custom_metadata"] = {
        **(config.custom_metadata or {}),
        **(updates.get("custom_metadata") or {}),
        **metadata,
    }
    return config.model_copy(update=updates)


def resolved_telemetry() -> TelemetryConfig:
    """What ADK would read from the environment for every delta, read once. Spans and logs stay the same."""
    return _resolved(*map(os.environ.get, _READ_BY_ADK))


_READ_BY_ADK = (
    "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS",
    "ADK_EXPERIMENTAL_TELEMETRY",
    "ADK_EXPERIMENTAL_TELEMETRY_FEATURES",
    "ADK_TELEMETRY_IGNORE_RUN_CONFIG",
    "ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    "OTEL_SEMCONV_STABILITY_OPT_IN",
)


@lru_cache(1)
def _resolved(*environment: str | None) -> TelemetryConfig:
    from_environment = TelemetryConfig()
    experimental = from_environment.should_use_experimental_genai_semconv
    # This variable goes before the switch below, so ADK reads it itself.
    features_named = bool(os.environ.get("ADK_EXPERIMENTAL_TELEMETRY_FEATURES"))
    return TelemetryConfig(
        genai_semconv_stability_opt_in="experimental" if experimental else "stable",
        adk_experimental_telemetry_opt_in=(
            None if features_named else from_environment.should_emit_experimental_telemetry
        ),
    )


def encode_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a `RunConfig` as JSON; empty if JSON cannot express them."""
    try:
        config = RunConfig.model_validate(dict(changes))
        return config.model_dump(mode="json", include=set(changes)) if changes else {}
    except (ValidationError, PydanticSerializationError):
        return {}


def decode_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    config = RunConfig.model_validate(dict(changes))
    return {name: getattr(config, name) for name in config.model_fields_set}
