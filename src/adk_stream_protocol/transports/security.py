"""Who may read our answers from a page of another origin."""

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

POLICY_VIOLATION = 1008
"""With which a socket is closed that is itself at fault."""

RUNNING = "x-adk-running"
"""In which the history names an answer that it leaves out, since it is running."""

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
        "access-control-expose-headers": RUNNING,
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


_DEFAULT_PORTS = {"http": 80, "https": 443}


def may_open_socket(headers: Headers, allowed_origins: Collection[str]) -> bool:
    """Browsers let every page open a socket to us, with our cookies; they only say which page it is. Pages of our own
    origin may, and those that are allowed by name. Other programs than browsers say nothing, and have no cookies."""
    origins = headers.getlist("origin")
    if not origins:
        return True
    if len(origins) > 1:
        return False
    return origins[0] in allowed_origins or _is_same_origin(origins[0], headers.getlist("host"))


def _is_same_origin(origin: str, hosts: list[str]) -> bool:
    if len(hosts) != 1:
        return False
    try:
        page, here = urlsplit(origin), urlsplit(f"//{hosts[0]}")
        default = _DEFAULT_PORTS.get(page.scheme)
        names = page.hostname, here.hostname
        ports = page.port or default, here.port or default
    except ValueError:  # a port that is none, half a bracket
        return False
    # Nothing but a scheme, a name and a port. The scheme need not be ours: a proxy in front may speak TLS for us.
    is_plain = default is not None and origin == f"{page.scheme}://{page.netloc}" and "@" not in page.netloc
    return is_plain and names[0] is not None and names[0] == names[1] and ports[0] == ports[1]
