"""What an application's `prepare` hook chooses for one turn."""

from collections.abc import Collection
from typing import Any, TypedDict, cast

from ..adk.run_config import decode_changes, encode_changes
from ..protocol.messages import ApprovalStyle


class Prepared(TypedDict, total=False):
    """What a `prepare` hook may set for one turn."""

    state_delta: dict[str, Any]
    """Session state to write with the user's message."""
    run_config: dict[str, Any]
    """Fields of ADK's `RunConfig` to change."""
    custom_metadata: dict[str, Any]
    """Stored by ADK with every event of the run."""
    send_state: Collection[str]
    """Keys of the session's state whose changes the client sees as `data-adk-state`. None by default."""
    send_nodes: bool
    """Whether the client sees outputs and routes of workflow nodes as `data-adk-node`."""


def encode_prepared(prepared: Prepared) -> Any:
    """As a call's record stores it, for a worker that continues the call without its request. The state is not needed:
    it is in the session."""
    kept: dict[str, Any] = {
        "run_config": encode_changes(prepared.get("run_config") or {}),
        "custom_metadata": prepared.get("custom_metadata"),
        "send_state": sorted(prepared.get("send_state", ())),
        "send_nodes": prepared.get("send_nodes"),
    }
    return {name: value for name, value in kept.items() if value} or None


def decode_prepared(kept: Any) -> Prepared:
    if not isinstance(kept, dict):
        return {}
    found = cast(dict[str, Any], kept)
    if "run_config" in found:
        found = {**found, "run_config": decode_changes(found["run_config"])}
    return cast(Prepared, found)


def presentation(prepared: Prepared, approval_style: ApprovalStyle | None) -> dict[str, Any]:
    """How an answer is shown, as fields of its `MessageIds`: the history shows it in the same way."""
    send_state = sorted(prepared.get("send_state", ()))
    return {
        "approval_style": approval_style,
        "send_state": send_state or None,
        "send_nodes": prepared.get("send_nodes") or None,
    }
