"""Who the user is where nobody logs in: only on the loopback interface of a developer's machine."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from starlette.requests import HTTPConnection

COOKIE = "adk_stream_user"
GUEST = "guest"


class LoopbackIdentity:
    """The user is named by the header `x-demo-user`, or on a WebSocket by the query `user`, since a page cannot set
    headers there. Else by the signed cookie that the page at `/` sets. Everybody else is the same guest."""

    def __init__(self, database: str | None = None, people: Mapping[str, str] | None = None) -> None:
        """`database`: the URL of the chats' database. The key for the cookies is made from it, so that cookies stay
        valid as long as the chats exist. It is secret enough: whoever can read it here could be any user anyway.
        `people`: whom the page lets one be besides oneself, and what they are."""
        self.people = people or {}
        self._key = hashlib.sha256(database.encode()).digest() if database else secrets.token_bytes(32)

    def __call__(self, connection: HTTPConnection) -> str:
        if connection.scope["type"] == "websocket":
            named = connection.query_params.get("user")
        else:
            named = connection.headers.get("x-demo-user")
        return named or self._signed_user(connection.cookies.get(COOKIE, "")) or GUEST

    def new_cookie(self) -> str:
        user = f"visitor-{secrets.token_hex(8)}"
        return f"{user}.{self._signature(user)}"

    def is_valid(self, cookie: str) -> bool:
        return self._signed_user(cookie) is not None

    def _signed_user(self, cookie: str) -> str | None:
        user, _, signature = cookie.rpartition(".")
        return user if hmac.compare_digest(signature.encode(), self._signature(user).encode()) else None

    def _signature(self, user: str) -> str:
        return hmac.new(self._key, user.encode(), hashlib.sha256).hexdigest()


class HeaderIdentity:
    """The user is named by a header that a proxy sets after it has authenticated the user."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, connection: HTTPConnection) -> str | None:
        return connection.headers.get(self._name)
