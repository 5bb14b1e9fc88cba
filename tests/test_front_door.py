"""The public surface is small, and it does not grow by accident."""

import adk_stream_protocol


def test_the_public_names_are_these() -> None:
    assert sorted(adk_stream_protocol.__all__) == [
        "ApprovalPolicy",
        "AuditEntry",
        "BridgeError",
        "ChatBridge",
        "ConfigurationError",
        "Limits",
        "MalformedRequest",
        "NoUser",
        "NotFound",
        "Prepared",
        "Refusal",
        "Restarting",
        "RunActive",
        "StoreUnavailable",
        "__version__",
        "client_tool",
        "idempotency_key",
    ]
    assert len(adk_stream_protocol.__all__) <= 20
    for name in adk_stream_protocol.__all__:
        assert hasattr(adk_stream_protocol, name)


def test_every_refusal_of_a_route_can_be_caught_as_one() -> None:
    refusals = ("MalformedRequest", "NoUser", "NotFound", "Refusal", "Restarting", "RunActive", "StoreUnavailable")
    for name in refusals:
        assert issubclass(getattr(adk_stream_protocol, name), adk_stream_protocol.BridgeError)
    assert issubclass(adk_stream_protocol.ConfigurationError, ValueError)
