"""Users who are signed in by the session cookie of Starlette, as in the docs and the examples."""

import base64
import json

from itsdangerous import TimestampSigner

KEY = "the key of the tests"


def signed_in(user: str = "ann", key: str = KEY) -> dict[str, str]:
    """The headers of such a user. The application must have the same key."""
    session = base64.b64encode(json.dumps({"user": user}).encode())
    return {"cookie": f"session={TimestampSigner(key).sign(session).decode()}"}
