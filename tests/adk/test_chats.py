"""The chats of one application."""

import pytest
from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

from adk_stream_protocol.adk.chats import Chats
from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.protocol.call_record import ChatKey


def chats() -> Chats:
    return Chats(Runner(app_name="app", agent=LlmAgent(name="a"), session_service=InMemorySessionService()))


def test_chats_of_other_applications_are_not_ours() -> None:
    ours = chats()
    assert ours.key("ann", "c1") == ChatKey("app", "ann", "c1")
    assert ours.key("ann", "c1") in ours
    assert ChatKey("other", "ann", "c1") not in ours


def test_files_are_found_below_the_chat() -> None:
    assert chats().open("ann", "a+b", "/api/chat").files_url == "/api/chat/a%2Bb/files"


@pytest.mark.parametrize("chat_id", ["", "a\nb", "x" * 1000])
def test_what_cannot_be_the_id_of_a_chat_is_not_found(chat_id: str) -> None:
    with pytest.raises(NotFound):
        chats().open("ann", chat_id)


async def test_a_user_s_own_chats_are_listed_and_the_newest_comes_first() -> None:
    ours = chats()
    for user, chat_id in (("ann", "old"), ("bob", "foreign"), ("ann", "new")):
        await ours.open(user, chat_id).create()
    assert [session.id for session in await ours.newest("ann")] == ["new", "old"]
