"""What a client is told when a run fails. Messages of exceptions may hold prompts and secrets: never those."""

from google.genai import errors as genai_errors

_FAILED = "The agent could not answer. Try again."
_BUSY = "The model is busy. Try again in a moment."


def public_failure_text(failure: Exception | str) -> str:
    """For what a run raised, or for the error code of an event."""
    code = str(failure.code) if isinstance(failure, genai_errors.APIError) else failure
    return _BUSY if code in ("429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE") else _FAILED
