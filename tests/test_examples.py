"""What people copy works: every example, and the server of the README."""

import importlib.util
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent

from adk_stream_protocol.testing import ChatClient, Reply, ScriptedLiveModel, ScriptedModel, call
from support.apps import runner_of
from support.documents import ROOT, run_page
from support.live_client import live_socket
from support.sessions import KEY, signed_in

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_KEY", KEY)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put_scripted_model(bridge: Any, *replies: Reply) -> ScriptedModel:
    """The examples name a model that is out of reach here; everything else of them stays."""
    agent = runner_of(bridge).agent
    assert isinstance(agent, LlmAgent)
    model = ScriptedModel(replies)
    agent.model = model
    return model


@pytest.mark.parametrize(
    ("number", "path", "headers"),
    [
        ("01", "/api/chat", signed_in()),
        ("02", "/api/chat", {"authorization": "Bearer token-of-ann"}),
        ("03", "/support/chat", signed_in()),
        ("05", "/api/chat", signed_in()),
        ("06", "/api/chat", signed_in()),
    ],
)
async def test_an_example_serves_its_users_and_nobody_else(
    number: str, path: str, headers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example = load(next(path for path in EXAMPLES if path.name.startswith(number)))
    model = put_scripted_model(example.bridge, "Hello.")

    assert (await ChatClient(example.app, path).send("hi")).status == 401
    assert (await ChatClient(example.app, path, headers=headers).send("hi")).text == "Hello."
    await example.bridge.aclose()
    if number == "02":
        assert "called ann" in str(model.requests[0].config.system_instruction)


async def test_the_example_payment_is_made_once_after_its_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example = load(EXAMPLES[4])
    put_scripted_model(example.bridge, [call("pay", amount=5, recipient="Bob")], "Paid.")

    client = ChatClient(example.app, headers=signed_in())
    asked = await client.send("Pay Bob 5")
    assert asked.of_type("data-adk-approval")[0]["data"]["hint"] == "Send 5 to Bob?"
    paid = await client.approve(asked)
    assert paid.text == "Paid."
    again = await client.approve(asked)
    outputs = [answer.of_type("tool-output-available")[0]["output"] for answer in (paid, again)]
    assert outputs[0] == outputs[1]
    await example.bridge.aclose()


async def test_the_example_audit_tells_who_approved_what_to_those_who_may_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_TOKEN", "secret")
    example = load(EXAMPLES[7])
    put_scripted_model(example.bridge, [call("pay", amount=5, recipient="Bob")], "Paid.")

    client = ChatClient(example.app, chat_id="c1", headers=signed_in())
    await client.approve(await client.send("Pay Bob 5"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(example.app), base_url="http://localhost") as http:
        assert (await http.get("/audit/ann/c1")).status_code == 403
        auditor = {"authorization": "Bearer secret"}
        trail = (await http.get("/audit/ann/c1", headers=auditor)).json()
        assert [step["state"] for step in trail] == ["pending", "approved", "claimed", "started", "done"]
        assert [step["arguments"] for step in trail] == [{"amount": 5, "recipient": "Bob"}, *[None] * 4]
        assert trail[1]["by"] == "ann"
        assert (await http.get("/audit/bob/c1", headers=auditor)).json() == []
        assert (await http.delete("/api/chat/c1", headers=signed_in())).status_code == 204
        assert (await http.get("/audit/ann/c1", headers=auditor)).json() == trail
    await example.bridge.aclose()


async def test_the_example_browser_tools_get_their_outputs() -> None:
    example = load(EXAMPLES[5])
    put_scripted_model(example.bridge, [call("get_location")], "In Oslo.")

    client = ChatClient(example.app, headers=signed_in())
    freed = await client.approve(await client.send("Where am I?"))
    assert (await client.output(freed, {"latitude": "north"})).status == 422
    assert (await client.output(freed, {"latitude": 59.9, "longitude": 10.7})).text == "In Oslo."


def test_the_example_test_passes() -> None:
    runpy.run_path(str(EXAMPLES[3]), run_name="__main__")


def test_every_example_is_tested_here() -> None:
    assert [path.name[:2] for path in EXAMPLES] == ["01", "02", "03", "04", "05", "06", "07", "08"]


async def test_the_server_of_the_readme_takes_nobodys_word_for_who_they_are() -> None:
    """What its page does with it, tests/browser/documents.test.ts shows."""
    readme = run_page(ROOT / "README.md")
    put_scripted_model(readme["bridge"], "Hello.")
    transport = httpx.ASGITransport(readme["app"])
    said = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as ann:
        assert (await ann.post("/api/chat", json={"id": "c1", "messages": [said]})).status_code == 200
        assert (await ann.get("/api/chat/c1/messages")).status_code == 200
        [(name, value)] = ann.cookies.items()
    for cookie in (None, f"{name}={value[:-1]}", f"{name}={value}x", "user=ann"):
        headers = {"x-user": "ann", **({"cookie": cookie} if cookie else {})}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000", headers=headers) as bob:
            assert (await bob.get("/api/chat/c1/messages")).status_code == 404
    await readme["bridge"].aclose()


async def test_the_live_example_asks_before_it_sends_money() -> None:
    example = load(next(path for path in EXAMPLES if path.name.startswith("07")))
    example.agent.model = ScriptedLiveModel([[call("send_money", amount=5, recipient="Bob")], "Sent."], family="2.5")

    async with live_socket(example.app) as nobody:
        assert await nobody.until(lambda: nobody.close_code) == 1008
    async with live_socket(example.app, headers={"cookie": "session=ann"}) as client:
        asked = await client.say("Send Bob 5 dollars")
        told = await client.decide(asked, approved=True)
        assert (told.types[1], told.text) == ("tool-output-available", "Sent.")
    await example.bridge.aclose()
