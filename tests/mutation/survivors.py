"""Mutants that no test can tell from the original, each with the reason. Whatever else survives is a missing test."""

_ALWAYS_HAS_AN_ID = "ADK gives every call of a tool an id; the empty text is there for the type checker."
_ALWAYS_HAS_A_NAME = "A call that came to its tool has a name; the empty text is there for the type checker."

EQUIVALENT: dict[str, dict[str, str]] = {
    "gate": {
        "ApprovalGate._after_decision: decided is None -> False": (
            "Whoever takes up a call looks for its record again, and refuses in the same words where there is none."
        ),
        "ApprovalGate._after_tool: run is not None and run.live is not None -> (run.live is not None)": (
            "Without a run the question was refused two lines before; the condition is there for the type checker."
        ),
        "ApprovalGate._after_tool: dict(tool_context.actions.state_delta) -> (tool_context.actions.state_delta)": (
            "The state is written as JSON before anything else can change it."
        ),
        "ApprovalGate.on_tool_error_callback: None -> ('mutant')": (
            "Nobody but the run that is stopped holds the call, and no lease has that token."
        ),
        '_take_back_question: tool_context.function_call_id or "" -> (tool_context.function_call_id)': (
            _ALWAYS_HAS_AN_ID
        ),
        "_take_back_question: \"\" -> ('mutant')": _ALWAYS_HAS_AN_ID,
        'idempotency_key: found.name or "" -> (found.name)': _ALWAYS_HAS_A_NAME,
        "idempotency_key: \"\" -> ('mutant')": _ALWAYS_HAS_A_NAME,
    }
}
