"""The history of one chat, as one client is shown it, and a tag that changes when it would change."""

import hashlib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ..adk.calls.inner_calls import with_inner_calls
from ..adk.revision import RECENT, has_revisions, revision_of
from ..adk.session import Chat
from ..adk.translate.history import encode_history
from ..adk.translate.translators import Translators
from ..errors import NotFound
from ..protocol.chunks import SdkVersion, encode_json
from ..protocol.fold import UIMessage
from ..store.base import Snapshot, Store, load_results
from .leases import ChatLeases

if TYPE_CHECKING:
    from google.adk.sessions import Session


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


_RELEASES = [_installed(package) for package in ("adk-stream-protocol", "google-adk")]
"""Another release may show the same events in another way."""


class ChatHistory:
    """What is read for one request, in this order: what runs, the session, what is told of nested calls, the records.
    The history and its tag are made of the same."""

    def __init__(
        self,
        chat: Chat,
        store: Store,
        leases: ChatLeases,
        translators: Translators,
        sdk_version: SdkVersion | None,
    ) -> None:
        self._chat = chat
        self._store = store
        self._leases = leases
        self._translators = translators
        self._sdk_version: SdkVersion = sdk_version or translators.sdk_version
        run = leases.get(chat.key)
        # Before the session is read: what ends meanwhile is left out, and can be read by its id for a minute.
        self.running = run.message_id if run is not None and run.log is not None else None
        """The id of the answer that the history leaves out, because it is running."""
        self.tag: str | None = None
        """Of what was loaded; None if only the whole history says whether it has changed."""

    async def peek(self) -> str | None:
        """The tag that `load` would give, without loading the session; None if that is not possible."""
        if not has_revisions(self._chat.runner.session_service):
            return None
        session = self._require(await self._chat.load(recent=RECENT))
        told = self._told()
        return self._tag_of(session, told, await self._store.read(self._chat.key))

    async def load(self) -> list[UIMessage]:
        """The conversation as its clients saw it."""
        chat = self._chat
        session = self._require(await chat.load())
        told = self._told()
        snapshot = await self._store.read(chat.key)
        records = {record.call: record for record in snapshot.records}
        await load_results(self._store, chat.key, records, list(records))
        history = await encode_history(
            chat,
            with_inner_calls(session.events, records.values(), told),
            new_translator=lambda ids: self._translators.new(chat, ids, self._sdk_version),
            records=records,
            running=self.running,
        )
        if has_revisions(chat.runner.session_service) and not chat.not_found:
            self.tag = self._tag_of(session, told, snapshot)
        return history

    def _require(self, session: "Session | None") -> "Session":
        if session is None:
            raise NotFound
        return session

    def _told(self) -> Sequence[Any]:
        run = self._leases.get(self._chat.key)
        return tuple(run.leased.unplaced) if run is not None else ()

    def _tag_of(self, session: "Session", told: Sequence[Any], snapshot: Snapshot) -> str | None:
        revision = revision_of(session)
        if revision is None:
            return None
        chat = self._chat
        agents = sorted((author, sorted(names)) for author, names in (chat.control_flow or {}).items())
        shown_as = [chat.files_url, self._sdk_version, self._translators.approval_style]
        shown_of = [chat.root_author, agents, sorted(chat.browser_tools)]
        records = [
            (record.call, record.version, record.delivered, record.waits(snapshot.now)) for record in snapshot.records
        ]
        everything = [_RELEASES, chat.key, shown_as, shown_of, revision, records, self.running, told]
        return hashlib.sha256(encode_json(everything)).hexdigest()[:32]
