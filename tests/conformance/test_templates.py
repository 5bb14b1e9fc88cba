"""Public chat templates post approvals by themselves, and denials never: the server reads only the last message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from conformance.node import NodeDriver
from conformance.pages import WITH_APPROVALS, Conversation, approve, deny, say
from conformance.scenarios import PAY, PAY_TWO
from support.apps import app_of, user_of
from support.live_server import serving

every_release = pytest.mark.parametrize("release", WITH_APPROVALS)


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with serving(app_of(ChatBridge(build_agent(OfflineModel()), user_id=user_of))) as origin:
        yield origin


def states_of(messages: list[Any]) -> list[str]:
    return [part["state"] for message in messages for part in message["parts"] if "toolCallId" in part]


@every_release
def test_a_denial_on_a_templates_page_never_gets_to_the_server(node: NodeDriver, origin: str, release: str) -> None:
    chat = Conversation(node, release, origin)
    page = chat.open_page(PAY, deny(), resend="template")
    assert len(page["requests"]) == 1
    assert states_of(chat.kept()) == ["approval-requested"]
    chat.open_page(say("What is the weather in Oslo?"), initialMessages=page["messages"], resend="template")
    assert states_of(chat.kept()) == ["approval-requested", "output-available"]
    assert chat.spoken.startswith("The weather in Oslo")


@every_release
def test_with_our_helper_it_posts_a_denial_alone(node: NodeDriver, origin: str, release: str) -> None:
    chat = Conversation(node, release, origin)
    chat.open_page(PAY, deny(reason="too much"), resend="ours")
    assert chat.wire == "start I A F || start D X F"
    assert chat.is_what_the_server_kept()


@every_release
def test_a_denial_beside_an_approval_goes_with_it(node: NodeDriver, origin: str, release: str) -> None:
    """With the template's own condition, the approval goes at once, and the denial stays behind."""
    chat, ours = Conversation(node, release, origin), Conversation(node, release, origin)
    chat.open_page(PAY_TWO, approve(), deny(), resend="template")
    assert states_of(chat.kept()) == ["output-available", "approval-requested"]
    ours.open_page(PAY_TWO, approve(), deny(), resend="ours")
    assert (ours.wire, ours.ends) == ("start I1 I2 A1 A2 F || start O1 D2 X F", "OD")
