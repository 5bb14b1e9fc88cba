"""Stock clients and ours, while the application tells how a long-running call goes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import LongRunningFunctionTool, ToolContext
from google.genai import types

from adk_stream_protocol import ChatBridge, call_ref
from adk_stream_protocol.testing import ScriptedLiveModel, call
from conformance.node import NodeDriver
from conformance.pages import RESUME, WITH_APPROVALS, Conversation, Step, Transport, say
from support.apps import app_of, user_of
from support.live_server import serving

ROWS = {"rows": 1200}
THE_END_COMES: Step = {"request": {"method": "POST", "path": "/exported"}}


@contextmanager
def exporter(*script: Any) -> Generator[str]:
    refs: list[str] = []

    def export(tool_context: ToolContext) -> dict[str, str]:
        """Exports, which takes days."""
        refs.append(call_ref(tool_context))
        return {"status": "in-progress"}

    agent = LlmAgent(name="helper", model=ScriptedLiveModel(script), tools=[LongRunningFunctionTool(export)])
    run_config = RunConfig(response_modalities=[types.Modality.TEXT])
    bridge = ChatBridge(agent, user_id=user_of, run_config=run_config)
    app = app_of(bridge)

    @app.post("/exported")
    @app.post("/api/chat/{chat_id}/exported")  # where a page's own requests go
    async def exported() -> Any:  # the webhook of an application
        return await bridge.complete_call(refs[-1], ROWS)

    with serving(app) as origin:
        yield origin


def tell_the_end(origin: str) -> None:
    with urlopen(Request(f"{origin}/exported", method="POST")) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("transport", "release"),
    [*(("http", release) for release in WITH_APPROVALS), ("ours", "6"), ("ours", "7"), ("official", "7")],
)
def test_a_page_that_is_loaded_anew_has_the_end_and_what_the_model_says_to_it(
    node: NodeDriver, transport: Transport, release: str
) -> None:
    with exporter([call("export")], "Started.", "All exported.", "Yes.") as origin:
        chat = Conversation(node, release, origin, transport=transport)
        chat.open_page(say("Export."))
        assert [tool["preliminary"] for tool in chat.tools] == [True]
        tell_the_end(origin)
        while "All exported." not in str(chat.kept()):
            pass
        chat.open_page(RESUME, say("Done?"))
        assert [(tool["output"], tool.get("preliminary")) for tool in chat.tools] == [(ROWS, None)]
        assert chat.spoken == "Yes."
        assert chat.is_what_the_server_kept()


@pytest.mark.parametrize("release", ["6", "7"])  # the first ones repeat what they have read before
@pytest.mark.parametrize("meanwhile", [(), (say("Hello."),)], ids=["at once", "in a later message"])
def test_our_client_is_told_the_end_without_a_word_of_its_own(
    node: NodeDriver, release: str, meanwhile: tuple[Step, ...]
) -> None:
    script = [[call("export")], "Started.", *["Hi." for _ in meanwhile], "All exported."]
    with exporter(*script) as origin:
        chat = Conversation(node, release, origin, transport="ours")
        told = {"waitAnswers": 3 + len(meanwhile), "unasked": True}
        chat.open_page(say("Export."), *meanwhile, THE_END_COMES, told)
        assert [(tool["output"], tool.get("preliminary")) for tool in chat.tools] == [(ROWS, None)]
        assert chat.methods[1 + len(meanwhile) :] == ["resume"] * 2  # the call's own message, and the model's new one
        assert chat.is_what_the_server_kept(after_replay=True)
