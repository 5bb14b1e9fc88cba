from ..bridge import ChatBridge as ChatService

__all__ = ["ChatService"]
