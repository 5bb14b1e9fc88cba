"""Whoever changes a module finds its tests by its name: `chat/leases.py` is tested in `tests/chat/test_leases*.py`."""

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "adk_stream_protocol"

TESTED_ELSEWHERE = {
    # only types, without anything that could be wrong
    "adk/calls/live_observer": "live/test_live_gate",
    "adk/live_listener": "live/test_live_turns",
    "adk/words/model_ways": "adk/test_direct_agents",
    "adk/request/run_request": "adk/test_request_run",
    "chat/caller": "transports/test_http",
    "testing/received": "testing/test_live_session",
    # parts of one machine, which is tested as a whole
    "adk/translate/approval_card": "chat/test_inbox",
    "adk/translate/recorded_chunks": "adk/test_call_parts_results",
    "adk/calls/waiting": "live/test_live_gate",
    "adk/node_tree": "adk/test_control_flow",
    "adk/run_end": "adk/test_history_unfinished",
    "adk/translate/call_part": "adk/test_call_parts",
    "adk/translate/ending": "adk/test_translator_events",
    "adk/translate/event_actions": "adk/test_translator_events",
    "adk/translate/translators": "adk/test_history",
    "chat/closed_logs": "chat/test_background",
    "protocol/call_states": "protocol/test_call_record",
    "demo/agent": "demo/test_offline_model",
    "testing/models": "testing/test_live_model",
    "transports/connection": "transports/test_event_stream",
    "transports/websocket/socket_client": "transports/websocket/test_live_socket",
    "transports/websocket/socket_voice": "transports/websocket/test_live_voice",
    **dict.fromkeys(
        [f"protocol/live_{part}" for part in ("effects", "facts", "messages", "segments")],
        "protocol/test_live_turns_explored",
    ),
    "protocol/call_keys": "protocol/test_call_record_work",
    # one suite for all stores
    "store/base": "store/test_store_contract",
    "store/memory": "store/test_store_contract",
    "store/tables": "store/test_sql_store",
}

MODULES = {
    module.relative_to(PACKAGE).with_suffix("")
    for module in PACKAGE.rglob("*.py")
    if module.stem not in ("__init__", "__main__") and module.parent.name != "live"  # tests/live has the live runs
}
NAMES = [file.stem.removeprefix("test_") for file in TESTS.rglob("test_*.py") if "node_modules" not in file.parts]


def is_tested_by_name(module: Path) -> bool:
    names = (module.name, f"{module.parent.name}_{module.name}")
    return any(name == known or known.startswith(f"{name}_") for name in names for known in NAMES)


def test_each_module_has_its_tests() -> None:
    without = {module.as_posix() for module in MODULES if not is_tested_by_name(module)}
    assert without == TESTED_ELSEWHERE.keys()


def test_what_is_tested_elsewhere_is_tested_there() -> None:
    for test in TESTED_ELSEWHERE.values():
        assert (TESTS / f"{test}.py").exists(), test
