"""The application's own functions, `user_id`, `groups` and `prepare`. Texts of their exceptions stay on the server."""

import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from ..errors import BridgeError, ConfigurationError, NoUser, RefusedByApplication
from ..protocol.approval_chain import GROUP
from .prepared import Prepared

logger = logging.getLogger(__name__)

UserId = Callable[[HTTPConnection], str | Awaitable[str | None] | None]
Groups = Callable[[HTTPConnection], Collection[str] | Awaitable[Collection[str]]]
Prepare = Callable[[HTTPConnection, Mapping[str, Any]], Prepared | Awaitable[Prepared | None] | None]

_CALLED_WITH = {
    "user_id": ("connection",),
    "groups": ("connection",),
    "prepare": ("connection", "body"),
    "decide": ("request",),
}


def require_function(option: str, given: Any) -> None:
    """At the start, since a function with other parameters fails at each request."""
    parameters = _CALLED_WITH[option]
    try:
        inspect.signature(given).bind(*parameters)
    except ValueError:  # builtins do not tell their parameters
        return
    except TypeError:
        raise ConfigurationError(
            f"{option} must be a function with these parameters: {option}({', '.join(parameters)})."
        ) from None


async def ask_user_id(user_id: UserId, connection: HTTPConnection) -> str:
    try:
        user: Any = user_id(connection)
        if inspect.isawaitable(user):
            user = await user
    except BridgeError:
        raise
    except HTTPException as error:
        raise RefusedByApplication(error.status_code, error.detail) from None
    except Exception as error:
        logger.warning("user_id failed, so nobody is signed in: %s", _class_and_place(error))
        raise NoUser from None
    if user is None or user == "":
        raise NoUser
    if not isinstance(user, str):
        logger.error("user_id must return a str or None, not %s: nobody is served", type(user).__qualname__)
        raise BridgeError
    return user


async def ask_groups(groups: Groups, connection: HTTPConnection) -> frozenset[str]:
    """The names of the groups that the caller is in. If it fails, the caller is in none."""
    try:
        found: Any = groups(connection)
        if inspect.isawaitable(found):
            found = await found
        names = [found] if isinstance(found, str) else list(found)
        if not all(isinstance(name, str) for name in names):
            raise TypeError("groups must return strings")
    except BridgeError:
        raise
    except HTTPException as error:
        raise RefusedByApplication(error.status_code, error.detail) from None
    except Exception as error:
        logger.error("groups failed, so the caller is in none: %s", _class_and_place(error))
        return frozenset()
    return frozenset(name.removeprefix(GROUP) for name in names)


async def ask_prepare(prepare: Prepare, connection: HTTPConnection, body: Mapping[str, Any]) -> Prepared:
    try:
        prepared = prepare(connection, body)
        if inspect.isawaitable(prepared):
            prepared = await prepared
    except BridgeError:
        raise
    except HTTPException as error:
        raise RefusedByApplication(error.status_code, error.detail) from None
    except Exception as error:
        logger.error("prepare failed: %s", _class_and_place(error))
        raise BridgeError from None
    return prepared or {}


def _class_and_place(error: Exception) -> str:
    """Without its text, which may quote a token or a message. The place is a line of the application's function."""
    frames = traceback.extract_tb(error.__traceback__)
    place = frames[min(1, len(frames) - 1)]
    return f"{type(error).__qualname__} in {place.filename}, line {place.lineno}"
