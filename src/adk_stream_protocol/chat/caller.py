"""Who asks, and how the answer can be addressed."""

from dataclasses import dataclass

from starlette.requests import HTTPConnection


@dataclass(frozen=True)
class Caller:
    connection: HTTPConnection
    user_id: str
    files_root: str
    """The path of the chats, below which the caller finds their files."""
