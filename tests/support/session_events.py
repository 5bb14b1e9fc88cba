"""Events of calls, as ADK would put them into a session, and a chat to put them into."""

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol.adk.event_parts import ControlFlow
from adk_stream_protocol.adk.session import Chat, MessageIds

from .records import CHAT

ASKS = "adk_request_confirmation"


def empty_chat(control_flow: ControlFlow | None = None) -> Chat:
    runner = Runner(app_name=CHAT.app_name, agent=LlmAgent(name="a"), session_service=InMemorySessionService())
    return Chat(runner, CHAT.user_id, CHAT.chat_id, "", control_flow)


async def chat_with(*events: Event) -> Chat:
    chat = empty_chat()
    await chat.create()
    await chat.append(events)
    return chat


def calling(*calls: types.FunctionCall, in_message: str | None = "m1", **fields: Any) -> Event:
    about: dict[str, Any] = {"author": "a", "invocation_id": "i1", **fields}
    if in_message:
        about["custom_metadata"] = MessageIds(user_message_id=None, message_id=in_message).metadata()
    return Event(content=types.Content(role="model", parts=[types.Part(function_call=call) for call in calls]), **about)


def pay(call_id: str | None = "1", name: str | None = "pay") -> types.FunctionCall:
    return types.FunctionCall(id=call_id, name=name, args={"amount": 5})


def asking(question_id: str | None, about: Any, **fields: Any) -> Event:
    call = types.FunctionCall(id=question_id, name=ASKS, args={"originalFunctionCall": about})
    return calling(call, long_running_tool_ids={question_id or ""}, **fields)


def answering(call_id: str | None, *, is_question: bool = False, invocation_id: str = "i1") -> Event:
    response = types.FunctionResponse(id=call_id, name="pay", response={"paid": 5})
    asked = {call_id or "": ToolConfirmation()} if is_question else {}
    return Event(
        author="a",
        invocation_id=invocation_id,
        content=types.Content(role="user", parts=[types.Part(function_response=response)]),
        actions=EventActions(requested_tool_confirmations=asked),
        custom_metadata=MessageIds(user_message_id=None, message_id="m1").metadata(),
    )
