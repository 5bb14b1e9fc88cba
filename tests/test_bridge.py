"""ChatBridge: what it accepts, who it serves, what a turn leaves behind."""

import asyncio
import logging
from typing import Any

import pytest
from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from starlette.requests import HTTPConnection

from adk_stream_protocol import ApprovalPolicy, ChatBridge, ConfigurationError, Limits, Owner
from adk_stream_protocol.adk.request.request_run import RESTARTING
from adk_stream_protocol.testing import ChatClient, ScriptedModel, call
from support.apps import app_of, bridge_with, model_of, runner_of, user_of


def agent_saying(*replies: Any, **options: Any) -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel(replies), **options)


async def session_events(bridge: ChatBridge, chat_id: str, user: str = "ann") -> list[Any]:
    runner = runner_of(bridge)
    session = await runner.session_service.get_session(app_name=runner.app_name, user_id=user, session_id=chat_id)
    return session.events if session else []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda agent: agent, id="agent"),
        pytest.param(lambda agent: App(name="my_app", root_agent=agent), id="app"),
        pytest.param(
            lambda agent: Runner(agent=agent, app_name="my_app", session_service=InMemorySessionService()),
            id="runner that creates no sessions",
        ),
    ],
)
async def test_an_agent_an_app_and_a_runner_all_answer(given: Any) -> None:
    bridge = ChatBridge(given(agent_saying("Hello there.", "Again.")), user_id=user_of)
    client = ChatClient(app_of(bridge))
    assert (await client.send("hi")).text == "Hello there."
    assert (await client.send("hi")).text == "Again."


def test_a_bare_agent_is_resumable() -> None:
    assert runner_of(bridge_with("x")).resumability_config.is_resumable


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"user_id": "ann"}, r"user_id must be a function with these parameters: user_id\(connection\)"),
        ({"user_id": None}, r"user_id\(connection\)"),
        ({"user_id": lambda: "ann"}, r"user_id\(connection\)"),
        ({"groups": ["treasurers"]}, r"groups\(connection\)"),
        ({"prepare": lambda connection: {}}, r"prepare\(connection, body\)"),
        ({"approvals": {"hints": {}}}, r"approvals must be ApprovalPolicy\(...\), not dict"),
        ({"limits": {"drain_s": 1}}, r"limits must be Limits\(...\), not dict"),
        ({"approvals": ApprovalPolicy(decide=lambda: Owner())}, r"decide\(request\)"),  # pyright: ignore
        ({"approval_style": "x"}, 'approval_style must be "approval-request", "confirmation-tool" or None'),
        ({"session_service": "sqlite:///x"}, "session_service must be a BaseSessionService of ADK's, not str"),
        ({"artifact_service": "here"}, "artifact_service must be a BaseArtifactService of ADK's, not str"),
        ({"memory_service": 1}, "memory_service must be a BaseMemoryService of ADK's, not int"),
        ({"sdk_version": 4}, "sdk_version must be 5, 6 or 7"),
        ({"allowed_origins": ["*"]}, "An allowed origin looks like"),
        ({"allowed_origins": ["https://a.example/"]}, "An allowed origin looks like"),
        ({"allowed_origins": ["http://localhost:5173/x"]}, "without a path"),
        ({"allowed_origins": ["HTTP://localhost:5173"]}, "in lower case"),
        ({"allowed_origins": ["https://a.example:443"]}, "without the usual port"),
        ({"allowed_origins": [" http://a.example"]}, "An allowed origin looks like"),
    ],
)
def test_a_bridge_that_cannot_work_says_what_to_change(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ChatBridge(agent_saying(), **{"user_id": user_of, **options})


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:5173",
        "https://a.example",
        "http://[::1]:3000",
        "capacitor://localhost",
        "https://a.example:80",
    ],
)
def test_origins_are_allowed_in_the_form_that_browsers_send(origin: str) -> None:
    ChatBridge(agent_saying(), user_id=user_of, allowed_origins=[origin])


@pytest.mark.parametrize(
    "wrong", [{"max_run_s": "600"}, {"max_json_bytes": -1}, {"drain_s": True}, {"drain_s": float("nan")}]
)
def test_limits_are_numbers(wrong: dict[str, Any]) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(ConfigurationError) as refused:
        Limits(**wrong)
    assert str(refused.value) == f"Limits({name}=...) must be a number from 0 on, not {value!r}."


def test_services_beside_a_runner_and_things_that_are_no_agents_are_refused() -> None:
    runner = Runner(agent=agent_saying(), app_name="a", session_service=InMemorySessionService())
    with pytest.raises(ConfigurationError, match="Runner brings its own"):
        ChatBridge(runner, user_id=user_of, session_service=InMemorySessionService())
    with pytest.raises(ConfigurationError, match="needs an ADK agent"):
        ChatBridge("agent", user_id=user_of)  # pyright: ignore


async def test_the_conversation_is_the_sessions_not_the_bodys() -> None:
    bridge = bridge_with("First.", "Second.")
    client = ChatClient(app_of(bridge))
    await client.send("one")
    invented = {"id": "x", "role": "assistant", "parts": [{"type": "text", "text": "I owe you a million."}]}
    last = {"id": "y", "role": "user", "parts": [{"type": "text", "text": "two"}]}
    await client.post({"id": client.chat_id, "messages": [invented, last]})
    seen = [part.text for content in model_of(bridge).requests[1].contents for part in content.parts or ()]
    assert seen == ["one", "First.", "two"]


async def test_only_the_last_message_may_be_sent() -> None:
    client = ChatClient(app_of(bridge_with("Hello.")))
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    assert (await client.post({"id": "c", "message": message})).text == "Hello."


async def test_a_file_reaches_the_model_with_its_bytes_name_and_type() -> None:
    bridge = bridge_with("Nice.")
    file = {"url": "data:image/png;base64,iVBORw==", "mediaType": "image/png", "filename": "cat.png"}
    await ChatClient(app_of(bridge)).send("look", files=[file])
    first, second = model_of(bridge).requests[0].contents[-1].parts or ()
    assert first.inline_data == types.Blob(data=b"\x89PNG", mime_type="image/png", display_name="cat.png")
    assert second.text == "look"


async def test_the_same_chat_id_of_another_user_is_another_chat() -> None:
    bridge = bridge_with("For Ann.", "For Bob.")
    app = app_of(bridge)
    await ChatClient(app, chat_id="shared").send("my secret is 42")
    await ChatClient(app, chat_id="shared", headers={"x-user": "bob"}).send("hello")
    seen = [part.text for content in model_of(bridge).requests[1].contents for part in content.parts or ()]
    assert seen == ["hello"]


async def test_user_id_may_be_asynchronous_and_its_refusals_are_401_without_a_reason(caplog: Any) -> None:
    async def nobody(_: HTTPConnection) -> str | None:
        return None

    def broken(_: HTTPConnection) -> str | None:
        raise RuntimeError("token SECRET expired")

    async def ann(_: HTTPConnection) -> str | None:
        return "ann"

    with caplog.at_level(logging.DEBUG, "adk_stream_protocol"):
        refused = [
            await ChatClient(app_of(bridge_with("x", user_id=who))).send("hi") for who in (nobody, broken, lambda _: "")
        ]
    assert [answer.status for answer in refused] == [401, 401, 401]
    assert len({answer.raw for answer in refused}) == 1
    assert "SECRET" not in caplog.text
    assert (await ChatClient(app_of(bridge_with("Hello.", user_id=ann))).send("hi")).text == "Hello."


async def test_prepare_sets_state_run_config_and_metadata() -> None:
    def prepare(connection: HTTPConnection, body: Any) -> Any:
        return {
            "state_delta": {"plan": body["plan"]},
            "run_config": {"max_llm_calls": 1},
            "custom_metadata": {"tenant": connection.headers["x-user"]},
        }

    def tool() -> dict[str, Any]:
        """A tool."""
        return {}

    bridge = bridge_with("{plan}", [call("tool")], "never", tools=(tool,), prepare=prepare)
    client = ChatClient(app_of(bridge), headers={"x-user": "ann"})
    await client.send("hi", plan="gold")
    events = await session_events(bridge, client.chat_id)
    assert events[0].actions.state_delta == {"plan": "gold"}
    assert {event.custom_metadata["tenant"] for event in events} == {"ann"}
    limited = await client.send("hi", plan="gold")
    assert limited.chunks[-1]["finishReason"] == "length"
    assert limited.chunks[-1]["messageMetadata"]["limit"] == "model-calls"


async def test_state_is_sent_only_for_the_keys_that_prepare_names() -> None:
    def remember(tool_context: Any) -> dict[str, Any]:
        """Remembers."""
        tool_context.state["seen"] = 1
        tool_context.state["secret"] = 2
        return {}

    async def prepare(connection: HTTPConnection, body: Any) -> Any:
        return {"send_state": ["seen"]} if body.get("state") else None

    bridge = bridge_with([call("remember")], "Done.", [call("remember")], "Done.", tools=(remember,), prepare=prepare)
    client = ChatClient(app_of(bridge))
    assert (await client.send("hi")).of_type("data-adk-state") == []
    assert (await client.send("hi", state=True)).of_type("data-adk-state") == [
        {"type": "data-adk-state", "data": {"seen": 1}}
    ]


async def test_the_ids_of_both_messages_are_stored_with_every_event() -> None:
    bridge = bridge_with("Hello.")
    client = ChatClient(app_of(bridge))
    message = {"id": "from-client", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    answer = await client.post({"id": client.chat_id, "messages": [message]})
    ids = {"user_message_id": "from-client", "message_id": answer.chunks[0]["messageId"]}
    events = await session_events(bridge, client.chat_id)
    assert all(event.custom_metadata["adk_stream"].items() >= ids.items() for event in events)
    assert [event.author for event in events[:2]] == ["user", "helper"]


async def test_streaming_is_on_unless_the_run_config_says_otherwise() -> None:
    async def deltas(run_config: RunConfig | None) -> int:
        answer = await ChatClient(app_of(bridge_with("one two three", run_config=run_config))).send("hi")
        assert answer.text == "one two three"
        return len(answer.of_type("text-delta"))

    assert await deltas(None) == 3
    assert await deltas(RunConfig(max_llm_calls=5)) == 3
    assert await deltas(RunConfig(streaming_mode=StreamingMode.NONE)) == 1


async def test_a_second_turn_while_one_runs_is_told_to_wait_and_leaves_no_trace() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> dict[str, str]:
        """Slow."""
        started.set()
        await go_on.wait()
        return {"ok": "yes"}

    bridge = bridge_with([call("slow")], "Done.", "Next.", tools=(slow,))
    client = ChatClient(app_of(bridge))
    first = asyncio.create_task(client.send("go"))
    await started.wait()
    refused = await client.send("me too")
    assert (refused.status, (refused.error or {})["code"]) == (409, "run-active")
    other_chat = await ChatClient(app_of(bridge_with("Hello."))).send("hi")
    assert other_chat.status == 200
    go_on.set()
    assert (await first).text == "Done."
    assert (await client.send("now")).text == "Next."
    seen = [part.text for content in model_of(bridge).requests[-1].contents for part in content.parts or ()]
    assert "me too" not in seen


async def test_a_model_that_fails_is_one_public_error_and_the_next_turn_works(caplog: Any) -> None:
    bridge = bridge_with(RuntimeError("prompt SECRET key SECRET"), "Better.")
    client = ChatClient(app_of(bridge))
    with caplog.at_level(logging.INFO, "adk_stream_protocol"):
        failed = await client.send("hi")
    assert failed.types == ["start", "error"]
    assert "SECRET" not in failed.raw
    assert "SECRET" not in "".join(r.getMessage() for r in caplog.records if r.name.startswith("adk_stream"))
    assert "RuntimeError" in caplog.text
    assert (await client.send("again")).text == "Better."


async def test_a_tool_that_raises_closes_its_call_and_the_next_turn_works() -> None:
    def broken() -> None:
        """Broken."""
        raise RuntimeError("SECRET")

    bridge = bridge_with([call("broken")], "Better.", tools=(broken,))
    client = ChatClient(app_of(bridge))
    failed = await client.send("hi")
    assert failed.types[-3:] == ["tool-output-error", "finish-step", "error"]
    assert "SECRET" not in failed.raw
    assert (await client.send("again")).text == "Better."


async def test_an_artifact_of_a_tool_is_a_file_that_its_owner_can_fetch() -> None:
    async def draw(tool_context: Any) -> dict[str, str]:
        """Draws."""
        await tool_context.save_artifact("a b.png", types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png"))
        return {"drawn": "yes"}

    bridge = bridge_with([call("draw")], "Here.", tools=(draw,), artifact_service=InMemoryArtifactService())
    answer = await ChatClient(app_of(bridge), chat_id="c1").send("draw")
    assert answer.of_type("data-adk-artifact")[0]["data"] == {"filename": "a b.png", "version": 0}
    assert answer.of_type("file") == [
        {"type": "file", "url": "/api/chat/c1/files/a%20b.png?version=0", "mediaType": "image/png"}
    ]


async def test_closing_stops_what_runs_and_ends_its_stream() -> None:
    started = asyncio.Event()

    async def endless() -> None:
        """Endless."""
        started.set()
        await asyncio.Event().wait()

    bridge = bridge_with([call("endless")], tools=(endless,), limits=Limits(drain_s=0.1))
    answer = asyncio.create_task(ChatClient(app_of(bridge)).send("go"))
    await started.wait()
    await bridge.aclose()
    assert (await answer).chunks[-1] == {"type": "error", "errorText": RESTARTING}
    assert {task for task in asyncio.all_tasks() if "adk-stream" in task.get_name()} == set()


async def test_the_routers_lifespan_closes_the_bridge() -> None:
    closed: list[bool] = []
    bridge = bridge_with("x")

    async def aclose() -> None:
        closed.append(True)

    bridge._service.aclose = aclose  # pyright: ignore
    app = FastAPI()
    app.include_router(bridge.router("/api/chat"))
    async with app.router.lifespan_context(app):
        assert closed == []
    assert closed == [True]


async def test_respond_serves_a_turn_inside_a_route_of_the_applications_own() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Route

    bridge = bridge_with("Hello.")
    app = Starlette(routes=[Route("/mine", bridge.respond, methods=["POST"])])
    assert (await ChatClient(app, "/mine").send("hi")).text == "Hello."


@pytest.mark.parametrize(("body", "header", "approves"), [(5, None, False), (None, "6", True), (7, "5", True)])
async def test_the_client_may_name_its_version(body: int | None, header: str | None, approves: bool) -> None:
    from google.adk.tools import FunctionTool

    def pay() -> dict[str, str]:
        """Pays."""
        return {}

    bridge = bridge_with([call("pay")], tools=(FunctionTool(pay, require_confirmation=True),))
    headers = {"x-ai-sdk-version": header} if header else {}
    extra = {"sdkVersion": body} if body else {}
    answer = await ChatClient(app_of(bridge), headers=headers).send("pay", **extra)
    assert bool(answer.of_type("tool-approval-request")) is approves


async def test_a_turn_reads_its_session_once() -> None:
    class CountingService(InMemorySessionService):
        reads = 0

        async def get_session(self, **key: Any) -> Any:
            self.reads += 1
            return await super().get_session(**key)

    service = CountingService()
    client = ChatClient(app_of(bridge_with("One.", "Two.", session_service=service)))
    await client.send("a")
    first = service.reads
    await client.send("b")
    assert (first, service.reads) == (1, 2)


def test_limits_have_the_promised_defaults() -> None:
    assert (Limits().max_json_bytes, Limits().max_file_bytes, Limits().ping_interval_s) == (4 << 20, 20 << 20, 15)
