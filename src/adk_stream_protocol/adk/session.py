"""One chat of one user, as ADK stores it: a session, and its artifacts."""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypedDict
from urllib.parse import quote

from google.adk.errors.input_validation_error import InputValidationError
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig

from ..errors import StoreUnavailable
from ..loop_share import LoopShare
from ..protocol.call_record import ChatKey
from ..protocol.messages import ApprovalStyle
from .event_parts import METADATA_KEY, ArtifactFile, ControlFlow
from .words.model_ways import ModelWays

logger = logging.getLogger(__name__)

_LOOKUPS_AT_ONCE = 8  # of artifacts, which may be in a bucket on the network
_UNREACHABLE = "Your chats cannot be reached right now. Try again."


@contextmanager
def reaching(service: object) -> Generator[None]:
    """Services of ADK raise what their databases raise. Its text may quote what people wrote: it is not passed on.
    A `ValueError` is about what was asked or stored, and stays as it is."""
    try:
        yield
    except ValueError:
        raise
    except Exception as error:
        logger.error("%s cannot be used: %s", type(service).__qualname__, type(error).__qualname__)
        logger.debug("details", exc_info=error)
        raise StoreUnavailable(_UNREACHABLE) from None


@dataclass(frozen=True, kw_only=True)
class MessageIds:
    """Which messages of the client an event belongs to. ADK stores them with every event of a run."""

    user_message_id: str | None
    message_id: str | None
    ended_by: str | None = None
    """On an event that the bridge adds when a run was ended from outside: `stop`, `failure`, or a limit."""
    failure: str | None = None
    """The error text that the client got for it."""
    skipped: Sequence[str] | None = None
    """In a live session: messages of the user before that one which the model has said nothing to."""
    step: str | None = None
    """In a live session, where every event has an id of its own: the model call that an event belongs to."""
    said: str | None = None
    """A digest of what the user said, by which a repeated request is recognized."""
    approval_style: ApprovalStyle | None = None
    """How approvals are shown in the answer; the history shows them in the same way."""
    send_state: Sequence[str] | None = None
    send_nodes: bool | None = None

    def metadata(self) -> dict[str, Any]:
        return {METADATA_KEY: {name: value for name, value in vars(self).items() if value is not None}}

    @classmethod
    def of(cls, event: Event) -> "MessageIds":
        stored = _notes(event)
        return cls(**{name: stored.get(name) for name in cls.__dataclass_fields__})


def _notes(event: Event) -> Mapping[str, Any]:
    return (event.custom_metadata or {}).get(METADATA_KEY) or {}


def ending_of(event: Event) -> tuple[str | None, str | None]:
    """What has ended its run from outside, and the error text that the client got: see `MessageIds`."""
    notes = _notes(event)
    return notes.get("ended_by"), notes.get("failure")


def message_id_of(event: Event) -> str:
    """The assistant's message that an event belongs to. Events of runs without this bridge have no such id."""
    return _notes(event).get("message_id") or f"msg-{event.invocation_id}"


def user_message_id_of(event: Event) -> str | None:
    return _notes(event).get("user_message_id")


async def kept_events(events: list[Event], share: LoopShare) -> list[Event]:
    """The events without those that a rewind removed."""
    first_of_invocation: dict[str, int] = {}
    for place, event in enumerate(events):
        await share.give_way()
        first_of_invocation.setdefault(event.invocation_id, place)
    kept: list[Event] = []
    place = len(events) - 1
    while place >= 0:
        await share.give_way()
        target = events[place].actions.rewind_before_invocation_id
        if target:
            place = min(place, first_of_invocation.get(target, place))
        else:
            kept.append(events[place])
        place -= 1
    return kept[::-1]


async def find_event(events: Sequence[Event], is_meant: Callable[[Event], bool]) -> Event | None:
    """The first event for which `is_meant` is true."""
    share = LoopShare()
    for event in events:
        await share.give_way()
        if is_meant(event):
            return event
    return None


def before_invocation(events: list[Event], invocation_id: str) -> list[Event]:
    """The events that a rewind to before this invocation leaves."""
    place = next((place for place, event in enumerate(events) if event.invocation_id == invocation_id), len(events))
    return events[:place]


async def find_repeated(events: list[Event], ids: MessageIds) -> tuple[str, bool] | None:
    """If the session has this user message already: the id of the answer to it, and whether it said the same."""
    share = LoopShare()
    for event in reversed(events):
        await share.give_way()
        if event.author != "user" or user_message_id_of(event) != ids.user_message_id:
            continue
        stored = MessageIds.of(event)
        if stored.message_id is not None:
            if not any(kept is event for kept in await kept_events(events, share)):
                return None  # a rewind removed it
            return stored.message_id, stored.said is None or stored.said == ids.said
    return None


def _may_be_file_name(name: str) -> bool:
    """Artifact services that use the names for files fail at names that no file system takes."""
    return "\0" not in name and len(name) <= 1000 and all(len(piece.encode()) <= 255 for piece in name.split("/"))


class _SessionKey(TypedDict):
    app_name: str
    user_id: str
    session_id: str


@dataclass(frozen=True)
class Chat:
    runner: Runner
    user_id: str
    chat_id: str
    files_url: str
    """The URL below which the client finds its files."""
    control_flow: ControlFlow | None = None
    browser_tools: frozenset[str] = frozenset()
    """The names of tools that certainly run in the browser."""
    model_ways: Callable[[], ModelWays] = ModelWays
    """Which way the words of its models go, in a run that begins now: see `words/direct_agents.py`."""
    not_found: list[str] = field(default_factory=list[str], compare=False)
    """The artifacts whose media type was looked up in vain."""

    @property
    def _key(self) -> _SessionKey:
        return {"app_name": self.runner.app_name, "user_id": self.user_id, "session_id": self.chat_id}

    @property
    def key(self) -> ChatKey:
        return ChatKey(self.runner.app_name, self.user_id, self.chat_id)

    @property
    def root_author(self) -> str:
        return self.runner.agent.name if self.runner.agent else ""

    async def load(self, *, recent: int | None = None) -> Session | None:
        """`recent`: how many of its newest events are wanted, if not all."""
        service = self.runner.session_service
        try:
            with reaching(service):
                if recent is not None:
                    return await service.get_session(**self._key, config=GetSessionConfig(num_recent_events=recent))
                return await service.get_session(**self._key)
        except ValueError as error:
            # Vertex AI raises a plain ValueError if the session is another user's. Subclasses, such as Pydantic's, mean
            # other errors.
            if type(error) is not ValueError:
                raise
            return None

    async def create(self) -> None:
        await self.runner.session_service.create_session(**self._key)

    async def delete_session(self) -> None:
        service = self.runner.session_service
        with reaching(service):
            await service.delete_session(**self._key)

    async def delete_files(self) -> None:
        """Delete the chat's own artifacts, not those that the user's chats share."""
        service = self.runner.artifact_service
        if service is not None:
            with reaching(service):
                for filename in await service.list_artifact_keys(**self._key):
                    if not filename.startswith("user:"):
                        await service.delete_artifact(**self._key, filename=filename)

    async def append(self, events: Sequence[Event], session: Session | None = None) -> None:
        """`session`: the chat's session, if the caller has just loaded it."""
        if events and session is None:
            session = await self.load()
        service = self.runner.session_service
        if session is not None:
            for event in events:
                with reaching(service):
                    await service.append_event(session, event)

    async def rewind_before(self, invocation_id: str) -> bool:
        """False if the chat was deleted meanwhile."""
        try:
            await self.runner.rewind_async(
                user_id=self.user_id, session_id=self.chat_id, rewind_before_invocation_id=invocation_id
            )
        except Exception:  # each session service raises its own
            session = await self.load()
            if session is not None and any(event.invocation_id == invocation_id for event in session.events):
                with reaching(self.runner.session_service):
                    raise
            return False
        return True

    async def files(self, delta: Mapping[str, int]) -> dict[str, ArtifactFile] | None:
        """Where the client finds the artifacts that an event names, by file name."""
        return (await self.files_of([delta]))[0]

    async def files_of(self, deltas: Sequence[Mapping[str, int]]) -> list[dict[str, ArtifactFile] | None]:
        """The same for many events, whose artifacts are looked up together."""
        service = self.runner.artifact_service
        if service is None:
            return [None] * len(deltas)
        at_once = asyncio.Semaphore(_LOOKUPS_AT_ONCE)

        async def look_up(filename: str, version: int) -> ArtifactFile:
            try:
                async with at_once:
                    saved = await service.get_artifact_version(**self._key, filename=filename, version=version)
            except Exception as error:  # the client can ask for the bytes later, but the event must be emitted now
                logger.error("an artifact was not looked up: %s", type(error).__qualname__)
                saved = None
            if saved is None:
                self.not_found.append(filename)
            media_type = (saved.mime_type if saved else None) or "application/octet-stream"
            return ArtifactFile(f"{self.files_url}/{quote(filename, safe='')}?version={version}", media_type)

        named = {named: None for delta in deltas for named in delta.items()}
        found = dict(zip(named, await asyncio.gather(*(look_up(*each) for each in named)), strict=True))
        return [{each[0]: found[each] for each in delta.items()} or None for delta in deltas]

    async def load_file(self, filename: str, version: int | None) -> tuple[bytes, str] | None:
        """An artifact's bytes and media type."""
        service = self.runner.artifact_service
        if not _may_be_file_name(filename):
            return None
        try:
            with reaching(service):
                part = await service.load_artifact(**self._key, filename=filename, version=version) if service else None
        except InputValidationError:  # a name that climbs out of its folder
            return None
        if part is None:
            return None
        if part.inline_data is not None and part.inline_data.data is not None:
            return part.inline_data.data, part.inline_data.mime_type or "application/octet-stream"
        return None if part.text is None else (part.text.encode("utf-8", "replace"), "text/plain; charset=utf-8")
