"""How a run ends, in both modes: what the session keeps of an unfinished answer, and what the log says of a failure."""

import logging
from contextlib import suppress

from google.adk.events import Event
from google.genai import types

from ..protocol.call_record import NotAllowed, State, lose_run
from ..store.base import advance
from .run import RunContext
from .session import MessageIds
from .translate.translator import Translator
from .versions import PLUGINS_SEE_CANCELLED_TOOLS

logger = logging.getLogger(__name__)


def unfinished_events(translator: Translator, ids: MessageIds, invocation_id: str, root_author: str) -> list[Event]:
    """What the client has seen of an answer and ADK has not stored, and why the answer ended."""
    half_said = translator.half_said()
    if ids.ended_by is not None and not half_said:
        half_said.append((root_author, None, []))  # for the reason alone
    return [
        Event(
            author=author,
            branch=branch,
            invocation_id=invocation_id,
            content=types.Content(role="model", parts=parts) if parts else None,
            custom_metadata=ids.metadata(),
        )
        for author, branch, parts in half_said
    ]


async def append_if_leased(context: RunContext, events: list[Event], segment: str, *, has_failed: bool) -> bool:
    """False if a run that has failed may not write into the session any more."""
    try:
        if has_failed and not await still_has_lease(context):
            return False
        if not PLUGINS_SEE_CANCELLED_TOOLS:
            await _lose_cut_calls(context)
        await context.chat.append(events)
    except Exception as error:  # the session is gone or busy: the stream must end all the same
        log_failure(error, segment)
    return True


async def _lose_cut_calls(context: RunContext) -> None:
    """What the gate does as soon as a tool is cancelled, if ADK says so."""
    leased = context.leased
    for call, record in list(leased.records.items()):
        if record.state is State.STARTED and record.lease_token == leased.lease.token:
            with suppress(NotAllowed):  # it has ended meanwhile
                leased.records[call] = await advance(
                    context.store, leased.key, call, lambda found, _: lose_run(found, living_run=None)
                )


async def still_has_lease(context: RunContext) -> bool:
    """Whether a run that failed may write into the session. A process that stood still for a while has lost its lease
    without notice: then another worker goes on with the chat, and that is why ADK could store nothing."""
    try:
        return await context.store.renew(context.leased.lease, context.limits.lease_s)
    except Exception:  # the store is down: no other worker can have taken the lease since the last renewal
        return True


def log_failure(error: Exception, segment: str) -> None:
    """Where a run failed, without its text: texts of exceptions quote prompts, arguments and keys."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "unknown"
    logger.error("run %s failed: %s at %s%s", segment, type(error).__qualname__, where, _what_to_do(error))
    logger.debug("details of run %s", segment, exc_info=error)


def _what_to_do(error: Exception) -> str:
    """The first failure of most newcomers, at the end of two long tracebacks of ADK's."""
    if isinstance(error, ValueError) and str(error).startswith("No API key was provided"):
        return ". Gemini needs a key: set GOOGLE_API_KEY before the server starts"
    return ""
