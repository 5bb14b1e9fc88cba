"""What a client reads when a run fails. Never the message of an exception: it may contain prompts and secrets."""

from google.genai import errors as genai_errors

_FAILED = "The agent could not answer. Try again."
_BUSY = "The model is busy. Try again in a moment."


def public_failure_text(failure: Exception | str) -> str:
    """For what a run raised, or for the error code of an event."""
    code = str(failure.code) if isinstance(failure, genai_errors.APIError) else failure
    return _BUSY if code in ("429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE") else _FAILED
