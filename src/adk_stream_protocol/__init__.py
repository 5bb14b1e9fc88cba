"""Put any Google ADK agent behind any AI SDK client (`useChat`)."""

from .adk.calls.client_tools import client_tool
from .adk.calls.idempotency import idempotency_key
from .adk.calls.policy import ApprovalPolicy
from .bridge import ChatBridge
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

__version__ = "0.1.0.dev0"

__all__ = [
    "ApprovalPolicy",
    "AuditEntry",
    "BridgeError",
    "ChatBridge",
    "ChatKey",
    "ConfigurationError",
    "Limits",
    "MalformedRequest",
    "NoUser",
    "NotFound",
    "Prepared",
    "Refusal",
    "Restarting",
    "RunActive",
    "Store",
    "StoreUnavailable",
    "__version__",
    "client_tool",
    "idempotency_key",
]
