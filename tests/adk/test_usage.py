"""Usage in the AI SDK's terms."""

from typing import Any

from google.adk.events import Event
from google.genai import types

from adk_stream_protocol.adk.translate.usage import Usage


def metadata_of(*calls: dict[str, Any], **fields: Any) -> dict[str, Any] | None:
    usage = Usage()
    for used in calls:
        usage.add(
            Event(author="a", usage_metadata=types.GenerateContentResponseUsageMetadata.model_validate(used), **fields)
        )
    return usage.metadata()


def test_without_any_usage_there_is_no_metadata() -> None:
    usage = Usage()
    usage.add(Event(author="a"))
    assert usage.metadata() is None


def test_reasoning_is_part_of_the_output() -> None:
    used = {"prompt_token_count": 10, "candidates_token_count": 5, "thoughts_token_count": 3, "total_token_count": 18}
    assert metadata_of(used) == {
        "usage": {"inputTokens": 10, "outputTokens": 8, "totalTokens": 18, "reasoningTokens": 3}
    }


def test_what_tools_of_the_service_put_into_the_prompt_is_input() -> None:
    used = {"prompt_token_count": 10, "tool_use_prompt_token_count": 7, "total_token_count": 17}
    assert metadata_of(used) == {"usage": {"inputTokens": 17, "outputTokens": 0, "totalTokens": 17}}


def test_cached_input_is_named() -> None:
    used = {"prompt_token_count": 10, "cached_content_token_count": 8, "total_token_count": 10}
    assert metadata_of(used) == {
        "usage": {"inputTokens": 10, "outputTokens": 0, "totalTokens": 10, "cachedInputTokens": 8}
    }


def test_calls_add_up() -> None:
    used = {"prompt_token_count": 10, "candidates_token_count": 5, "total_token_count": 15}
    assert metadata_of(used, used) == {"usage": {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}}


def test_the_newest_model_version_is_named() -> None:
    usage = Usage()
    for version in ("one", None, "two", None):
        usage.add(Event(author="a", model_version=version))
    assert usage.metadata() == {"modelVersion": "two"}
