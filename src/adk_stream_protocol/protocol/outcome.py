"""The outcomes of calls, for a client that asks again: a second tab, a retry, a replay."""

from collections.abc import Iterable

from .chunks import (
    AnyChunk,
    Finish,
    FinishStep,
    Start,
    StartStep,
    ToolOutputAvailable,
    ToolOutputDenied,
    ToolOutputError,
)
from .fold import Part, UIMessage

OPEN_STATES = ("approval-requested", "approval-responded", "input-available")


def encode_outcome(
    message: UIMessage, message_id: str, call_ids: Iterable[str], others: Iterable[AnyChunk] = ()
) -> list[AnyChunk]:
    """A segment that has only the outcomes. `others`: the results of calls that are not in the message any more, and
    how far chains are."""
    out = [Start(message_id), *results_of(message, call_ids), *others]
    is_open = [part.get("state") in OPEN_STATES for part in message["parts"]]
    steps = [place for place, part in enumerate(message["parts"]) if part["type"] == "step-start"]
    if any(is_open[steps[-1] if steps else 0 :]):
        return [*out, Finish("tool-calls")]
    # The empty step keeps the stock tool helper from sending again; it counts only if something is written after it.
    return [*out, StartStep(), FinishStep(), Finish("stop", {})]


def results_of(message: UIMessage, call_ids: Iterable[str]) -> list[AnyChunk]:
    """The calls' results, as the client should have them. A denial that waits for other calls is none yet."""
    parts: dict[str, Part] = {part["toolCallId"]: part for part in message["parts"] if "toolCallId" in part}
    results: list[AnyChunk] = []
    for call_id in call_ids:
        part = parts.get(call_id, {})
        match part.get("state"):
            case "output-available":
                results.append(ToolOutputAvailable(call_id, part["output"], preliminary=part.get("preliminary")))
            case "output-error":
                results.append(ToolOutputError(call_id, part["errorText"]))
            case "output-denied":
                results.append(ToolOutputDenied(call_id))
            case _:
                pass
    return results
