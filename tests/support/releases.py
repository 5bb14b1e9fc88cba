"""What a test needs of ADK, as marks: older releases lack it. `pytest -rs` lists what is skipped, with the reason.

Every reason is a row of `versions.LACKS`, and so of docs/reference/versions.md and of the warning at the start.
"""

import pytest

from adk_stream_protocol.adk.versions import ADK, LACKS

_SINCE = {lack: release for release, lacks in LACKS.items() for lack in lacks}


def unless(lack: str) -> pytest.MarkDecorator:
    """Not with the releases that lack this."""
    since = _SINCE[lack]
    needed = ".".join(map(str, since))
    return pytest.mark.skipif(since > ADK, reason=f"needs google-adk {needed}. Below it, {lack}")


abort_signal = unless("the model is not told of a call that a stop has cut, unless the call needed an approval")
stopped_agents_shown = unless("an agent that runs as a tool and is stopped is shown as pending until the next message")
tool_nodes = unless("tools cannot be workflow nodes")
remote_questions = unless("questions of remote agents cannot be answered")
streamed_arguments = unless("streamed arguments are shown when they are complete")
empty_answers = unless("an answer of the model without content is no error")
sibling_results_first = unless("a question may be shown before the results of its step")
goes_on_after_drain = unless(
    "a message that goes on without its client is not continued by the next server after a drain"
)
workflow_tools_in_one_step = unless("a workflow that runs as a tool and asks may be shown in two parts")
remote_sub_agents = unless("remote agents that are sub-agents do not go on after their question")
node_confirmation = unless("workflow nodes have no require_confirmation")
agents_as_tools_go_on = unless(
    "an agent does not go on after a question of a sub-agent that runs as its tool (single_turn)"
)
direct_text = unless("text goes through ADK")
cancelled_tools = unless("a call that is cut is recorded when its run ends, not at once")
workflow_tools = unless("workflows need an input_schema to be tools")
unresumable_agents_told = unless("the model is not told that an AgentTool without plugins cannot ask")
