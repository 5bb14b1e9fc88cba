"""Who may read our answers from a page of another origin."""

from collections.abc import Collection

from starlette.datastructures import Headers

# `user-agent` is sent by some releases of the AI SDK, and Safari and Firefox ask before they let it pass.
_ALLOWED_HEADERS = "content-type, user-agent, authorization, x-ai-sdk-version, last-event-id"


def cors_headers(headers: Headers, allowed_origins: Collection[str]) -> dict[str, str]:
    """For every answer. Only named origins are ever allowed, so cookies may come with them."""
    if not allowed_origins:
        return {}
    origin = headers.get("origin")
    if origin is None or origin not in allowed_origins:
        return {"vary": "Origin"}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "vary": "Origin",
    }


def preflight_headers(headers: Headers, allowed_origins: Collection[str]) -> dict[str, str]:
    allowed = cors_headers(headers, allowed_origins)
    if "access-control-allow-origin" not in allowed:
        return allowed
    return {
        **allowed,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": _ALLOWED_HEADERS,
        "access-control-max-age": "600",
    }
