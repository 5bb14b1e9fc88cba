"""The public surface is small, and it does not change by accident."""

import inspect

import adk_stream_protocol
from adk_stream_protocol import ChatBridge


def test_the_public_names_are_these() -> None:
    assert sorted(adk_stream_protocol.__all__) == [
        "ApprovalPolicy",
        "ApprovalRequest",
        "AuditEntry",
        "BridgeError",
        "Chain",
        "ChatBridge",
        "ChatKey",
        "ConfigurationError",
        "Limits",
        "Link",
        "MalformedRequest",
        "NoUser",
        "Nobody",
        "NotFound",
        "Owner",
        "Prepared",
        "Refusal",
        "Restarting",
        "RunActive",
        "Store",
        "StoreUnavailable",
        "WaitingCall",
        "__version__",
        "call_ref",
        "client_tool",
        "idempotency_key",
    ]
    assert len(adk_stream_protocol.__all__) <= 30
    for name in adk_stream_protocol.__all__:
        assert hasattr(adk_stream_protocol, name)


def test_every_refusal_of_a_route_can_be_caught_as_one() -> None:
    refusals = ("MalformedRequest", "NoUser", "NotFound", "Refusal", "Restarting", "RunActive", "StoreUnavailable")
    for name in refusals:
        assert issubclass(getattr(adk_stream_protocol, name), adk_stream_protocol.BridgeError)
    assert issubclass(adk_stream_protocol.ConfigurationError, ValueError)


def test_the_methods_of_a_bridge_are_these() -> None:
    public = {name: method for name, method in vars(ChatBridge).items() if not name.startswith("_")}
    assert {name: list(inspect.signature(method).parameters)[1:] for name, method in public.items()} == {
        "router": ["prefix"],
        "respond": ["request"],
        "messages": ["user_id", "chat_id"],
        "chats": ["user_id"],
        "stop": ["user_id", "chat_id"],
        "delete": ["user_id", "chat_id"],
        "audit": ["user_id", "chat_id", "tool", "since", "until"],
        "complete_call": ["ref", "output", "error", "final"],
        "complete_auth": ["user_id", "callback_url", "request_id", "api_key"],
        "recover": [],
        "drain": [],
        "aclose": [],
    }
    for name, method in public.items():
        assert f"bridge.{name}(" in (inspect.getdoc(method) or ""), f"{name} has no example"


def test_the_options_of_a_bridge_are_these() -> None:
    options = inspect.signature(ChatBridge).parameters
    assert list(options) == [
        "agent",
        "user_id",
        "app_name",
        "session_service",
        "artifact_service",
        "memory_service",
        "run_config",
        "store",
        "approvals",
        "groups",
        "on_waiting",
        "sdk_version",
        "approval_style",
        "live_while_waiting",
        "prepare",
        "limits",
        "allowed_origins",
        "allowed_headers",
        "allowed_hosts",
        "direct_text",
        "merge_text",
    ]
    required = [name for name, option in options.items() if option.default is inspect.Parameter.empty]
    assert required == ["agent", "user_id"]
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for name, option in options.items() if name != "agent")
