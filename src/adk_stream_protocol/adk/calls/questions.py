"""ADK's own questions: they get the ids that are recorded for them, so that the record says what people were asked."""

from google.adk.events import Event

from ...protocol.answers import CONFIRMATION
from ...protocol.call_record import CallKey, Records
from ..event_parts import as_dict, is_frameworks_own

REQUIRES_CONFIRMATION = "This tool call requires confirmation, please approve or reject."


def name_questions(event: Event, records: Records) -> None:
    """Give ADK's questions their recorded ids, before the event is stored or seen by anybody."""
    for call in event.get_function_calls():
        if call.name != CONFIRMATION or not is_frameworks_own(event, call):
            continue
        original = as_dict(as_dict(call.args).get("originalFunctionCall"))
        record = records.get(CallKey(event.invocation_id, str(original.get("id"))))
        if record is not None and record.question_id is not None and call.id is not None:
            event.long_running_tool_ids = {*(event.long_running_tool_ids or ())} - {call.id} | {record.question_id}
            call.id = record.question_id
