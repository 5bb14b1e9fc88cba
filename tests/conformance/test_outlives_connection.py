"""The conversation outlives the connection, judged by the real clients: drops, reloads, stops, second thoughts."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from starlette.types import Receive, Scope, Send

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.testing import ScriptedModel, call
from conformance.node import RELEASES, NodeDriver
from support.apps import app_of, user_of
from support.cutting_proxy import cutting
from support.live_server import serving

every_release = pytest.mark.parametrize("release", RELEASES)

# A replay after a drop inside the session is added to what is there instead of replacing it, up to 6.0.303 and 7.0.134.
DUPLICATES_PARTS_ON_REPLAY = ("6.0.0", "7.0.0")

CHAT_ID = "c1"
WORDS = " ".join(f"word{n}" for n in range(400))


class SlowModel(ScriptedModel):
    """Says its replies a word at a time, so that there is a middle to cut. A long one comes to its end only when it is
    being read by whoever resumes it, however long a client takes for that."""

    resumes_wanted: int = 1
    resumes: int = 0

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> Any:
        count = 0
        async for response in super().generate_content_async(llm_request, stream):
            await asyncio.sleep(0.002)
            count += 1
            while count == 300 and self.resumes < self.resumes_wanted:
                await asyncio.sleep(0.01)
            yield response


def slow_agent(*replies: Any, resumes: int = 1) -> LlmAgent:
    return LlmAgent(name="helper", model=SlowModel(replies, resumes_wanted=resumes))


@contextmanager
def served(agent: Any, **options: Any) -> Generator[str]:
    app = app_of(ChatBridge(agent, user_id=user_of, **options))

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/stream") and isinstance(agent.model, SlowModel):
            agent.model.resumes += 1
        await app(scope, receive, send)

    with serving(counting) as origin:
        yield origin


def chat(node: NodeDriver, release: str, origin: str, *steps: Any, **options: Any) -> Any:
    options["body"] = {"sdkVersion": 5} if release == "5" else {}
    said = [step if isinstance(step, dict) else {"send": step} for step in steps]
    return node.chat(release=release, api=f"{origin}/api/chat", chatId=CHAT_ID, steps=said, **options)


def history(origin: str, release: str) -> list[Any]:
    headers = {"x-ai-sdk-version": "5"} if release == "5" else {}
    return httpx.get(f"{origin}/api/chat/{CHAT_ID}/messages", headers=headers).json()


def texts(message: Any) -> list[str]:
    return [part["text"] for part in message["parts"] if part["type"] == "text"]


def ends_ready(result: Any) -> None:
    assert (result["status"], result["error"]) == ("ready", None)
    for request in result["requests"]:
        assert request["response"] is None or request["response"]["schemaErrors"] == []


WAIT = {"waitIdle": True}
RESUME = ({"resume": True}, WAIT)


@every_release
@pytest.mark.parametrize("cuts", [(3000,), (3000, 9000)], ids=["once", "twice"])
def test_a_dropped_stream_is_resumed(node: NodeDriver, release: str, cuts: tuple[int, ...]) -> None:
    with served(slow_agent(WORDS, resumes=len(cuts))) as origin, cutting(origin, *cuts) as failing:
        result = chat(node, release, failing, "go", WAIT, *(RESUME * len(cuts)))
        ends_ready(result)
        assert [message["role"] for message in result["messages"]] == ["user", "assistant"]
        answers = [request["response"] for request in result["requests"]]
        assert [answer["complete"] for answer in answers] == [*[False] * len(cuts), True]
        told = texts(result["messages"][-1])
        assert told[-1] == WORDS
        assert (len(told) > 1) == (release in DUPLICATES_PARTS_ON_REPLAY)
        assert texts(history(origin, release)[-1]) == [WORDS]


@every_release
def test_a_reload_loses_nothing_and_goes_on_where_the_run_is(node: NodeDriver, release: str) -> None:
    with served(slow_agent(WORDS)) as origin, cutting(origin, 3000) as failing:
        chat(node, release, failing, "go", WAIT)
        shown = history(origin, release)
        assert [message["role"] for message in shown] == ["user"]
        result = chat(node, release, origin, *RESUME, initialMessages=shown)
        ends_ready(result)
        assert [texts(message) for message in result["messages"]] == [["go"], [WORDS]]


@every_release
def test_a_second_tab_reads_the_same_turn(node: NodeDriver, release: str) -> None:
    with served(slow_agent(WORDS)) as origin, NodeDriver() as second, ThreadPoolExecutor() as threads:
        first = threads.submit(chat, node, release, origin, "go", {"waitPart": {"type": "text"}}, WAIT)
        while not (shown := history(origin, release)) or "error" in shown:
            pass
        other = chat(second, release, origin, *RESUME, initialMessages=shown)
        for result in (first.result(), other):
            ends_ready(result)
            assert [texts(message) for message in result["messages"]] == [["go"], [WORDS]]
        assert first.result()["messages"][-1]["id"] == other["messages"][-1]["id"]


@every_release
def test_a_finished_tool_is_not_run_again_by_a_client_that_resumes(node: NodeDriver, release: str) -> None:
    def lookup(city: str) -> dict[str, str]:
        """Looks up."""
        return {"city": city}

    agent = slow_agent([call("lookup", city="Oslo")], WORDS)
    agent.tools = [lookup]
    with served(agent) as origin, cutting(origin, 3000) as failing:
        chat(node, release, failing, "go", WAIT)
        result = chat(node, release, origin, *RESUME, initialMessages=history(origin, release))
        ends_ready(result)
        assert result["onToolCall"] == []
        tool = next(part for part in result["messages"][-1]["parts"] if part["type"] == "tool-lookup")
        assert (tool["state"], tool["input"], tool["output"]) == (
            "output-available",
            {"city": "Oslo"},
            {"city": "Oslo"},
        )


@every_release
def test_resuming_when_nothing_runs_changes_nothing(node: NodeDriver, release: str) -> None:
    with served(slow_agent("Hello.")) as origin:
        result = chat(node, release, origin, *RESUME, "hi", WAIT, *RESUME)
        ends_ready(result)
        assert [texts(message) for message in result["messages"]] == [["hi"], ["Hello."]]


@every_release
@pytest.mark.parametrize("stops", [1, 2])
def test_a_stopped_chat_keeps_what_was_said_and_goes_on_at_once(node: NodeDriver, release: str, stops: int) -> None:
    agent = slow_agent(WORDS, "Fine.")
    stop_button = [{"stop": True}, {"request": {"method": "POST", "path": "/stop"}}] * stops
    with served(agent) as origin:
        steps = ("go", {"waitPart": {"type": "text", "text": "word9 "}}, *stop_button, WAIT, "and now?", WAIT)
        result = chat(node, release, origin, *steps)
        ends_ready(result)
        assert [message["role"] for message in result["messages"]] == ["user", "assistant"] * 2
        assert texts(result["messages"][-1]) == ["Fine."]
        kept = history(origin, release)
        (said,) = texts(kept[1])
        assert said.startswith(texts(result["messages"][1])[0])  # the server may have said a word more
        assert said != WORDS
        assert texts(kept[3]) == ["Fine."]
    seen = [part.text for content in agent.model.requests[1].contents for part in content.parts or ()]  # pyright: ignore
    assert seen == ["go", said, "and now?"]


@every_release
def test_a_stop_by_the_server_ends_the_stream_in_good_order(node: NodeDriver, release: str) -> None:
    with served(slow_agent(WORDS)) as origin:
        steps = (
            "go",
            {"waitPart": {"type": "text", "text": "word9 "}},
            {"request": {"method": "POST", "path": "/stop"}},
        )
        result = chat(node, release, origin, *steps, WAIT)
        ends_ready(result)
        assert result["requests"][0]["response"]["chunks"][-1] == {"type": "abort"}
        assert result["messages"][-1]["parts"][-1]["state"] == "done"
        assert texts(result["messages"][-1]) == texts(history(origin, release)[-1])


@every_release
def test_the_last_answer_is_given_again(node: NodeDriver, release: str) -> None:
    with served(slow_agent("First.", "Second.", "Third.")) as origin:
        result = chat(node, release, origin, "a", WAIT, {"regenerate": True}, WAIT, "b", WAIT)
        ends_ready(result)
        assert [texts(message) for message in result["messages"]] == [["a"], ["Second."], ["b"], ["Third."]]
        assert ids(history(origin, release)) == ids(result["messages"])


@every_release
def test_an_earlier_answer_is_given_again_and_all_after_it_is_gone(node: NodeDriver, release: str) -> None:
    agent = slow_agent("One.", "Two.", "Again.", "On.")
    with served(agent) as origin:
        result = chat(node, release, origin, "a", WAIT, "b", WAIT, {"regenerate": {"message": 1}}, WAIT, "c", WAIT)
        ends_ready(result)
        assert [texts(message) for message in result["messages"]] == [["a"], ["Again."], ["c"], ["On."]]
        assert ids(history(origin, release)) == ids(result["messages"])
    seen = [part.text for content in agent.model.requests[3].contents for part in content.parts or ()]  # pyright: ignore
    assert seen == ["a", "Again.", "c"]


@every_release
def test_an_edited_message_is_answered_as_if_it_had_been_said_first(node: NodeDriver, release: str) -> None:
    agent = slow_agent("One.", "Two.", "Better.")
    with served(agent) as origin:
        result = chat(node, release, origin, "a", WAIT, "b", WAIT, {"edit": {"message": 0, "text": "z"}}, WAIT)
        ends_ready(result)
        assert [texts(message) for message in result["messages"]] == [["z"], ["Better."]]
        assert ids(history(origin, release)) == ids(result["messages"])
    seen = [part.text for content in agent.model.requests[2].contents for part in content.parts or ()]  # pyright: ignore
    assert seen == ["z"]


@every_release
def test_a_conversation_goes_on_after_a_restart(node: NodeDriver, release: str, tmp_path: Path) -> None:
    def options() -> dict[str, Any]:
        return {"app_name": "kept", "session_service": SqliteSessionService(str(tmp_path / "chats.db"))}

    with served(build_agent(OfflineModel()), **options()) as origin:
        before = chat(node, release, origin, "What is the weather in Tokyo?", WAIT)
    with served(build_agent(OfflineModel()), **options()) as origin:
        kept = history(origin, release)
        assert ids(kept) == ids(before["messages"])
        result = chat(node, release, origin, *RESUME, "And in Paris? weather in Paris", WAIT, initialMessages=kept)
        ends_ready(result)
        assert len(result["messages"]) == 4
        assert ids(history(origin, release)) == ids(result["messages"])


def ids(messages: list[Any]) -> list[str]:
    return [message["id"] for message in messages]
