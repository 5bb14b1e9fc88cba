"""What a client reads when a run fails. Never the message of an exception: it may contain prompts and secrets."""

from google.genai import errors as genai_errors
from websockets.exceptions import ConnectionClosed

from ..errors import NoLiveMode

_FAILED = "The agent could not answer. Try again."
LOST_MODEL = "The connection to the model was lost. Send your message again."
_BUSY = "The model is busy. Try again in a moment."


_CONSENT_NEEDED = (
    "This agent needs your consent for its tools, which cannot be given in a live session. "
    "Write to it without a live session."
)


_NO_LIVE_AGENT = "This agent cannot work in a live session. Write to it without a live session."


class ConsentNeeded(Exception):
    """A toolset has asked for a credential in a live session, where nobody can answer."""


class ModelLost(Exception):
    """Connections to a live model were accepted and dropped, one after the other."""


def public_failure_text(failure: Exception | str) -> str:
    """For what a run raised, or for the error code of an event."""
    if isinstance(failure, ModelLost):
        return LOST_MODEL
    if isinstance(failure, ConsentNeeded):
        return _CONSENT_NEEDED
    if isinstance(failure, Exception) and _has_no_live_mode(failure):
        return NoLiveMode.public_text
    if isinstance(failure, NotImplementedError) and str(failure).startswith("This is not supported yet for "):
        return _NO_LIVE_AGENT  # ADK's parallel agents and loops
    code = str(failure.code) if isinstance(failure, genai_errors.APIError) else failure
    return _BUSY if code in ("429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE") else _FAILED


def _has_no_live_mode(failure: Exception) -> bool:
    """A model of ADK's without `connect` says so, and so does Gemini's service when it is dialled."""
    text = str(failure)
    if isinstance(failure, NotImplementedError):
        return text.startswith("Live connection is not supported")
    return isinstance(failure, genai_errors.APIError | ConnectionClosed) and "bidiGenerateContent" in text
