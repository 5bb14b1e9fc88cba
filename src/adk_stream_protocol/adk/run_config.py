"""The user's `RunConfig` with what every run of ours needs."""

import os
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from types import new_class
from typing import Any

from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage] -- the documented path
)
from google.adk.telemetry.context import TelemetryConfig
from google.genai import types
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

_DEFAULTS = RunConfig()  # only ever copied: making one takes as long as decoding a request


def effective_run_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """The user's configuration with what every run of ours needs: streaming, and our ids."""
    config = base or _DEFAULTS
    ours = {} if "streaming_mode" in config.model_fields_set else {"streaming_mode": StreamingMode.SSE}
    return _merged(config, {**ours, **changes}, metadata)


def effective_live_config(base: RunConfig | None, changes: Mapping[str, Any], metadata: dict[str, Any]) -> RunConfig:
    """For live sessions: a lost connection is resumed, with the conversation so far."""
    config = base or _DEFAULTS
    is_resumed = config.session_resumption is not None
    ours = {} if is_resumed else {"session_resumption": types.SessionResumptionConfig()}
    merged = _merged(config, {**ours, **changes}, metadata)
    resolve_telemetry(merged, is_traced=True)
    return merged


def _merged(config: RunConfig, updates: dict[str, Any], metadata: dict[str, Any]) -> RunConfig:
    updates["custom_metadata"] = {
        **(config.custom_metadata or {}),
        **(updates.get("custom_metadata") or {}),
        **metadata,
    }
    return config.model_copy(update=updates)


def resolve_telemetry(config: RunConfig, *, is_traced: bool) -> None:
    """What ADK would read from the environment for every delta, read once a run. Spans and logs stay the same.
    Telemetry of the user's own is left alone.

    Where nobody traces, ADK would still bring the whole conversation into the form of its newest records, for each
    model call, and give them to nobody. The older form takes a third of the time."""
    if config.telemetry is None:
        config.telemetry = _resolved(*map(os.environ.get, _READ_BY_ADK)) if is_traced else _unheard()


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
    resolved = TelemetryConfig(
        genai_semconv_stability_opt_in="experimental" if experimental else "stable",
        adk_experimental_telemetry_opt_in=(
            None if features_named else from_environment.should_emit_experimental_telemetry
        ),
    )
    return _with_answers(resolved)


@cache
def _unheard() -> TelemetryConfig:
    return _with_answers(
        TelemetryConfig(genai_semconv_stability_opt_in="stable", adk_experimental_telemetry_opt_in=False)
    )


def _with_answers(config: TelemetryConfig) -> TelemetryConfig:
    """The same, with the answers in place. ADK asks for a dozen of them for each delta, and works each out of private
    attributes of a Pydantic model: a tenth of a delta's time."""
    answers = {name: property(_always(getattr(config, name))) for name in _QUESTIONS}
    answering = new_class("TelemetryConfig", (TelemetryConfig,), exec_body=lambda body: body.update(answers))
    return answering(**config.model_dump())


_QUESTIONS = [name for name, value in vars(TelemetryConfig).items() if isinstance(value, property)]


def _always(answer: Any) -> Callable[[Any], Any]:
    return lambda _: answer


def encode_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a `RunConfig` as JSON; empty if JSON cannot express them."""
    if not changes:
        return {}
    try:
        config = RunConfig.model_validate(dict(changes))
        return config.model_dump(mode="json", include=set(changes))
    except (ValidationError, PydanticSerializationError):
        return {}


def decode_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    config = RunConfig.model_validate(dict(changes))
    return {name: getattr(config, name) for name in config.model_fields_set}
