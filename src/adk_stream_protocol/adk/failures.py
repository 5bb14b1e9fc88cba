"""What a client reads when a run fails. Never the message of an exception: it may contain prompts and secrets."""

from google.genai import errors as genai_errors
from websockets.exceptions import ConnectionClosed

from ..errors import NoLiveMode

_FAILED = "The agent could not answer. Try again."
LOST_MODEL = "The connection to the model was lost. Send your message again."
_BUSY = "The model is busy. Try again in a moment."


class ModelLost(Exception):
    """Connections to a live model were accepted and dropped, one after the other."""


def public_failure_text(failure: Exception | str) -> str:
    """For what a run raised, or for the error code of an event."""
    if isinstance(failure, ModelLost):
        return LOST_MODEL
    if isinstance(failure, Exception) and _has_no_live_mode(failure):
        return NoLiveMode.public_text
    code = str(failure.code) if isinstance(failure, genai_errors.APIError) else failure
    return _BUSY if code in ("429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE") else _FAILED


def _has_no_live_mode(failure: Exception) -> bool:
    """A model of ADK's without `connect` says so, and so does Gemini's service when it is dialled."""
    text = str(failure)
    if isinstance(failure, NotImplementedError):
        return text.startswith("Live connection is not supported")
    return isinstance(failure, genai_errors.APIError | ConnectionClosed) and "bidiGenerateContent" in text
