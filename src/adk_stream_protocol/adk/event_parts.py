"""What the parts of an ADK event are, and the names that mean something special."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

from google.adk.events import Event
from google.genai import types

from ..protocol.answers import CONFIRMATION
from ..protocol.chunks import File, FinishReason
from ..protocol.stream import TextKind

METADATA_KEY = "adk_stream"
"""The key of our own notes in the metadata of events."""

CREDENTIAL = "adk_request_credential"
REQUEST_INPUT = "adk_request_input"
QUESTIONS = (CONFIRMATION, CREDENTIAL, REQUEST_INPUT)
_NODE_CONFIRMATION = "wf_tool_confirmation:"  # begins the ids under which workflow nodes ask for approval
CONTROL_FLOW = frozenset({"transfer_to_agent", "set_model_response", "finish_task", "exit_loop", "task_completed"})
ABORTED = "INVOCATION_ABORTED"
_RELAYED = "a2a:response"  # ADK's key for what a remote agent has sent
_RECORDING = "/_adk_live/"

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
# Why a live model has ended its turn early; all other reasons are filters.
TURN_ENDS: Mapping[str, FinishReason] = {
    "TURN_COMPLETE_REASON_UNSPECIFIED": "stop",
    "NEED_MORE_INPUT": "stop",
    "MALFORMED_FUNCTION_CALL": "error",
}


def model_call_of(event: Event) -> str:
    """The id that the events of one model call share. In a live session each event has its own; there it is ours."""
    ours = (event.custom_metadata or {}).get(METADATA_KEY)
    return (ours.get("step") if ours else None) or event.id


def is_aside(event: Event) -> bool:
    """Whether ADK has put this event between the pieces of a model call and their whole, as it does for code that the
    model's service runs. An answer without content, in contrast, has a reason or an end."""
    is_over = event.error_code is not None or event.interrupted or event.turn_complete or event.actions.end_of_agent
    return event.content is None and not is_over


def is_said(event: Event) -> bool:
    """Whether an event of a live session has anything for the user."""
    has_parts = bool(event.content and event.content.parts)
    return has_parts or event.output_transcription is not None or event.error_code is not None


def recorded_voice(event: Event) -> dict[str, int]:
    """The artifacts in which ADK has stored somebody's voice, with `save_live_blob`, and their versions."""
    found: dict[str, int] = {}
    for part in (event.content.parts if event.content else None) or ():
        address = (part.file_data.file_uri if part.file_data else None) or ""
        name, _, version = address.partition(_RECORDING)[2].rpartition("#")
        if address.startswith("artifact://") and name and version.isdigit():
            found[name] = int(version)
    return found


def said_aloud(event: Event) -> Event:
    """The event with the transcript of a live model's voice as its text."""
    text = event.output_transcription.text if event.output_transcription else None
    content = types.Content(role="model", parts=[types.Part(text=text)]) if text else None
    return event.model_copy(update={"content": content})


def is_more_text(event: Event) -> bool:
    """Whether an event has nothing but one more piece of a text, as nearly all have."""
    parts = event.content.parts if event.partial and event.content is not None else None
    if parts is None or len(parts) != 1:
        return False
    part = parts[0]
    return bool(part.text) and part.function_call is None and part.function_response is None


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
    """Whether a part comes from the model, and not from ADK itself."""
    if part.function_call is not None:
        return part.function_call.name not in (CONFIRMATION, CREDENTIAL)
    return bool(part.text) or (is_atomic(part) and part.code_execution_result is None)


ControlFlow = Mapping[str, frozenset[str]]
"""The names of ADK's control-flow tools, by the author of the events of their agent."""


def is_frameworks_own(event: Event, call: types.FunctionCall) -> bool:
    """Whether this is a question that ADK asks, and not a model that calls it by its name.

    ADK marks calls that wait: its own, and those of a model whose agent has a waiting tool of that name, such as
    `request_input`. It marks them by id, so the mark says nothing where two calls of an event have the same.
    """
    if event.partial or call.name not in QUESTIONS or call.id not in (event.long_running_tool_ids or ()):
        return False
    return sum(other.id == call.id for other in event.get_function_calls()) == 1


def is_hidden(event: Event, call: types.FunctionCall, control_flow: ControlFlow | None) -> bool:
    """Whether clients do not see a call: it controls ADK, or a model calls what only ADK may ask. `control_flow`: None
    if the agents are not known."""
    if call.name in QUESTIONS:
        return not is_frameworks_own(event, call)
    return call.name in (CONTROL_FLOW if control_flow is None else control_flow.get(event.author, ()))


def is_relayed(event: Event) -> bool:
    """Whether a remote agent (A2A) has sent this event."""
    return event.author != "user" and bool((event.custom_metadata or {}).get(_RELAYED))


def asks_for_confirmation(event: Event) -> bool:
    """Whether a workflow node asks for approval of its run. ADK would accept any answer under the id, and run the node
    with arguments that nobody has seen."""
    return any(
        call.name == REQUEST_INPUT and (call.id or "").startswith(_NODE_CONFIRMATION)
        for call in event.get_function_calls()
    )


def as_dict(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def auth_request(arguments: dict[str, Any], wire_id: str | None = None) -> dict[str, Any]:
    """What the client needs to ask for consent; the rest of the configuration stays on the server. `wire_id`: of the
    call that waits for it; None if a toolset does."""
    config = as_dict(arguments.get("authConfig"))
    oauth2 = as_dict(as_dict(config.get("exchangedAuthCredential")).get("oauth2"))
    address = oauth2.get("authUri")
    request = {
        "authUri": address if _is_consent_address(address) else None,
        "credentialKey": config.get("credentialKey"),
        "toolCallId": wire_id,
    }
    return {name: value for name, value in request.items() if value is not None}


def _is_consent_address(address: Any) -> bool:
    """Whether a page may make a link of it."""
    if not isinstance(address, str) or not address.isascii() or not address.isprintable():
        return False
    if " " in address or "\\" in address:  # browsers read these in other ways
        return False
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def worked_on_in(event: Event) -> str:
    """The id of the call that the agent of this event works on. An agent that runs as a tool has it behind its name."""
    return (event.branch or "").rpartition(".")[2].partition("@")[2]


@dataclass(frozen=True)
class ArtifactFile:
    """Where the client finds an artifact."""

    url: str
    media_type: str


def data_file(data: bytes | None, media_type: str | None) -> File:
    media_type = media_type or "application/octet-stream"
    return File(f"data:{media_type};base64,{base64.b64encode(data or b'').decode()}", media_type)


# -- voice -----------------------------------------------------------------------------------------------------------


def is_all_voice(event: Event) -> bool:
    """Such an event is not stored, and comes fifty times a second."""
    parts = event.content.parts if event.content is not None else None
    return bool(parts) and all(part.inline_data is not None and is_voice(part.inline_data) for part in parts)


def is_voice(blob: types.Blob) -> bool:
    return blob.mime_type is not None and blob.mime_type.startswith("audio/")
