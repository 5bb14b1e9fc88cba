"""What a test needs of ADK, as marks: older releases lack it. `pytest -rs` lists what is skipped, with the reason."""

import pytest

from adk_stream_protocol.adk.versions import ADK


def needs(major: int, minor: int, what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif((major, minor) > ADK, reason=f"needs google-adk {major}.{minor}: {what}")


abort_signal = needs(2, 11, "a run that is told to stop answers its open calls")
tool_nodes = needs(2, 11, "tools that are workflow nodes ask the plugins")
remote_questions = needs(2, 11, "answers reach a remote agent as answers")
streamed_arguments = needs(2, 11, "each piece of streamed arguments has its call's id")
empty_answers = needs(2, 11, "an answer without content is an error")
sibling_results_first = needs(2, 11, "results come before the questions of the same step")
goes_on_after_drain = needs(2, 11, "a message that has no client goes on after a drain")
workflow_tools_in_one_step = needs(2, 11, "what a workflow asks that runs as a tool is in one step with its call")
agents_as_tools_go_on = needs(2, 13, "an agent goes on after a question of a sub-agent that runs as its tool")
remote_sub_agents = needs(2, 12, "a remote sub-agent goes on after its question")
node_confirmation = needs(2, 12, "workflow nodes have require_confirmation")
direct_text = needs(2, 13, "direct text is on")
cancelled_tools = needs(2, 13, "plugins are told of cancelled tools")
workflow_tools = needs(2, 13, "workflows without an input_schema can be tools")
