"""One call, as the client knows it, and how it is shown where somebody else than the client's user decides."""

from dataclasses import dataclass

from ...protocol.call_record import CallKey, CallRecord
from ...protocol.chunks import AnyChunk
from ...protocol.stream import ChunkWriter
from .approval_card import card_of


@dataclass(slots=True)
class CallPart:
    """A call, as the client knows it."""

    wire_id: str
    call: CallKey
    outlives_run: bool = False
    """ADK leaves the call open when its run ends: somebody else answers it."""
    is_input_request: bool = False
    """A question of the agent's own, without a tool: there is no record of it before its answer."""
    approval_id: str | None = None
    """The id under which a person was asked about it."""
    is_servers: bool = False
    """A person was asked about it, or the policy, and the server runs it."""
    is_undecided: bool = False
    shown_version: int | None = None
    """The version of the record that the client was shown, where others decide."""
    is_known: bool = False
    """The client has the result: it sent it itself, or got it before."""


def show_others(writer: ChunkWriter, part: CallPart, record: CallRecord) -> list[AnyChunk]:
    """People other than the client's user decide about this call. The client shows how far they are."""
    out: list[AnyChunk] = []
    if part.shown_version is None:
        is_servers = record.executor == "server"
        part.is_undecided = part.is_servers = is_servers
        if is_servers and writer.tools.is_deferred(part.wire_id):
            out += writer.tools.to_server(part.wire_id, is_asked=True)
        out += writer.tools.others_are_asked(part.wire_id)
    return [*out, *show_chain(writer, part, record)]


def show_chain(writer: ChunkWriter, part: CallPart, record: CallRecord) -> list[AnyChunk]:
    """How far a chain is, if the client does not know it. It names its call, since there may be no request for an
    approval that would."""
    if record.chain is None or part.shown_version == record.version:
        return []
    part.shown_version = record.version
    return writer.data("approval", {"toolCallId": part.wire_id, **card_of(record)}, id=record.asked_as)


def show_automatic(writer: ChunkWriter, part: CallPart, record: CallRecord) -> list[AnyChunk]:
    """The policy has decided."""
    part.approval_id, part.is_servers = record.approval_id, record.executor == "server"
    out: list[AnyChunk] = []
    if part.is_servers and writer.tools.is_deferred(part.wire_id):
        out += writer.tools.to_server(part.wire_id, is_asked=True)
    out += writer.tools.approved_automatically(part.wire_id, record.approval_id or "")
    about = {"status": "approved", "by": "policy"}
    return [*out, *writer.data("approval", about, id=record.approval_id)]
