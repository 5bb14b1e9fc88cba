"""Which of ADK's marks at the end of an agent a session needs.

In an application that can be resumed, ADK stores an event when an agent has ended, so that a resumed run does not
repeat it. Of a chat without tools that is one event in three, and each turn loads all of them. A run is resumed by
answers to its calls, and by nothing else, if the application is the bridge's own. So a run without calls that wait for
anybody needs no mark.
"""

import warnings
from functools import cache
from itertools import takewhile

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import ResumabilityConfig
from google.adk.events import Event, EventActions

from .leased_chat import LeasedChat

_ONLY_A_MARK = EventActions(end_of_agent=True)


@cache
def resumable() -> ResumabilityConfig:
    """For applications that a bridge makes: they are recognized by this object. Others may have their own way to resume
    a run."""
    with warnings.catch_warnings():  # ADK calls it experimental; approvals need it
        warnings.simplefilter("ignore")
        return ResumabilityConfig(is_resumable=True)


def leave_out_mark(event: Event, context: InvocationContext, leased: LeasedChat) -> None:
    """ADK is about to store this event. It stores no partial events."""
    if not event.actions.end_of_agent or context.resumability_config is not resumable():
        return
    says_more = event.content is not None or event.actions != _ONLY_A_MARK
    if not says_more and _is_alone(event, context) and not _may_be_answered(event, context, leased):
        event.partial = True


def _is_alone(event: Event, context: InvocationContext) -> bool:
    """Whether the run ends with this agent. Where others follow, they may still ask."""
    agent = context.agent
    return isinstance(agent, LlmAgent) and not agent.sub_agents and event.author == agent.name


def _may_be_answered(event: Event, context: InvocationContext, leased: LeasedChat) -> bool:
    if any(call.invocation_id == event.invocation_id for call in (*leased.records, *leased.questions)):
        return True
    own = takewhile(lambda earlier: earlier.invocation_id == event.invocation_id, reversed(context.session.events))
    return any(earlier.long_running_tool_ids for earlier in own)
