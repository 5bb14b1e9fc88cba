"""Stock clients while others decide, and where the policy decides by itself: first and newest releases, both modes."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.genai import types

from adk_stream_protocol import ApprovalPolicy, ChatBridge, Nobody
from adk_stream_protocol.testing import ScriptedLiveModel, call
from conformance.node import NodeDriver
from conformance.pages import RESUME, WITH_APPROVALS, Conversation, Transport, say
from support.approvers import in_chain
from support.apps import app_of, user_of
from support.live_server import serving
from support.pages import Till

WAYS: list[tuple[Transport, str]] = [
    *(("http", release) for release in WITH_APPROVALS),
    ("ours", "6"),
    ("ours", "7"),
    ("official", "7"),
]
every_way = pytest.mark.parametrize(("transport", "release"), WAYS)


@contextmanager
def shop(policy: ApprovalPolicy, till: Till, **options: Any) -> Generator[str]:
    script = [[call("pay", amount=5)], "That is all.", "Yes."]
    agent = LlmAgent(name="helper", model=ScriptedLiveModel(script), tools=[till.gated])
    run_config = RunConfig(response_modalities=[types.Modality.TEXT])
    bridge = ChatBridge(agent, user_id=user_of, approvals=policy, run_config=run_config, **options)
    with serving(app_of(bridge)) as origin:
        yield origin


def decide(chat: Conversation, user: str, *, approved: bool) -> None:
    """In the inbox of this user."""
    headers = {"x-user": user, "content-type": "application/json"}
    with urlopen(Request(f"{chat.api}/approvals", headers=headers)) as response:
        (card,) = json.load(response)["approvals"]
    body = json.dumps({"approved": approved, "digest": card["digest"]}).encode()
    with urlopen(Request(f"{chat.api}/approvals/{card['id']}", body, headers)) as response:
        assert response.status == 200


def shown(chat: Conversation) -> dict[str, Any]:
    (part,) = [part for message in chat.messages for part in message["parts"] if part["type"] == "data-adk-approval"]
    return part["data"]


@pytest.mark.parametrize(
    ("transport", "release", "yes"), [*((*way, True) for way in WAYS), ("http", "6", False), ("official", "7", False)]
)
def test_an_owner_who_is_not_asked_sees_who_decides_and_what_comes_of_it(
    node: NodeDriver, transport: Transport, release: str, yes: bool
) -> None:
    till = Till()
    with shop(in_chain("max", "eva"), till) as origin:
        chat = Conversation(node, release, origin, headers={"x-user": "ann"}, transport=transport)
        chat.open_page(say("Pay."), goes_on=True)
        assert [tool["state"] for tool in chat.tools] == ["input-available"]  # no page draws buttons
        assert [link["status"] for link in shown(chat)["chain"]] == ["waiting", "pending"]
        decide(chat, "max", approved=True)
        assert till.paid == []
        decide(chat, "eva", approved=yes)
        while "That is all." not in str(chat.kept()):
            pass
        chat.open_page(RESUME, say("Done?"), goes_on=True)
        assert (till.paid, chat.ends) == (([5], "O") if yes else ([], "E"))
        assert shown(chat)["status"] == ("approved" if yes else "denied")
        assert chat.spoken == "Yes."
        assert chat.is_what_the_server_kept()


@every_way
def test_what_the_policy_has_decided_is_shown_as_such(node: NodeDriver, transport: Transport, release: str) -> None:
    till = Till()
    with shop(ApprovalPolicy(decide=lambda _: Nobody), till, sdk_version=int(release[0])) as origin:
        chat = Conversation(node, release, origin, headers={"x-user": "ann"}, transport=transport)
        chat.open_page(say("Pay."))
        assert (till.paid, chat.ends, chat.spoken) == ([5], "O", "That is all.")
        assert shown(chat) == {"status": "approved", "by": "policy"}
        (tool,) = chat.tools
        automatic = tool.get("approval", {}).get("isAutomatic")
        assert automatic is (True if release.startswith("7") else None)
        assert chat.is_what_the_server_kept()
