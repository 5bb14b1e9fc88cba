"""The chunks of a UI message stream, one frozen struct per kind, and their JSON.

Field for field the schema of `ai` 6.0.0, the strictest release that is still served: an unknown field on a known
chunk ends the whole response there, and so does a JSON null in an optional field. Optional fields are therefore left
out when unset. Fields that newer releases added are marked. `ChunkWriter` decides what a version gets.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

import msgspec

SdkVersion = Literal[5, 6, 7]
FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]
ProviderMetadata = dict[str, dict[str, Any]]


class Chunk(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type"):
    """Base of all chunks; the tag is the wire's `type`."""


class Start(Chunk, frozen=True, tag="start"):
    message_id: str | None = None
    message_metadata: dict[str, Any] | None = None


class StartStep(Chunk, frozen=True, tag="start-step"):
    pass


class FinishStep(Chunk, frozen=True, tag="finish-step"):
    pass


class Finish(Chunk, frozen=True, tag="finish"):
    finish_reason: FinishReason | None = None
    message_metadata: dict[str, Any] | None = None


class Abort(Chunk, frozen=True, tag="abort"):
    pass


class Error(Chunk, frozen=True, tag="error"):
    error_text: str


class MessageMetadata(Chunk, frozen=True, tag="message-metadata"):
    message_metadata: dict[str, Any]


class TextStart(Chunk, frozen=True, tag="text-start"):
    id: str
    provider_metadata: ProviderMetadata | None = None


class TextDelta(Chunk, frozen=True, tag="text-delta"):
    id: str
    delta: str


class TextEnd(Chunk, frozen=True, tag="text-end"):
    id: str
    provider_metadata: ProviderMetadata | None = None
    citations: list[dict[str, Any]] | None = None  # 7 only


class ReasoningStart(Chunk, frozen=True, tag="reasoning-start"):
    id: str
    provider_metadata: ProviderMetadata | None = None


class ReasoningDelta(Chunk, frozen=True, tag="reasoning-delta"):
    id: str
    delta: str


class ReasoningEnd(Chunk, frozen=True, tag="reasoning-end"):
    id: str
    provider_metadata: ProviderMetadata | None = None


class ToolInputStart(Chunk, frozen=True, tag="tool-input-start"):
    tool_call_id: str
    tool_name: str
    provider_executed: bool | None = None
    dynamic: bool | None = None


class ToolInputDelta(Chunk, frozen=True, tag="tool-input-delta"):
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailable(Chunk, frozen=True, tag="tool-input-available"):
    tool_call_id: str
    tool_name: str
    input: Any
    provider_executed: bool | None = None
    provider_metadata: ProviderMetadata | None = None
    dynamic: bool | None = None


class ToolInputError(Chunk, frozen=True, tag="tool-input-error"):
    tool_call_id: str
    tool_name: str
    input: Any
    error_text: str
    provider_executed: bool | None = None
    dynamic: bool | None = None


class ToolOutputAvailable(Chunk, frozen=True, tag="tool-output-available"):
    tool_call_id: str
    output: Any
    provider_executed: bool | None = None
    dynamic: bool | None = None
    preliminary: bool | None = None


class ToolOutputError(Chunk, frozen=True, tag="tool-output-error"):
    tool_call_id: str
    error_text: str
    provider_executed: bool | None = None
    dynamic: bool | None = None


class ToolOutputDenied(Chunk, frozen=True, tag="tool-output-denied"):  # 6 and 7
    tool_call_id: str


class ToolApprovalRequest(Chunk, frozen=True, tag="tool-approval-request"):  # 6 and 7
    approval_id: str
    tool_call_id: str
    reason: str | None = None  # 7 only
    approval_descriptor: dict[str, Any] | None = None  # 7 only
    is_automatic: bool | None = None  # 7 only


class ToolApprovalResponse(Chunk, frozen=True, tag="tool-approval-response"):  # 7 only
    approval_id: str
    approved: bool


class SourceUrl(Chunk, frozen=True, tag="source-url"):
    source_id: str
    url: str
    title: str | None = None


class SourceDocument(Chunk, frozen=True, tag="source-document"):
    source_id: str
    media_type: str
    title: str
    filename: str | None = None


class File(Chunk, frozen=True, tag="file"):
    url: str
    media_type: str


class ReasoningFile(Chunk, frozen=True, tag="reasoning-file"):  # 7 only
    url: str
    media_type: str


class Data(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A `data-*` part: the only chunk whose type is open. With an id it replaces what has the same type and id."""

    type: str
    data: Any
    id: str | None = None
    transient: bool | None = None
    """Whether the client may forget it when it has seen it."""


AnyChunk = Chunk | Data


def _as_json(value: Any) -> Any:
    """What tools return beside JSON: Pydantic models as their own JSON, the rest as text."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if callable(dump) else str(value)


_encode = msgspec.json.Encoder(enc_hook=_as_json).encode


def encode_chunks(chunks: Sequence[AnyChunk]) -> list[bytes]:
    if len(chunks) == 1:  # nearly always, and the rest would cost more than the encoding
        try:
            return [_encode(chunks[0])]
        except Exception:
            return [encode_json(chunks[0])]
    return [encode_json(chunk) for chunk in chunks]


def encode_json(value: Any) -> bytes:
    """A chunk, or any other value that a tool returned. Never fails: what JSON or UTF-8 cannot express is replaced."""
    try:
        return _encode(value)
    except Exception:
        return _encode(_printable(value, ()))


def plain_json(value: Any, *, is_cut: bool = False) -> Any:
    """What a reader of `encode_json` gets. `is_cut`: where it is nested deep."""
    return msgspec.json.decode(_encode(_printable(value, ())) if is_cut else encode_json(value))


class DeltaEncoder:
    """Encodes the deltas of one part. Only their texts differ, so the rest is encoded once."""

    __slots__ = ("_before",)

    def __init__(self, delta: type[TextDelta] | type[ReasoningDelta], part_id: str) -> None:
        self._before = encode_json(delta(part_id, "")).removesuffix(b'""}')

    def encode(self, text: str) -> bytes:
        return self._before + encode_json(text) + b"}"


_MAX_DEPTH = 100  # V8 and zod accept more, but no tool result that a person reads is that deep


def _printable(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and value.bit_length() > 1024:
        return "<int>"
    if value is None or isinstance(value, int | float):
        return value
    if len(inside) > _MAX_DEPTH or id(value) in inside:
        return "..."
    inside = (*inside, id(value))
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        copied = {name: _printable(field, inside) for name, field in fields.items()}
        return type(value)(**copied)
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value)
        return {_printable(_key(key), inside): _printable(item, inside) for key, item in items.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_printable(member, inside) for member in cast(Iterable[Any], value)]
    return _printable(_safely(value), inside)


def _key(key: Any) -> str:
    try:
        return str(key)
    except Exception:
        return f"<{type(key).__name__}>"


def _safely(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value, enc_hook=_as_json)
    except Exception:  # a value whose own text fails must not end somebody's stream
        return f"<{type(value).__name__}>"
