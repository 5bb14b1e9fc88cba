"""What can go wrong, by who is at fault.

    BridgeError
    ├── RemoteProtocolError        the client: its bytes are wrong. Nothing was run, the session is unchanged
    │   ├── MalformedRequest       400
    │   ├── UnknownHost            400
    │   ├── TooSlow                408
    │   ├── RequestTooLarge        413
    │   ├── WrongMediaType         415
    │   └── RangeNotSatisfiable    416
    ├── Refusal                    nobody: the request is well-formed, but not now, or not for this user
    │   ├── NoUser                 401
    │   ├── CrossSite              403
    │   ├── NotFound               404
    │   ├── RunActive              409, with Retry-After
    │   ├── VoiceTaken             409
    │   ├── AnotherDigest          409
    │   ├── OutputDoesNotFit       422
    │   ├── TooManyFrames          429
    │   ├── TooMany                429, with Retry-After
    │   ├── Busy                   503, with Retry-After
    │   ├── Restarting             503, with Retry-After
    │   ├── RunElsewhere           503, with Retry-After
    │   ├── StoreUnavailable       503
    │   ├── NoLiveMode             501
    │   ├── LiveFailed             502, with Retry-After
    │   └── RefusedByApplication   the status of the application's HTTPException
    └── LocalProtocolError         this library: a chunk that the stream's grammar does not allow
    ConfigurationError             the application: a bridge that cannot work, raised at start-up (a ValueError)

Each class has one public text; all further details stay on the server.
"""

from typing import ClassVar


class BridgeError(Exception):
    """Base of everything the library refuses or fails with while serving."""

    status: int = 500
    code: ClassVar[str] = "internal"
    public_text: ClassVar[str] = "The server failed. Try again."
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, public_text: str | None = None) -> None:
        super().__init__(public_text or self.public_text)


class RemoteProtocolError(BridgeError):
    """The client's bytes are at fault."""


class MalformedRequest(RemoteProtocolError):
    status = 400
    code = "malformed"
    public_text = "The request is not a chat request of the AI SDK."


class UnknownHost(RemoteProtocolError):
    status = 400
    code = "unknown-host"
    public_text = "The server does not accept requests for this host name."


class TooSlow(RemoteProtocolError):
    status = 408
    code = "too-slow"
    public_text = "The request took too long to arrive. Send it again."


class RequestTooLarge(RemoteProtocolError):
    status = 413
    code = "too-large"
    public_text = "The request is too large."


class WrongMediaType(RemoteProtocolError):
    status = 415
    code = "wrong-media-type"
    public_text = "Send JSON with the header `content-type: application/json`, not compressed."


class RangeNotSatisfiable(RemoteProtocolError):
    status = 416
    code = "range-not-satisfiable"
    public_text = "The file ends before the range that was asked for."


class Refusal(BridgeError):
    """A well-formed request that is not served."""


class NoUser(Refusal):
    status = 401
    code = "no-user"
    public_text = "Sign in first."


class CrossSite(Refusal):
    status = 403
    code = "cross-site"
    public_text = (
        "Pages of other sites may not do this. If this page is the server's own, a proxy has changed the Host header: "
        "the server's log says more."
    )


class NotFound(Refusal):
    status = 404
    code = "not-found"
    public_text = "Not found: there is nothing with this id, or it belongs to another user."


class RunActive(Refusal):
    status = 409
    code = "run-active"
    public_text = "This chat is still answering. Wait for the end of its answer, then send again."
    retry_after_s = 1


class VoiceTaken(Refusal):
    status = 409
    code = "voice-taken"
    public_text = "Another page of this chat has its microphone open. Close it there, then speak here."


class AnotherDigest(Refusal):
    status = 409
    code = "another-digest"
    public_text = "What is asked has changed since you saw it. Look at it again, then decide."


class OutputDoesNotFit(Refusal):
    status = 422
    code = "output-does-not-fit"
    public_text = "The output does not fit the tool's schema. The call is still open: send an output that does."


class TooManyFrames(Refusal):
    status = 429
    code = "rate-limited"
    public_text = "Too many frames. Send fewer of them."


class TooMany(Refusal):
    """One user has too many runs, readers, sockets or waiting answers at once."""

    status = 429
    code = "too-many"
    public_text = "Too many answers, pages or connections are open. Close one or wait until one ends, then send again."
    retry_after_s = 5


class Busy(Refusal):
    status = 503
    code = "busy"
    public_text = "The server is busy. Send your request again."
    retry_after_s = 5


class Restarting(Refusal):
    status = 503
    code = "restarting"
    public_text = "The server restarts. Send your request again."
    retry_after_s = 1


class RunElsewhere(Refusal):
    status = 503
    code = "run-elsewhere"
    public_text = "Another process of the server runs this answer, and this one cannot stop it. Try again."
    retry_after_s = 1


class StoreUnavailable(Refusal):
    status = 503
    code = "store-unavailable"
    public_text = "Approvals cannot be recorded right now, so nothing was run. Try again."


class NoLiveMode(Refusal):
    status = 501
    code = "no-live-mode"
    public_text = (
        "This agent's model has no live mode. Write to it without a live session, or give the agent a live model: "
        "for Gemini, one that supports bidiGenerateContent."
    )


class LiveFailed(Refusal):
    """A live session has failed. Its text says why, as far as clients may know."""

    status = 502
    code = "live-failed"
    public_text = "The live session has failed. Try again."
    retry_after_s = 1


class RefusedByApplication(Refusal):
    """An `HTTPException` of a hook: its status, and its text, which is meant for clients."""

    code = "refused"
    public_text = "The request was refused."

    def __init__(self, status: int, detail: object) -> None:
        super().__init__(detail if isinstance(detail, str) else None)
        self.status = status if 400 <= status < 600 else 500


class LocalProtocolError(BridgeError):
    """We tried to write a chunk that the stream's grammar does not allow here."""


class ConfigurationError(ValueError):
    """The configuration of the bridge cannot work; the text says what to change."""
