"""Mutants that no test can tell from the original, each with the reason. Whatever else survives is a missing test."""

_ALWAYS_HAS_AN_ID = "ADK gives every call of a tool an id; the empty text is there for the type checker."
_ALWAYS_HAS_A_NAME = "A call that came to its tool has a name; the empty text is there for the type checker."
_FOR_THE_TYPE_CHECKER = "It is never None here; the type checker cannot know."
_FOR_THE_TYPE_CHECKER_ALONE = "Only the type checker looks at it."
_NOT_COMPARED = "Nobody compares one with another."
_NAMED_BY_ALL = "Whoever makes one names its fields."
_CHANGED_BY_NOBODY = "It says that nobody changes one; and nobody does."
_NO_ALIAS = "None of the fields that it has is called otherwise on the wire."
_NO_SUCH_TOKEN = "No lease has that token: the run that holds the call is gone either way."
_NOT_USED = "What `pop` gives back is not used."
_NOT_CHANGED_MEANWHILE = "Nothing is added or taken away while it is gone through."
_FOR_READERS = "A name for whoever reads a list of tasks."


EQUIVALENT: dict[str, dict[str, str]] = {
    "approvals": {
        'refuse: record.executor == "browser" and record.state is State.APPROVED -> '
        "(record.executor == 'browser')": "A call that has ended stays as it is, and a pending one was refused before.",
        "end_nested: not record.is_nested or record.is_final -> (not record.is_nested)": (
            "Neither `refuse` nor `give_up` moves a call that has ended."
        ),
    },
    "call_ids": {
        "CallIds.new_model_call: None -> ('mutant')": _NOT_USED,
        "CallIds.rename_repeated: None -> ('mutant')": (
            "A response without content is left alone before its parts are looked at."
        ),
        "CallIds.rename_repeated: response.content is None or not any(part.function_call and part.function_call.id "
        "for part in parts) -> (not any((part.function_call and part.function_call.id for part in parts)))": (
            "Without content there are no parts; the condition is there for the type checker."
        ),
        "CallIds._read_session: call.id -> True": (
            "A call without an id is given none, so that nobody asks whether None is taken."
        ),
    },
    "seals": {
        'seal_as_recorded: str(as_dict(as_dict(call.args).get("originalFunctionCall")).get("id")) -> '
        "(as_dict(as_dict(call.args).get('originalFunctionCall')).get('id'))": (
            "ADK's ids are texts; a question without one is about no call."
        ),
    },
    "session_calls": {
        "SessionCall: kw_only=True -> **{}": _NAMED_BY_ALL,
        "SessionCall: True -> (False) (3)": _NAMED_BY_ALL,
        '_Session._read_call: call.name or "" -> (call.name)': (
            "A call without a name is none of those that are looked for, whatever stands there."
        ),
        "_Session._read_call: \"\" -> ('mutant') (2)": (
            "A call without a name is none of those that are looked for, whatever stands there."
        ),
        "_Session._read_call: str(original.get(\"id\")) -> (original.get('id'))": (
            "ADK's ids are texts; a question without one is about no call."
        ),
        '_input_request: call.name or "" -> (call.name)': ("The name is known: it was looked for."),
        "_input_request: \"\" -> ('mutant')": ("The name is known: it was looked for."),
    },
    "resumption": {
        "Resumption: frozen=True -> **{}": _CHANGED_BY_NOBODY,
        "Resumption: True -> (False)": _CHANGED_BY_NOBODY,
        "question_events: by_alias=True -> **{}": _NO_ALIAS,
        "question_events: True -> (False) (2)": _NO_ALIAS,
        "question_events: by_alias=True -> **{} (2)": _NO_ALIAS,
        "question_events: True -> (False) (3)": _NO_ALIAS,
        'question_events: call.approval_id or "" -> (call.approval_id)': _FOR_THE_TYPE_CHECKER,
        "question_events: \"\" -> ('mutant') (2)": _FOR_THE_TYPE_CHECKER,
    },
    "leased_chat": {
        'call_keys: tool_context.function_call_id or "" -> (tool_context.function_call_id)': _ALWAYS_HAS_AN_ID,
        "call_keys: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
    },
    "gated_call": {
        "module: TypeVar(\"_T\") -> ('_T')": _FOR_THE_TYPE_CHECKER_ALONE,
        "GatedCall: eq=False -> **{}": _NOT_COMPARED,
        "GatedCall: False -> (True) (3)": _NOT_COMPARED,
        "GatedCall: kw_only=True -> **{}": _NAMED_BY_ALL,
        "GatedCall: True -> (False)": _NAMED_BY_ALL,
        "GatedCall._read_again: None -> ('mutant')": _NOT_USED,
        "GatedCall.lose: None -> ('mutant')": _NO_SUCH_TOKEN,
    },
    "call_parts": {
        "CallParts.settle: list(self._parts.values()) -> (self._parts.values())": _NOT_CHANGED_MEANWHILE,
        "CallParts.end_recorded: list(self._parts.values()) -> (self._parts.values())": _NOT_CHANGED_MEANWHILE,
        'CallParts._ask_as_recorded: record.approval_id or "" -> (record.approval_id)': _FOR_THE_TYPE_CHECKER,
        "CallParts._ask_as_recorded: \"\" -> ('mutant')": _FOR_THE_TYPE_CHECKER,
        "CallParts.new_segment: part.approval_id is not None and "
        "self._writer.tools.can_take_result(part.approval_id) -> "
        "(self._writer.tools.can_take_result(part.approval_id))": (
            "No call is None; the condition is there for the type checker."
        ),
        "CallParts.recorded_end: None -> ('mutant')": ("Without a part nothing is told, whatever the record."),
        "CallParts.recorded_end: part is None or record is None or not record.is_final -> (record is None or not "
        "record.is_final)": ("Without a part there is no record; the condition is there for the type checker."),
    },
    "leases": {
        "ChatLeases.wait_for: continue -> pass": (
            "`begin` gives nothing while the chat runs, and the next look finds out why."
        ),
        "ChatLeases.wait_for: chat not in self._places -> True": (
            "Nobody here begins between the look and the end of `begin`."
        ),
        "ChatLeases.take_over: asyncio.get_running_loop().time() >= give_up_at -> (asyncio.get_running_loop().time() "
        "> give_up_at)": ("No clock stands at the very end of a wait that long."),
        'ChatLeases._lose: name="adk-stream lost run" -> **{}': _FOR_READERS,
        "ChatLeases._lose: \"adk-stream lost run\" -> ('adk-stream lost runmutant')": _FOR_READERS,
    },
    "leased_calls": {
        "LeasedCalls.clean_up_lost: list(leased.records.items()) -> (leased.records.items())": _NOT_CHANGED_MEANWHILE,
        "LeasedCalls.clean_up_lost: expire(lose(found, leased.now), leased.now) is not found -> True": (
            "`advance` writes nothing where nothing moves; to ask first takes less time."
        ),
        "LeasedCalls.take_back: refuse(leased.records[call], leased.now) is not leased.records[call] -> True": (
            "`advance` writes nothing where nothing moves; to ask first takes less time."
        ),
        'LeasedCalls._give_up: found is None or found.executor != "server" or found.state not in (State.APPROVED, '
        "State.CLAIMED) -> (found is None or found.state not in (State.APPROVED, State.CLAIMED))": (
            "The table gives up calls of the server's alone."
        ),
        "LeasedCalls._give_up: None -> ('mutant')": _NO_SUCH_TOKEN,
    },
    "gate_steps": {
        "record_result: dict(tool_context.actions.state_delta) -> (tool_context.actions.state_delta)": (
            "The state is written as JSON before anything else can change it."
        ),
    },
    "live_gate": {
        "_take_up_when_approved: decided is None -> False": (
            "Whoever takes up a call looks for its record again, and refuses in the same words where there is none."
        ),
    },
    "unanswerable": {
        'withdraw_question: tool_context.function_call_id or "" -> (tool_context.function_call_id)': _ALWAYS_HAS_AN_ID,
        "withdraw_question: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
    },
    "idempotency": {
        'idempotency_key: found.name or "" -> (found.name)': _ALWAYS_HAS_A_NAME,
        "idempotency_key: \"\" -> ('mutant')": _ALWAYS_HAS_A_NAME,
    },
}
