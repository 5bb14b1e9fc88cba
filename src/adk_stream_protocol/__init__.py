"""Put any Google ADK agent behind any AI SDK client (`useChat`)."""

from .adk.calls.client_tools import client_tool
from .adk.calls.idempotency import idempotency_key
from .adk.calls.long_running import call_ref
from .adk.calls.policy import ApprovalPolicy, ApprovalRequest, Chain, Link, Nobody, Owner
from .bridge import ChatBridge
from .chat.announcer import WaitingCall
from .chat.prepared import Prepared
from .errors import (
    BridgeError,
    ConfigurationError,
    MalformedRequest,
    NotFound,
    NoUser,
    Refusal,
    Restarting,
    RunActive,
    StoreUnavailable,
)
from .limits import Limits
from .protocol.call_record import ChatKey
from .store.base import AuditEntry, Store

__version__ = "0.1.0"

__all__ = [
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
