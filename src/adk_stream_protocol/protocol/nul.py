"""NUL characters. PostgreSQL takes none in JSON: with one in its session, a chat could not go on."""

from typing import Any, cast


def has_nul(value: Any) -> bool:
    """Whether there is one in a value or in a name."""
    return without_nul(value) != value


def without_nul(value: Any) -> Any:
    """With the replacement character in its place."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, dict):
        named = cast(dict[str, Any], value)
        return {without_nul(name): without_nul(inner) for name, inner in named.items()}
    return [without_nul(inner) for inner in cast(list[Any], value)] if isinstance(value, list) else value
