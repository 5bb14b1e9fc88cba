"""What the parts of an ADK event are, and the names that mean something special."""

import base64
from collections.abc import Mapping
from typing import Any, cast

from google.genai import types

from ..protocol.answers import CONFIRMATION
from ..protocol.chunks import File, FinishReason
from ..protocol.writer import TextKind

CREDENTIAL = "adk_request_credential"
REQUEST_INPUT = "adk_request_input"
CONTROL_FLOW = frozenset({"transfer_to_agent", "set_model_response", "finish_task", "exit_loop"})
ABORTED = "INVOCATION_ABORTED"

_CONTENT_FILTER = (
    "SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION", "MODEL_ARMOR", "JAILBREAK",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER",
)  # fmt: skip
_OTHER = (
    "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED", "LANGUAGE", "OTHER", "NO_IMAGE", "CONTINUATION",
    "MODEL_RETURNED_NO_CONTENT",
)  # fmt: skip
# Gemini's finish reasons, and the error codes that ADK makes of them and of blocked prompts.
FINISH_REASONS: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_CONTENT_FILTER, "content-filter"),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"), "error"),
    **dict.fromkeys(_OTHER, "other"),
}


def text_kind(part: types.Part) -> TextKind:
    return "reasoning" if part.thought else "text"


def is_atomic(part: types.Part) -> bool:
    return (
        part.inline_data is not None
        or part.file_data is not None
        or part.executable_code is not None
        or part.code_execution_result is not None
        or part.tool_call is not None
        or part.tool_response is not None
    )


def is_model_output(part: types.Part) -> bool:
    """What a model call brings, in contrast to what ADK puts into events of its own."""
    if part.function_call is not None:
        return part.function_call.name not in (CONFIRMATION, CREDENTIAL)
    return bool(part.text) or (is_atomic(part) and part.code_execution_result is None)


def as_dict(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def auth_request(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the client needs to ask for consent; the rest of the configuration stays on the server."""
    config = as_dict(arguments.get("authConfig"))
    oauth2 = as_dict(as_dict(config.get("exchangedAuthCredential")).get("oauth2"))
    request = {"authUri": oauth2.get("authUri"), "credentialKey": config.get("credentialKey")}
    return {name: value for name, value in request.items() if value is not None}


def data_file(data: bytes | None, media_type: str | None) -> File:
    media_type = media_type or "application/octet-stream"
    return File(f"data:{media_type};base64,{base64.b64encode(data or b'').decode()}", media_type)
