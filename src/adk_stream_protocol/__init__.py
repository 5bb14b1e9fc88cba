"""Put any Google ADK agent behind any AI SDK client (`useChat`)."""

from .bridge import ChatBridge, Prepared
from .errors import BridgeError, ConfigurationError
from .limits import Limits

__version__ = "0.1.0.dev0"

__all__ = ["BridgeError", "ChatBridge", "ConfigurationError", "Limits", "Prepared", "__version__"]
