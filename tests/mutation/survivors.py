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
_AS_MANY = "Nobody adds or removes a call in between."
_NOT_USED = "What `pop` gives back is not used."
_NOT_CHANGED_MEANWHILE = "Nothing is added or taken away while it is gone through."
_ASKED_FIRST = "`advance` writes nothing where nothing moves; to ask first takes less time."
_SPARES_WORDS = "Without a call there is no id to change; to ask first spares each word a look at the session."
_NOBODYS_KEY = "No call has such a key: the ids of runs are ADK's own."
_LESS_MEMORY = "It takes less memory that way."
_CLASS_ALONE = "Of what goes wrong in a policy, only the class is logged."
_ONLY_AN_OUTPUT = "Without an approval's id only a browser's output counts, and only after the decision."
_NO_TWO_ALIKE = "No two of a session are alike: they differ in their names."
_NO_SUCH_NAME = "It is only compared, and no call has such an id and no tool such a name."
_FOR_READERS = "A name for whoever reads a list of tasks."
_ONLY_THE_CURRENT_ONE = "Only the current message grows, and nothing else is that."
_NO_CALL_IS_NONE = "No call is None; the condition is there for the type checker."


EQUIVALENT: dict[str, dict[str, str]] = {
    "approvals": {
        "CallRecord.waits_for: self.state is State.IN_CHAIN and self.chain -> (self.state is State.IN_CHAIN)": (
            _FOR_THE_TYPE_CHECKER
        ),
        "decide: \"now\" -> ('nowmutant')": "A seat that is neither `none` nor `past` may decide.",
        "_in_chain: record.chain or () -> (record.chain)": _FOR_THE_TYPE_CHECKER,
        'refuse: record.executor == "browser" and record.state is State.APPROVED -> '
        "(record.executor == 'browser')": "A call that has ended stays as it is, and a pending one was refused before.",
        "end_nested: not record.ends_with_run or record.is_final -> (not record.ends_with_run)": (
            "Neither `refuse` nor `give_up` moves a call that has ended."
        ),
    },
    "states": {
        "module: frozenset({State.PENDING, State.IN_CHAIN}) -> ({State.PENDING, State.IN_CHAIN})": _CHANGED_BY_NOBODY,
    },
    "chains": {
        "ChainLink: True -> (False) (2)": _NAMED_BY_ALL,
    },
    "call_ids": {
        'CallIds.rename_replaced: new_id or "" -> (new_id)': _FOR_THE_TYPE_CHECKER,
        "CallIds.rename_replaced: \"\" -> ('mutant')": _FOR_THE_TYPE_CHECKER,
        "CallIds.rename_replaced: strict=True -> **{}": _AS_MANY,
        "CallIds.rename_replaced: True -> (False)": _AS_MANY,
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
        "are_delivered: missing and any(event.actions.rewind_before_invocation_id for event in newest) -> "
        "(any((event.actions.rewind_before_invocation_id for event in newest)))": (
            "Where nothing is missing, nothing is looked for; not to load takes less time."
        ),
        "SessionCall: kw_only=True -> **{}": _NAMED_BY_ALL,
        "SessionCall: True -> (False) (3)": _NAMED_BY_ALL,
        '_Session._read_call: call.name or "" -> (call.name)': (
            "A call without a name is none of those that are looked for, whatever stands there."
        ),
        "_Session._read_call: \"\" -> ('mutant') (2)": (
            "A call without a name is none of those that are looked for, whatever stands there."
        ),
        "_asked_about: str(original.get(\"id\")) -> (original.get('id'))": (
            "ADK's ids are texts; a question without one is about no call."
        ),
        "note_stored: None -> ('mutant')": _NOT_USED,
        "note_unasked: unasked_among(leased.records.values(), ()) -> True": (
            "Where nothing waits, nothing is found; to ask first spares a walk through the session."
        ),
        '_input_request: call.name or "" -> (call.name)': ("The name is known: it was looked for."),
        "_input_request: \"\" -> ('mutant')": ("The name is known: it was looked for."),
    },
    "delivery": {
        "deliver_outcomes: list(leased.records.items()) -> (leased.records.items())": _NOT_CHANGED_MEANWHILE,
        "deliver_outcomes: nested -> True": "Without nested calls none is looked for; not to read takes less time.",
        "deliver_outcomes: found.state in (State.APPROVED, State.IN_CHAIN) and call_record.expire(found, "
        "now=leased.now) is not found -> (found.state in (State.APPROVED, State.IN_CHAIN))": _ASKED_FIRST,
    },
    "resumption": {
        'stopped_call_events: call.id or "" -> (call.id)': _ALWAYS_HAS_AN_ID,
        "stopped_call_events: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
        'lost_call_events: call.id or "" -> (call.id)': _ALWAYS_HAS_AN_ID,
        "lost_call_events: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
        '_stopped_call_event: call.name or "" -> (call.name)': _ALWAYS_HAS_A_NAME,
        "_stopped_call_event: \"\" -> ('mutant')": _ALWAYS_HAS_A_NAME,
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
        "GatedCall: False -> (True) (4)": _NOT_COMPARED,
        "GatedCall: kw_only=True -> **{}": _NAMED_BY_ALL,
        "GatedCall: True -> (False)": _NAMED_BY_ALL,
        "GatedCall._read_again: None -> ('mutant')": _NOT_USED,
        "GatedCall.ask_for_remote: approval_id=None -> **{}": "It is None where nobody says otherwise.",
        "GatedCall._question: dict(schema) -> (schema)": "It is written as JSON, whatever kind of mapping it is.",
        "GatedCall.lose: None -> ('mutant')": _NO_SUCH_TOKEN,
    },
    "call_parts": {
        "module: \"\" -> ('mutant')": _NOBODYS_KEY,
        "module: \"\" -> ('mutant') (2)": _NOBODYS_KEY,
        "CallParts._end_question: part.approval_id is None or not self._writer.tools.can_take_result(part.approval_id) "
        "-> (not self._writer.tools.can_take_result(part.approval_id))": _NO_CALL_IS_NONE,
        "CallParts.new_segment: dict(self._parts) -> (self._parts)": (
            "Whatever comes is put into both, and what goes is left out of a new dictionary."
        ),
        'CallParts._ask_as_recorded: record.approval_id or "" -> (record.approval_id)': _FOR_THE_TYPE_CHECKER,
        "CallParts._ask_as_recorded: \"\" -> ('mutant')": _FOR_THE_TYPE_CHECKER,
        "CallParts.new_segment: part.approval_id is not None and "
        "self._writer.tools.can_take_result(part.approval_id) -> "
        "(self._writer.tools.can_take_result(part.approval_id))": _NO_CALL_IS_NONE,
        "CallParts.result: part.is_known -> False": (
            "An output that the client has sent is recorded before its segment begins, and the record says the same."
        ),
    },
    "call_part": {
        "CallPart: slots=True -> **{}": _LESS_MEMORY,
        "CallPart: True -> (False)": _LESS_MEMORY,
        'show_automatic: record.approval_id or "" -> (record.approval_id)': _FOR_THE_TYPE_CHECKER,
        "show_automatic: \"\" -> ('mutant')": _FOR_THE_TYPE_CHECKER,
    },
    "answers": {
        "DecodedAnswers: frozen=True -> **{}": _CHANGED_BY_NOBODY,
        "DecodedAnswers: True -> (False)": _CHANGED_BY_NOBODY,
        "AnswerRequest: frozen=True -> **{}": _CHANGED_BY_NOBODY,
        "AnswerRequest: True -> (False)": _CHANGED_BY_NOBODY,
        "AnswerDecoder.decode: answer.result is not None -> True": (
            "Only outputs are compared; the others need not be read."
        ),
        "AnswerDecoder._changes: found.tool == REQUEST_INPUT -> True": "A store adds no record twice.",
        '_as_asked: call.record.executor == "browser" and call.record.is_decided -> '
        "(call.record.executor == 'browser' or call.record.is_decided)": _ONLY_AN_OUTPUT,
        '_as_asked: call.record.executor == "browser" and call.record.is_decided -> '
        "(call.record.is_decided)": _ONLY_AN_OUTPUT,
        '_as_asked: call.record.executor == "browser" and call.record.is_decided -> '
        "(call.record.executor == 'browser')": _ONLY_AN_OUTPUT,
        "_as_asked: is_browsers -> True": _ONLY_AN_OUTPUT,
        "_as_asked: None -> ('mutant')": "No approval has that id.",
        "_is_another_output: False -> None": "It is asked for its truth alone.",
    },
    "leases": {
        "ChatLeases._begin: None -> ('mutant')": (
            "`wait_for` has looked for a place already, and `begin` passes on nothing but a lease."
        ),
        "ChatLeases.wait_for: continue -> pass": (
            "`begin` gives nothing while the chat runs, and the next look finds out why."
        ),
        "ChatLeases.wait_for: chat not in self._places -> True": (
            "Nobody here begins between the look and the end of `begin`."
        ),
        "ChatLeases.take_over: asyncio.get_running_loop().time() >= give_up_at -> (asyncio.get_running_loop().time() "
        "> give_up_at)": ("No clock stands at the very end of a wait that long."),
        "_Place: eq=False -> **{}": _NOT_COMPARED,
        "_Place: False -> (True)": _NOT_COMPARED,
        'ChatLeases._lose: name="adk-stream lost run" -> **{}': _FOR_READERS,
        "ChatLeases._lose: \"adk-stream lost run\" -> ('adk-stream lost runmutant')": _FOR_READERS,
    },
    "leased_calls": {
        "LeasedCalls.clean_up_lost: list(leased.records.items()) -> (leased.records.items())": _NOT_CHANGED_MEANWHILE,
        "LeasedCalls.clean_up_lost: reduce(lambda record, move: move(record, leased.now), moves, found) is not found "
        "-> True": _ASKED_FIRST,
        "LeasedCalls.clean_up_lost: lambda record, move: move(record, leased.now) -> (lambda record, move: None)": (
            _ASKED_FIRST
        ),
        "LeasedCalls._end_nested: list(leased.records.items()) -> (leased.records.items())": _NOT_CHANGED_MEANWHILE,
        "LeasedCalls._end_nested: None -> ('mutant')": _NO_SUCH_TOKEN,
        'LeasedCalls._give_up: found is None or found.executor != "server" or found.state not in (State.APPROVED, '
        "State.CLAIMED) -> (found is None or found.state not in (State.APPROVED, State.CLAIMED))": (
            "The table gives up calls of the server's alone."
        ),
        "LeasedCalls.end_run: set(answered) -> (answered)": "What was answered is a set already.",
        "LeasedCalls._give_up: None -> ('mutant')": _NO_SUCH_TOKEN,
        "LeasedCalls.end_not_run: None -> ('mutant')": _NO_SUCH_TOKEN,
    },
    "gate": {
        "ApprovalGate.after_model_callback: not any(part.function_call for part in parts or ()) -> False": (
            _SPARES_WORDS
        ),
        "ApprovalGate.after_model_callback: any(part.function_call for part in parts or ()) -> "
        "((part.function_call for part in parts or ()))": _SPARES_WORDS,
        "ApprovalGate.on_event_callback: leased.live_observer is not None and is_all_voice(event) -> False": (
            "Nothing else is found in such an event, and it is routed all the same; to ask first spares time."
        ),
        "ApprovalGate.on_event_callback: leased.live_observer is None and is_more_text(event) -> False": (
            "The other steps find nothing in one more piece of a text; to ask first spares time."
        ),
        "ApprovalGate.on_event_callback: \"\" -> ('mutant')": "Nobody reads what a remote tool is said to do.",
        "ApprovalGate._verdict: self.policy.decide is None or is_control_flow or type(tool) is BaseTool -> "
        "(is_control_flow or type(tool) is BaseTool)": "`verdict` asks that, too; to ask first spares it a copy.",
    },
    "ends_of_agents": {
        "leave_out_mark: not event.actions.end_of_agent or context.resumability_config is not resumable() -> "
        "(context.resumability_config is not resumable())": (
            "An event without the mark says more than a mark, or nothing; to ask first spares time."
        ),
    },
    "live_gate": {
        "ask_if_needed: True -> (False)": "Whom the policy names is asked, whatever the tool says.",
        "notify_begun: None -> ('mutant') (2)": _NOT_USED,
        'run_again: tool_context.function_call_id or "" -> (tool_context.function_call_id)': _ALWAYS_HAS_AN_ID,
        "run_again: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
        "_take_up_when_approved: decided is None -> False": (
            "Whoever takes up a call looks for its record again, and refuses in the same words where there is none."
        ),
    },
    "unanswerable": {
        'withdraw_question: tool_context.function_call_id or "" -> (tool_context.function_call_id)': _ALWAYS_HAS_AN_ID,
        "withdraw_question: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
    },
    "long_running": {
        "call_ref: b\"=\" -> (b'=mutant')": "A bracket is encoded last: that ends in none of these letters.",
        "open_work: work_key(call.key) -> (call.key)": "Only the store's time is read.",
    },
    "live_messages": {
        "module: frozenset({Phase.OPEN, Phase.ENDED}) -> ({Phase.OPEN, Phase.ENDED})": _CHANGED_BY_NOBODY,
        "module: frozenset({Phase.OPEN, Phase.WAITING, Phase.ENDED}) -> ({Phase.OPEN, Phase.WAITING, Phase.ENDED})": (
            _CHANGED_BY_NOBODY
        ),
        "module: frozenset({Phase.WAITING, Phase.ENDED}) -> ({Phase.WAITING, Phase.ENDED})": _CHANGED_BY_NOBODY,
        "module: frozenset({Phase.OPEN, Phase.ENDED}) -> ({Phase.OPEN, Phase.ENDED}) (2)": _CHANGED_BY_NOBODY,
        "module: frozenset({Phase.OPEN, Phase.WAITING}) -> ({Phase.OPEN, Phase.WAITING})": _CHANGED_BY_NOBODY,
        "Call: None -> ('mutant') (2)": "Only calls that ADK has no event of are made without it, and those have none.",
        "Call: None -> ('mutant') (3)": "A response is read only of calls that have one.",
        "Call: eq=False -> **{}": _NO_TWO_ALIKE,
        "Call: False -> (True) (4)": _NO_TWO_ALIKE,
        "Call: slots=True -> **{}": _LESS_MEMORY,
        "Call: True -> (False) (2)": _LESS_MEMORY,
        "Message: True -> (False)": "Whoever makes one says whether it awaits words.",
        "Message: eq=False -> **{}": _NO_TWO_ALIKE,
        "Message: False -> (True) (2)": _NO_TWO_ALIKE,
        "Message: slots=True -> **{}": _LESS_MEMORY,
        "Message: True -> (False) (2)": _LESS_MEMORY,
    },
    "live_routes": {
        "Place: frozen=True -> **{}": _CHANGED_BY_NOBODY,
        "Place: True -> (False) (2)": _CHANGED_BY_NOBODY,
        "Place: slots=True -> **{}": _LESS_MEMORY,
        "Place: True -> (False) (3)": _LESS_MEMORY,
        "Routes.__init__: False -> (True) (2)": (
            "It is asked of the last message that the model spoke in. Before the first word there is none, and no call "
            "that a result could come of."
        ),
        "Routes._take_results: owner is not None and owner is not self.current and self.current is self.last and "
        "self._is_saying -> (owner is not self.current and self.current is self.last and self._is_saying)": (
            "Without an owner there is no current message, either; the condition is there for the type checker."
        ),
        "Routes._is_new: bool(event.calls) -> (event.calls)": "It is asked for its truth alone.",
    },
    "live_segments": {
        "LiveSegments.voice_emitted: None -> ('mutant')": _ONLY_THE_CURRENT_ONE,
        "LiveSegments.more_said: None -> ('mutant')": _ONLY_THE_CURRENT_ONE,
    },
    "live_turns": {
        "LiveTurns._waits: fact.outer is not None -> True": _NO_CALL_IS_NONE,
        "LiveTurns._waits: call.inside is not None -> True": _NO_CALL_IS_NONE,
    },
    "policy": {
        "ApprovalRequest: kw_only=True -> **{}": _NAMED_BY_ALL,
        "ApprovalRequest: True -> (False) (2)": _NAMED_BY_ALL,
        "ApprovalPolicy: kw_only=True -> **{}": _NAMED_BY_ALL,
        "ApprovalPolicy: True -> (False) (2)": _NAMED_BY_ALL,
        "_for_call: TypeError(f\"not a {kind.__name__}\") -> (f'not a {kind.__name__}')": (
            "To raise a text is a TypeError, too."
        ),
        "_for_call: f\"not a {kind.__name__}\" -> ('mutant')": _CLASS_ALONE,
        "CardField: False -> (True)": _FOR_THE_TYPE_CHECKER_ALONE,
        "Card: False -> (True)": _FOR_THE_TYPE_CHECKER_ALONE,
        '_verdict: TypeError("a policy returns Nobody, Owner or a Chain") -> '
        "('a policy returns Nobody, Owner or a Chain')": "To raise a text is a TypeError, too.",
        '_verdict: "a policy returns Nobody, Owner or a Chain" -> '
        "('a policy returns Nobody, Owner or a Chainmutant')": _CLASS_ALONE,
        "_verdict: \"a chain without links\" -> ('a chain without linksmutant')": _CLASS_ALONE,
        "_recorded_link: \"a link without approvers\" -> ('a link without approversmutant')": _CLASS_ALONE,
    },
    "client_answers": {
        "AskedCall: kw_only=True -> **{}": _NAMED_BY_ALL,
        "AskedCall: True -> (False) (2)": _NAMED_BY_ALL,
        "module: bound=AskedCall -> **{}": _FOR_THE_TYPE_CHECKER_ALONE,
        "CallAnswer: frozen=True -> **{}": _CHANGED_BY_NOBODY,
        "CallAnswer: True -> (False)": _CHANGED_BY_NOBODY,
        "CallAnswer: kw_only=True -> **{}": _NAMED_BY_ALL,
        "CallAnswer: True -> (False) (2)": _NAMED_BY_ALL,
        "decode_answers: call.approval_id is not None -> True": "What is looked for there is always a text.",
        "_tool_name: _text(part.get(\"toolName\")) -> (part.get('toolName'))": _NO_SUCH_NAME,
        "_tool_name: None -> ('mutant')": _NO_SUCH_NAME,
        "_text: \"\" -> ('mutant')": _NO_SUCH_NAME,
    },
    "idempotency": {
        'idempotency_key: found.name or "" -> (found.name)': _ALWAYS_HAS_A_NAME,
        "idempotency_key: \"\" -> ('mutant')": _ALWAYS_HAS_A_NAME,
    },
}
