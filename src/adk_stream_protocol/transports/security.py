"""Which pages may call a bridge, under which names it answers, and what browsers may send it."""

import logging
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from ..errors import ConfigurationError, CrossSite, UnknownHost

logger = logging.getLogger(__name__)

POLICY_VIOLATION = 1008
"""With which a socket is closed that is itself at fault."""

RUNNING = "x-adk-running"
"""In which the history names an answer that it leaves out, since it is running."""

# `user-agent` is sent by some releases of the AI SDK, and Safari and Firefox ask before they let it pass.
_ALLOWED_HEADERS = ("content-type", "user-agent", "authorization", "x-ai-sdk-version", "last-event-id")
_EXPOSED_HEADERS = f"{RUNNING}, retry-after, etag, content-range"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_TOLD = 100  # origins in the log: those of the own pages are among the first, the rest are strangers


class Access:
    def __init__(
        self,
        *,
        origins: Collection[str] = (),
        headers: Collection[str] = (),
        hosts: Collection[str] = (),
    ) -> None:
        for origin in _names(origins, "allowed_origins"):
            if "://" not in origin or origin.endswith("/"):
                raise ConfigurationError(f"An allowed origin looks like https://app.example.com, not {origin!r}.")
        for header in _names(headers, "allowed_headers"):
            if not _HEADER_NAME.fullmatch(header) or header == "*":
                raise ConfigurationError(f"An allowed header looks like x-csrf-token, not {header!r}.")
        for host in _names(hosts, "allowed_hosts"):
            if _host_name(f"[{host}]" if host.count(":") > 1 else host) != host:
                raise ConfigurationError(
                    f"An allowed host is a name in small letters without a port, such as app.example.com, not {host!r}."
                )
        self._origins = frozenset(origins)
        self._allowed_headers = ", ".join(dict.fromkeys([*_ALLOWED_HEADERS, *(name.lower() for name in headers)]))
        self._hosts = frozenset(hosts)
        self._told: set[str] = set()

    # -- pages of other origins ---------------------------------------------------------------------------------------

    def cors_headers(self, headers: Headers) -> dict[str, str]:
        """For every answer. Only named origins are ever allowed, so cookies may come with them."""
        if self._is_cross_site(headers):
            self._tell(headers)
        if not self._origins:
            return {}
        origin = headers.get("origin")
        if origin is None or origin not in self._origins:
            return {"vary": "Origin"}
        return {
            "access-control-allow-origin": origin,
            "access-control-allow-credentials": "true",
            "access-control-expose-headers": _EXPOSED_HEADERS,
            "vary": "Origin",
        }

    def preflight_headers(self, headers: Headers) -> dict[str, str]:
        allowed = self.cors_headers(headers)
        if "access-control-allow-origin" not in allowed:
            return allowed
        return {
            **allowed,
            "access-control-allow-methods": "GET, HEAD, POST, DELETE",
            "access-control-allow-headers": self._allowed_headers,
            "access-control-max-age": "600",
        }

    def may_open_socket(self, headers: Headers) -> bool:
        """Browsers let every page open a socket to us, with our cookies; they only say which page it is. Pages of our
        own origin may, and those that are allowed by name. Other programs than browsers say nothing, and have no
        cookies."""
        is_ours = self._is_ours(headers)
        if not is_ours:
            self._tell(headers)
        return is_ours

    def refuse_cross_site(self, headers: Headers) -> None:
        """A form needs nobody's leave to be sent to us from another site, with our cookies."""
        if self._is_cross_site(headers):
            raise CrossSite

    def _is_cross_site(self, headers: Headers) -> bool:
        # What the browser itself knows comes first: a proxy in front may have changed the `Host`.
        site = headers.getlist("sec-fetch-site")
        if site:
            return site not in (["same-origin"], ["none"]) and not self._is_named(headers)
        return not self._is_ours(headers)

    def _is_ours(self, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        if not origins or self._is_named(headers):
            return True
        return len(origins) == 1 and _is_same_origin(origins[0], headers.getlist("host"))

    def _is_named(self, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        return len(origins) == 1 and origins[0] in self._origins

    def _tell(self, headers: Headers) -> None:
        """Once for each origin: a developer who looks for the reason finds it, and nobody can fill the log."""
        origin = headers.get("origin", "")
        if origin in self._told or len(self._told) >= _MAX_TOLD or not _ORIGIN.fullmatch(origin):
            return
        self._told.add(origin)
        logger.warning("a page of %s was refused; if it is yours: ChatBridge(allowed_origins=[%r])", origin, origin)

    # -- names of ours ------------------------------------------------------------------------------------------------

    def refuse_unknown_host(self, headers: Headers) -> None:
        """A page of another site may point its own name at our address, and is then of our origin. Its requests still
        carry that name."""
        if self._hosts:
            hosts = headers.getlist("host")
            if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
                raise UnknownHost


def _names(given: Collection[str], option: str) -> Collection[str]:
    if isinstance(given, str):
        raise ConfigurationError(f"{option} is a list of strings, not one string.")
    return given


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


def _host_name(host: str) -> str | None:
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else None


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
