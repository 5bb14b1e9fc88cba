"""The page with other agents than the demo's, each below a path of its own: `python agents.py PORT`.

/hurry/     the demo, with two seconds for a decision
/treasury/  transfers that `max` and then `eva` decide, and may change
/parrot/    an agent that says and does what it is told, so that a test has every kind of part on the page
/librarian/ an agent whose model has no live mode, which ADK knows
/chat-only/ an agent whose model has no live mode, which its service says when it is dialled, as Gemini's does
"""

import base64
import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import uvicorn
from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows
from google.adk.agents import LlmAgent
from google.adk.auth import AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools._request_input_tool import request_input
from google.genai import errors as genai_errors
from google.genai import types
from pydantic import BaseModel, Field, PrivateAttr
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from adk_stream_protocol import ApprovalPolicy, Chain, ChatBridge, Link, Owner, client_tool
from adk_stream_protocol.demo.agent import build_app, demo_run_config
from adk_stream_protocol.demo.identity import LoopbackIdentity
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.policy import PEOPLE
from adk_stream_protocol.demo.server import build_server, build_server_of_several
from adk_stream_protocol.demo.tools import process_payment
from adk_stream_protocol.testing import ScriptedLiveModel, ScriptedModel, call, text, thought

# One red point.
_IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"


class Parrot(ScriptedLiveModel):
    """What comes first in the user's words decides; all else is said back to the letter."""

    model: str = "parrot"
    _failed_on: set[str] = PrivateAttr(default_factory=set[str])

    def next_reply(self, llm_request: LlmRequest) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        if answer := parts[-1].function_response:
            return f"I was told: {json.dumps(answer.response)}"
        words = "\n".join(part.text for part in llm_request.contents[-1].parts or [] if part.text)
        files = [part.inline_data.mime_type for part in llm_request.contents[-1].parts or [] if part.inline_data]
        match words.split(maxsplit=1)[:1]:
            case ["pay"]:
                return [call("process_payment", amount=50, recipient="Hanako")]
            case ["ask"]:
                return [call("adk_request_input", message="Which city?")]
            case ["consent"]:
                return [call("read_calendar")]
            case ["order"]:
                return [call("order", item=words.split(maxsplit=1)[1])]
            case ["transfer"]:
                _, amount, recipient = words.split(maxsplit=2)
                return [call("transfer", amount=int(amount), recipient=recipient)]
            case ["measure"]:
                return [call("measure_room", wall=words.split(maxsplit=1)[1])]
            case ["keep"]:
                return [call("keep", note=words.split(maxsplit=1)[1])]
            case ["book"]:
                return [call("book_seat")]
            case ["hand"]:
                return [call("transfer_to_agent", agent_name="librarian")]
            case ["think"]:
                return [thought("First this, then that."), text("Thought and done.")]
            case ["draw"]:
                return [types.Part(inline_data=types.Blob(mime_type="image/png", data=base64.b64decode(_IMAGE)))]
            case ["fail"] if words not in self._failed_on:
                self._failed_on.add(words)
                raise RuntimeError("The model is out of order.")
            case ["fail"]:
                return "Back in order."
            case _:
                return f"I see {', '.join(map(str, files))}." if files else words


def read_calendar(tool_context: ToolContext) -> dict[str, str]:
    """Read the user's calendar, for which the user's consent is needed."""
    endpoints = {"authorizationUrl": "https://id.example/consent", "tokenUrl": "https://id.example/token", "scopes": {}}
    flow = OAuthFlowAuthorizationCode.model_validate(endpoints)
    client = OAuth2Auth(client_id="demo", client_secret="secret", redirect_uri="https://app.example/")
    tool_context.request_credential(
        AuthConfig(
            auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=flow)),
            raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=client),
            credential_key="calendar",
        )
    )
    return {"status": "waits for consent"}


def book_seat(tool_context: ToolContext) -> dict[str, Any]:
    """Book a seat, which the user may choose."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="Is this seat right?", payload={"seat": "1A"})
        return {"error": "This tool call requires confirmation, please approve or reject."}
    return {"booked": tool_context.tool_confirmation.payload}


class Size(BaseModel):
    metres: float
    material: Literal["brick", "wood"] = "brick"


def measure_room(wall: str) -> Annotated[Size, Field(title="Size")]:
    """Measure a wall of the room."""
    raise AssertionError("It runs in a browser, and no page knows it.")


async def keep(note: str, tool_context: ToolContext) -> dict[str, int]:
    """Keep a note."""
    tool_context.state["notes"] = [*tool_context.state.get("notes", []), note]
    tool_context.state["secret"] = "not for pages"
    version = await tool_context.save_artifact(
        "note.txt", types.Part.from_bytes(data=note.encode(), mime_type="text/plain")
    )
    return {"version": version}


def order(item: str, tool_context: ToolContext) -> dict[str, str]:
    """Order something, of which the question speaks as well."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint=f"Order {item} for you?")
        return {"error": "This tool call requires confirmation, please approve or reject."}
    return {"ordered": item}


def transfer(amount: int, recipient: str, tool_context: ToolContext) -> dict[str, Any]:
    """Transfer money, as much as was agreed."""
    confirmation = tool_context.tool_confirmation
    agreed = confirmation.payload["amount"] if confirmation and confirmation.payload else amount
    return {"transferred": agreed, "recipient": recipient}


def treasury(identity: LoopbackIdentity) -> ChatBridge:
    def card(arguments: Mapping[str, Any]) -> Any:
        return {
            "title": "Transfer",
            "icon": "money",
            "colour": "rebeccapurple",
            "severity": "high",
            "fields": [
                {"label": "Amount", "value": arguments["amount"], "format": "money"},
                {"label": "Due", "value": "2026-12-24T18:00:00Z", "format": "date"},
                {"label": "Account", "value": "DE02 1203 0000 0000 2020 51", "format": "code"},
                {"label": "Recipient", "value": arguments["recipient"], "format": "text"},
            ],
            "link": "https://bank.example/transfers/4711",
        }

    less = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 1000}}, "required": ["amount"]}
    chain = Chain([Link(["max"]), Link(["eva"])])
    policy = ApprovalPolicy(
        decide=lambda request: Owner if request.arguments["recipient"] == "me" else chain,
        cards={"transfer": card},
        edits={"transfer": less},
        hints={"transfer": "This leaves the house."},
    )
    agent = LlmAgent(name="treasurer", model=Parrot(), tools=[FunctionTool(transfer, require_confirmation=True)])
    return ChatBridge(agent, user_id=identity, approvals=policy)


class Librarian(ScriptedModel):
    model: str = "librarian"

    def next_reply(self, llm_request: LlmRequest) -> Any:
        return "The librarian speaks."


class ChatOnly(Librarian):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection]:
        raise genai_errors.APIError(1008, {"error": {"message": "m is not supported for bidiGenerateContent."}})
        yield


def parrot() -> LlmAgent:
    tools = [
        FunctionTool(process_payment, require_confirmation=True),
        FunctionTool(read_calendar),
        FunctionTool(book_seat),
        FunctionTool(order),
        FunctionTool(keep),
        client_tool(measure_room, approve=lambda wall: wall == "attic"),
        request_input,
    ]
    librarian = LlmAgent(name="librarian", description="Knows books.", model=Librarian())
    return LlmAgent(name="parrot", model=Parrot(), tools=tools, sub_agents=[librarian])


def hurried_demo(identity: LoopbackIdentity) -> ChatBridge:
    app = build_app(OfflineModel())
    policy = ApprovalPolicy(deadline_s=2)
    return ChatBridge(app, user_id=identity, run_config=demo_run_config(app), approvals=policy)


def parrots_bridge(identity: LoopbackIdentity) -> ChatBridge:
    return ChatBridge(parrot(), user_id=identity, prepare=lambda connection, body: {"send_state": ["notes"]})


def build() -> Starlette:
    identity = LoopbackIdentity(people=PEOPLE)
    bridges = {
        "hurry": hurried_demo(identity),
        "parrot": parrots_bridge(identity),
        "librarian": ChatBridge(LlmAgent(name="librarian", model=Librarian()), user_id=identity),
        "chat-only": ChatBridge(LlmAgent(name="librarian", model=ChatOnly()), user_id=identity),
        "treasury": treasury(identity),
    }
    roots = {"hurry": build_app(OfflineModel()).root_agent, "parrot": parrot()}
    several = {"hurry": hurried_demo(identity), "parrot": parrots_bridge(identity)}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        for bridge in (*bridges.values(), *several.values()):
            await bridge.aclose()

    mounts = [
        Mount(f"/{name}", build_server(bridge, identity, loopback_only=True, root_agent=roots.get(name)))
        for name, bridge in bridges.items()
    ]
    together = build_server_of_several(several, identity, loopback_only=True, root_agents=roots)
    mounts.append(Mount("/several", together))
    return Starlette(routes=[Route("/", lambda _: PlainTextResponse("ready")), *mounts], lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(
        build(), port=int(sys.argv[1]), ws="websockets-sansio", log_level="warning", timeout_graceful_shutdown=1
    )
