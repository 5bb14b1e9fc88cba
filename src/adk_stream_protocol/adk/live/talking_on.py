"""Whether a live conversation goes on while somebody decides about a call, and what its model gets meanwhile.

ADK reads nothing from the model while a blocking tool waits. So where the model takes late answers, tools that may wait
are declared to it as non-blocking, and ADK runs them beside the conversation. The application's own tools stay as they
are: a connection gets copies.
"""

import copy
import inspect
import re
from typing import Any, Literal

from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import BaseTool
from google.adk.utils.variant_utils import GoogleLLMVariant
from google.genai import types

from ...protocol.call_record import CallKey
from ..calls.client_tools import ClientTool

LiveWhileWaiting = Literal["continue", "refuse"]

TAKES_LATE_ANSWERS = {"2.5": True, "3.1": False, "3.8": True}
"""By the version in the name of a Gemini Live model. As Google's public pages on tool use with the Live API have it;
not tried on the service itself. Versions that are not here, models of others and Vertex AI count as no."""

PENDING = {"status": "pending: a person or their browser has been asked. The result will follow."}


class TalkingOn:
    def __init__(self, wanted: LiveWhileWaiting | None) -> None:
        """`wanted`: by the application; None leaves it to the model."""
        self.is_on = False
        """For the model of the last connection."""
        self._wanted = wanted
        self._is_vertex = False

    def prepare(self, model: BaseLlm, request: LlmRequest) -> None:
        """Before a connection is dialled."""
        self._is_vertex = isinstance(model, Gemini) and model._api_backend is GoogleLLMVariant.VERTEX_AI  # pyright: ignore[reportPrivateUsage]
        self.is_on = takes_late_answers(model) if self._wanted is None else self._wanted == "continue"
        if self.is_on:
            _run_beside(request)

    def pending_answer(self, call: CallKey, made_by: Event) -> types.Content:
        """What the model gets for a call that waits. It needs no reply. On Vertex AI there is no field that says that
        more follows."""
        answer = types.FunctionResponse(
            id=call.call_id,
            name=next(found.name for found in made_by.get_function_calls() if found.id == call.call_id),
            response=dict(PENDING),
            will_continue=None if self._is_vertex else True,
            scheduling=types.FunctionResponseScheduling.SILENT,
        )
        return types.Content(role="user", parts=[types.Part(function_response=answer)])


def is_pending_answer(content: types.Content) -> bool:
    responses = [part.function_response for part in content.parts or () if part.function_response is not None]
    return bool(responses) and all(response.response == PENDING for response in responses)


def takes_late_answers(model: BaseLlm) -> bool:
    if not isinstance(model, Gemini) or model._api_backend is GoogleLLMVariant.VERTEX_AI:  # pyright: ignore[reportPrivateUsage]
        return False
    version = re.search(r"\d+\.\d+", model.model)
    return version is not None and TAKES_LATE_ANSWERS.get(version[0], False)


def _run_beside(request: LlmRequest) -> None:
    waiting = {name for name, tool in request.tools_dict.items() if _may_wait(tool)}
    if not waiting:
        return
    for name in waiting:
        beside = request.tools_dict[name] = copy.copy(request.tools_dict[name])
        beside.behavior = types.Behavior.NON_BLOCKING
    declared: list[Any] = request.config.tools or []
    request.config.tools = [_declared_beside(tool, waiting) for tool in declared]


def _may_wait(tool: BaseTool) -> bool:
    """Whether its calls may wait for somebody. What the application has set counts; tools that stream block."""
    is_set = tool.behavior is not None or tool.response_scheduling is not None
    if is_set or inspect.isasyncgenfunction(getattr(tool, "func", None)):
        return False
    if isinstance(tool, ClientTool):
        return True
    asks = type(tool).check_require_confirmation is not BaseTool.check_require_confirmation
    return asks and bool(getattr(tool, "_require_confirmation", True))


def _declared_beside(tool: Any, names: set[str]) -> Any:
    """A declaration may be the tool's own object."""
    if not isinstance(tool, types.Tool):
        return tool
    declarations = [
        found.model_copy(update={"behavior": types.Behavior.NON_BLOCKING}) if found.name in names else found
        for found in tool.function_declarations or ()
    ]
    return tool.model_copy(update={"function_declarations": declarations or None})
