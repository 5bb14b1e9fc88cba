"""What is mutated, and the tests that are to notice."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Target(NamedTuple):
    module: str
    tests: Sequence[str]
    package: Path = ROOT / "src" / "adk_stream_protocol"

    def file_in(self, parent: Path) -> Path:
        return parent.joinpath(*self.module.split(".")).with_suffix(".py")


GATE_TESTS = [
    "tests/adk/test_unanswerable_tasks.py",
    "tests/adk/test_gate_steps.py",
    "tests/adk/test_gate_callbacks.py",
    "tests/adk/test_gate_chats.py",
    "tests/adk/test_gate_verdicts.py",
    "tests/live/test_live_gate_steps.py",
    "tests/adk/test_gate.py",
    "tests/adk/test_gate_record.py",
    "tests/adk/test_gate_failures.py",
    "tests/adk/test_gate_plugins.py",
    "tests/adk/test_unanswerable_nodes.py",
    "tests/adk/test_policy_decides.py",
    "tests/adk/test_repeated_call_ids.py",
    "tests/adk/test_inner_waits.py",
    "tests/adk/test_gated_nodes.py",
    "tests/adk/test_remote_calls.py",
]

LIVE_GATE_TESTS = [
    *GATE_TESTS,
    "tests/adk/test_client_tools.py",
    "tests/live/test_live_approvals.py",
    "tests/live/test_live_tool_kinds.py",
    "tests/live/test_live_tools_beside.py",
    "tests/live/test_live_agents.py",
    "tests/live/test_live_browser_tools.py",
    "tests/live/test_live_refusals.py",
    "tests/live/test_live_gate.py",
    "tests/live/test_live_agent_tools.py",
    "tests/live/test_live_draining.py",
    "tests/live/test_live_superseded.py",
    "tests/live/test_live_withdrawn.py",
    "tests/live/test_live_chains.py",
    "tests/live/test_live_work.py",
    "tests/adk/test_request_run.py",
    "tests/chat/test_answers_forms.py",
    "tests/chat/test_answers_stopped.py",
    "tests/chat/test_consents.py",
    "tests/adk/test_consent_and_approval.py",
    "tests/chat/test_service_draining.py",
    "tests/chat/test_service_draining_races.py",
]

RECORD_TESTS = [
    "tests/protocol/test_call_record.py",
    "tests/protocol/test_call_record_guards.py",
    "tests/protocol/test_call_record_work.py",
    "tests/protocol/test_call_record_explored.py",
    "tests/protocol/test_approval_chain.py",
    "tests/protocol/test_approval_chain_explored.py",
]

CALL_PART_TESTS = [
    "tests/adk/test_call_parts.py",
    "tests/adk/test_call_parts_results.py",
    "tests/adk/test_call_parts_others.py",
    "tests/adk/test_inner_waits_beside.py",
    "tests/chat/test_completions_stopped.py",
]

_EXPLORED = "tests/protocol/test_live_turns_explored.py"
# Not those that plant mistakes themselves: what a mutant does is found without them, in less time.
LIVE_TABLE_TESTS = [
    "tests/protocol/test_live_turns.py",
    "tests/protocol/test_live_turns_segments.py",
    "tests/protocol/test_live_turns_words.py",
    "tests/protocol/test_live_turns_answered.py",
    "tests/protocol/test_live_turns_events.py",
    "tests/protocol/test_live_turns_gate.py",
    "tests/protocol/test_live_taken_back.py",
    "tests/protocol/test_live_routes.py",
    "tests/protocol/test_live_routes_results.py",
    "tests/live/test_live_turns.py",
    f"{_EXPLORED}::test_no_order_of_facts_breaks_a_promise",
]

TARGETS = {
    "approvals": Target("adk_stream_protocol.protocol.call_record", RECORD_TESTS),
    "states": Target("adk_stream_protocol.protocol.call_states", RECORD_TESTS),
    "call_keys": Target("adk_stream_protocol.protocol.call_keys", RECORD_TESTS),
    "chains": Target(
        "adk_stream_protocol.protocol.approval_chain",
        ["tests/protocol/test_approval_chain.py", "tests/protocol/test_approval_chain_explored.py"],
    ),
    "digest": Target(
        "adk_stream_protocol.protocol.digest",
        ["tests/protocol/test_digest.py", "tests/protocol/test_shown_arguments.py"],
    ),
    "call_ids": Target("adk_stream_protocol.adk.calls.call_ids", ["tests/adk/test_call_ids.py"]),
    "seals": Target("adk_stream_protocol.adk.calls.seals", ["tests/adk/test_seals.py"]),
    "gated_call": Target(
        "adk_stream_protocol.adk.calls.gated_call",
        [
            "tests/adk/test_gated_call.py",
            "tests/adk/test_gated_call_questions.py",
            "tests/adk/test_gated_call_recorded.py",
        ],
    ),
    "leased_chat": Target(
        "adk_stream_protocol.adk.calls.leased_chat",
        ["tests/adk/test_leased_chat.py", "tests/adk/test_idempotency.py"],
    ),
    "session_calls": Target(
        "adk_stream_protocol.adk.calls.session_calls",
        [
            "tests/adk/test_session_calls.py",
            "tests/adk/test_session_calls_told.py",
            "tests/adk/test_session_calls_stored.py",
            "tests/adk/test_resumption.py",
            "tests/chat/test_leased_calls_unasked.py",
        ],
    ),
    "resumption": Target("adk_stream_protocol.adk.calls.resumption", ["tests/adk/test_resumption.py"]),
    "call_parts": Target("adk_stream_protocol.adk.translate.call_parts", CALL_PART_TESTS),
    "call_part": Target("adk_stream_protocol.adk.translate.call_part", CALL_PART_TESTS),
    "answers": Target(
        "adk_stream_protocol.chat.answers",
        [
            "tests/chat/test_chat_answers.py",
            "tests/chat/test_chat_answers_others.py",
            "tests/chat/test_chat_answers_taken.py",
            "tests/adk/test_delivery.py",
            "tests/chat/test_answers_late.py",
            "tests/chat/test_answers_flow.py",
            "tests/chat/test_answers_forms.py",
            "tests/chat/test_answers_waiting.py",
            "tests/chat/test_answers_runs.py",
            "tests/chat/test_answers_recorded.py",
            "tests/chat/test_answers_stopped.py",
            "tests/adk/test_gate_failures.py",
            "tests/live/test_live_approvals.py",
            "tests/live/test_live_both_modes.py",
            "tests/transports/test_limits_per_user.py",
        ],
    ),
    "leases": Target(
        "adk_stream_protocol.chat.leases",
        [
            "tests/chat/test_leases.py",
            "tests/chat/test_leases_kept.py",
            "tests/chat/test_leased_calls.py",
            "tests/chat/test_answers_runs.py",
        ],
    ),
    "leased_calls": Target(
        "adk_stream_protocol.chat.leased_calls",
        [
            "tests/chat/test_leases.py",
            "tests/chat/test_leased_calls.py",
            "tests/chat/test_leased_calls_nested.py",
            "tests/chat/test_leased_calls_unasked.py",
        ],
    ),
    "delivery": Target("adk_stream_protocol.adk.calls.delivery", ["tests/adk/test_delivery.py"]),
    "gate": Target(
        "adk_stream_protocol.adk.calls.gate",
        [
            *LIVE_GATE_TESTS,
            "tests/adk/test_named_tools.py",
            "tests/adk/test_consent_inside.py",
            "tests/adk/test_inner_calls_told.py",
            "tests/adk/test_ends_of_agents.py",
            "tests/transports/websocket/test_live_voice.py",
        ],
    ),
    "ends_of_agents": Target("adk_stream_protocol.adk.calls.ends_of_agents", ["tests/adk/test_ends_of_agents.py"]),
    "gate_steps": Target(
        "adk_stream_protocol.adk.calls.gate_steps", [*LIVE_GATE_TESTS, "tests/live/test_live_moments.py"]
    ),
    "live_gate": Target("adk_stream_protocol.adk.calls.live_gate", LIVE_GATE_TESTS),
    "unanswerable": Target("adk_stream_protocol.adk.calls.unanswerable", GATE_TESTS),
    "live_turns": Target("adk_stream_protocol.protocol.live_turns", LIVE_TABLE_TESTS),
    "live_routes": Target("adk_stream_protocol.protocol.live_routes", LIVE_TABLE_TESTS),
    "live_segments": Target("adk_stream_protocol.protocol.live_segments", LIVE_TABLE_TESTS),
    "live_messages": Target("adk_stream_protocol.protocol.live_messages", LIVE_TABLE_TESTS),
    "policy": Target("adk_stream_protocol.adk.calls.policy", ["tests/adk/test_policy.py"]),
    "long_running": Target(
        "adk_stream_protocol.adk.calls.long_running",
        ["tests/adk/test_long_running.py", "tests/adk/test_long_running_work.py"],
    ),
    "credentials": Target("adk_stream_protocol.adk.calls.credentials", ["tests/adk/test_credentials.py"]),
    "client_answers": Target(
        "adk_stream_protocol.protocol.answers",
        [
            "tests/protocol/test_answers.py",
            "tests/protocol/test_answers_refused.py",
            "tests/protocol/test_turn_answers.py",
        ],
    ),
    "idempotency": Target("adk_stream_protocol.adk.calls.idempotency", ["tests/adk/test_idempotency.py"]),
}
