"""What a client is told of a failure: one of a few sentences, never the failure's own words."""

import pytest
from google.genai import errors as genai_errors
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from adk_stream_protocol.adk.failures import ModelLost, public_failure_text
from adk_stream_protocol.errors import NoLiveMode

BUSY = "The model is busy. Try again in a moment."
FAILED = "The agent could not answer. Try again."
NO_LIVE_AGENT = "This agent cannot work in a live session. Write to it without a live session."
NOT_SUPPORTED = {"error": {"message": "models/m is not supported for bidiGenerateContent."}}
SECRET = {"error": {"message": "key 1234", "status": "SECRET"}}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (genai_errors.ClientError(429, SECRET), BUSY),
        (genai_errors.ServerError(503, SECRET), BUSY),
        (genai_errors.ServerError(500, SECRET), FAILED),
        (genai_errors.ClientError(400, SECRET), FAILED),
        ("429", BUSY),
        ("503", BUSY),
        ("RESOURCE_EXHAUSTED", BUSY),
        ("UNAVAILABLE", BUSY),
        ("500", FAILED),
        ("RuntimeError", FAILED),
        (RuntimeError("429"), FAILED),
        (RuntimeError("key 1234"), FAILED),
        (ModelLost(), "The connection to the model was lost. Send your message again."),
        (NotImplementedError("Live connection is not supported for gpt."), NoLiveMode.public_text),
        (NotImplementedError("This is not supported yet for LoopAgent."), NO_LIVE_AGENT),
        (NotImplementedError("key 1234"), FAILED),
        (genai_errors.APIError(1008, NOT_SUPPORTED), NoLiveMode.public_text),
        (ConnectionClosedError(Close(1008, NOT_SUPPORTED["error"]["message"]), None), NoLiveMode.public_text),
        (ConnectionClosedError(Close(1008, "key 1234"), None), FAILED),
        (RuntimeError("bidiGenerateContent"), FAILED),
    ],
)
def test_each_failure_has_its_sentence(failure: Exception | str, told: str) -> None:
    assert public_failure_text(failure) == told
