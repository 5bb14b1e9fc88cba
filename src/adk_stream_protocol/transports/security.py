"""Which pages may call a bridge, which host names it serves, and which headers browsers may send."""

import logging
import re
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from ..errors import ConfigurationError, CrossSite, UnknownHost

logger = logging.getLogger(__name__)

POLICY_VIOLATION = 1008
"""The close code for a socket that breaks a rule."""

RUNNING = "x-adk-running"
"""The header in which the history names the message that it leaves out, because it is still running."""

# Some releases of the AI SDK set `user-agent`, and Safari and Firefox send a preflight for it.
_ALLOWED_HEADERS = (
    "content-type",
    "user-agent",
    "authorization",
    "x-ai-sdk-version",
    "last-event-id",
    "if-none-match",
)
_EXPOSED_HEADERS = f"{RUNNING}, retry-after, etag, content-range"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,255}")
_ALLOWED_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")  # as browsers send it
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_LOGGED = 100  # refusals: those of the developer's own pages are among the first
_MAX_HOST = 255  # characters: no name is longer


class Access:
    def __init__(
        self,
        *,
        origins: Collection[str] = (),
        headers: Collection[str] = (),
        hosts: Collection[str] = (),
    ) -> None:
        for origin in _names(origins, "allowed_origins"):
            usual_port = f":{_DEFAULT_PORTS.get(origin.partition(':')[0])}"
            if not _ALLOWED_ORIGIN.fullmatch(origin) or origin.endswith(usual_port):
                raise ConfigurationError(
                    "An allowed origin looks like https://app.example.com: in lower case, without a path, and without "
                    f"the usual port. It is not {origin!r}."
                )
        for header in _names(headers, "allowed_headers"):
            if not _HEADER_NAME.fullmatch(header) or header == "*":
                raise ConfigurationError(f"An allowed header looks like x-csrf-token, not {header!r}.")
        for host in _names(hosts, "allowed_hosts"):
            if _host_name(f"[{host}]" if host.count(":") > 1 else host) != host:
                raise ConfigurationError(
                    f"An allowed host is a name in lower case without a port, such as app.example.com, not {host!r}."
                )
        self._origins = frozenset(origins)
        self._allowed_headers = ", ".join(dict.fromkeys([*_ALLOWED_HEADERS, *(name.lower() for name in headers)]))
        self._hosts = frozenset(hosts)
        self._logged: set[str] = set()

    # -- pages of other origins ---------------------------------------------------------------------------------------

    def cors_headers(self, headers: Headers) -> dict[str, str]:
        """For every response. Only origins in the list are allowed, so their requests may carry cookies."""
        if self._is_cross_site(headers):
            self._log_origin(headers)
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
        """Browsers let any page open a socket to us, with our cookies, and only send its origin. Pages of our own
        origin and of allowed origins may. Programs that are not browsers send no origin, and have no cookies."""
        is_ours = self._is_ours(headers)
        if not is_ours:
            self._log_origin(headers)
            if not _ORIGIN.fullmatch(headers.get("origin", "")):
                self._log_once(
                    "a page that is not of the web (a file, a sandboxed frame) was refused: serve it over HTTP"
                )
        return is_ours

    def refuse_cross_site(self, headers: Headers) -> None:
        """Any site can send us a form, with our cookies and without a preflight."""
        if self._is_cross_site(headers):
            raise CrossSite

    def _is_cross_site(self, headers: Headers) -> bool:
        # The browser's own header comes first: a proxy may have changed the `Host`.
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

    def _log_origin(self, headers: Headers) -> None:
        """That it was refused is true of some requests only: a turn runs, since no page can have sent it."""
        origin = headers.get("origin", "")
        if _ORIGIN.fullmatch(origin):
            option = f"ChatBridge(allowed_origins=[{origin!r}])"
            self._log_once(f"a page of {origin} is not allowed; if it is yours: {option}{_changed_host(headers)}")

    def _log_once(self, refusal: str) -> None:
        """A developer finds the reason, and nobody can fill the log."""
        if refusal not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(refusal)
            logger.warning("%s", refusal)

    # -- host names --------------------------------------------------------------------------------------------------

    def refuse_unknown_host(self, headers: Headers) -> None:
        """DNS rebinding: another site can point its own name at our address, and its pages are then of our origin.
        Their requests still carry that name."""
        if self._hosts:
            hosts = headers.getlist("host")
            host = _host_name(hosts[0]) if len(hosts) == 1 else None
            if host not in self._hosts:
                if host is not None and len(host) <= _MAX_HOST:
                    option = f"ChatBridge(allowed_hosts=[{host!r}])"
                    self._log_once(f"a request to the host {host} was refused; if it is yours: {option}")
                raise UnknownHost


def _names(given: Collection[str], option: str) -> Collection[str]:
    if isinstance(given, str):
        raise ConfigurationError(f"{option} must be a list: {option}=[{given!r}].")
    return given


_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


def _host_name(host: str) -> str | None:
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else None


def _changed_host(headers: Headers) -> str:
    """What else may be the matter with a page of another origin than ours."""
    host = headers.get("host", "")
    if "sec-fetch-site" in headers or len(host) > _MAX_HOST or not _HOST.fullmatch(host):
        return ""
    return f". Its request is for the host {host}: if a proxy has changed that, let it pass the Host header on"


def _is_same_origin(origin: str, hosts: list[str]) -> bool:
    if len(hosts) != 1:
        return False
    try:
        page, here = urlsplit(origin), urlsplit(f"//{hosts[0]}")
        default = _DEFAULT_PORTS.get(page.scheme)
        names = page.hostname, here.hostname
        ports = page.port or default, here.port or default
    except ValueError:  # a malformed port or IPv6 address
        return False
    # Only a scheme, a name and a port. The scheme may differ from ours: a proxy may terminate TLS.
    is_plain = default is not None and origin == f"{page.scheme}://{page.netloc}" and "@" not in page.netloc
    return is_plain and names[0] is not None and names[0] == names[1] and ports[0] == ports[1]
