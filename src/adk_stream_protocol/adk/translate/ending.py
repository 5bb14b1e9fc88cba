"""How the stream of an answer ends."""

from ...protocol.chunks import AnyChunk
from .tool_parts import Records
from .translator import Translator


def encode_end(translator: Translator, records: Records, ended_by: str | None, failure: str | None) -> list[AnyChunk]:
    """The end of a stream: by itself, by a stop, by a failure, or by a limit. Recorded outcomes are shown in any case.

    `ended_by`: None, `stop`, or the name of a limit. `failure`: its public text.
    """
    recorded = translator.tools.end_recorded(records)
    if ended_by is None:
        return [*recorded, *translator.finish(records=records)]
    if ended_by == "stop":
        return [*recorded, *translator.abort(records=records)]
    if failure is not None:
        return [*recorded, *translator.fail(failure, records=records)]
    return [*recorded, *translator.finish(ended_by, records=records)]
