"""The public surface is small, and it does not grow by accident."""

import adk_stream_protocol


def test_the_public_names_are_these() -> None:
    assert sorted(adk_stream_protocol.__all__) == [
        "ApprovalPolicy",
        "BridgeError",
        "ChatBridge",
        "ConfigurationError",
        "Limits",
        "Prepared",
        "__version__",
        "client_tool",
        "idempotency_key",
    ]
    assert len(adk_stream_protocol.__all__) <= 20
    for name in adk_stream_protocol.__all__:
        assert hasattr(adk_stream_protocol, name)
