"""Who is who where nobody logs in: on the loopback of a developer's machine, and only there."""

import hashlib
import hmac
import secrets

from starlette.requests import HTTPConnection

COOKIE = "adk_stream_user"
GUEST = "guest"


class LoopbackIdentity:
    """The header `x-demo-user` (on a WebSocket, which has no headers of the page's own, the query `user`), else the
    cookie that the page at `/` has set and only we can have signed, else a guest whom all others share."""

    def __init__(self, database: str | None = None) -> None:
        """`database`: where chats are kept. Whoever may see that may be anybody here, so that its name is secret enough
        for a key which outlives the process, as the chats do."""
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
    """A header that the proxy in front sets after it has authenticated the user."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, connection: HTTPConnection) -> str | None:
        return connection.headers.get(self._name)
