"""The code of the pages does what they say. That all of it runs, tests/test_docs.py shows."""

import asyncio
import inspect
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from adk_stream_protocol.testing import ChatClient, ScriptedModel, call
from support.documents import ROOT, run_page
from support.sessions import KEY, signed_in

DOCS = ROOT / "docs"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_KEY", KEY)


async def post(app: Any, path: str) -> Any:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        return (await http.post(path)).json()


async def test_long_running() -> None:
    code = run_page(DOCS / "topics" / "long-running.md")
    code["root_agent"].model = ScriptedModel([[call("export_data", table="sales")], "Started.", "All exported."])
    client = ChatClient(code["app"], chat_id="c1", headers=signed_in())
    await client.send("Export.")
    assert await post(code["app"], "/webhooks/job-1?percent=10") == {"output": {"percent": 10}}
    for _ in range(2):
        assert await post(code["app"], "/webhooks/job-1?percent=100&rows=5") == {"output": {"rows": 5}}
    while "All exported." not in str(messages := await code["bridge"].messages("ann", "c1")):
        await asyncio.sleep(0)
    assert [part["output"] for part in messages[1]["parts"] if "output" in part] == [{"rows": 5}]
    await code["bridge"].aclose()


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL.:UserWarning")  # ADK's own
async def test_credentials() -> None:
    code = run_page(DOCS / "topics" / "credentials.md")
    code["root_agent"].model = ScriptedModel([[call("read_calendar")], "The provider gave no token."])
    client = ChatClient(code["app"], chat_id="c1", headers=signed_in())
    [request] = (await client.send("Am I free?")).of_type("data-adk-auth-request")
    [state] = parse_qs(urlsplit(request["data"]["authUri"]).query)["state"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(code["app"]), base_url="https://app.example") as http:
        refused = {"state": state, "error": "access_denied"}
        answer = await http.get("/oauth/callback", params=refused, headers=signed_in())
    assert answer.json() == "You may close this window."
    while "The provider gave no token." not in str(await code["bridge"].messages("ann", "c1")):
        await asyncio.sleep(0)
    await code["bridge"].aclose()


def test_testing() -> None:
    code = run_page(DOCS / "howto" / "testing.md")
    tests = [found for name, found in code.items() if name.startswith("test_") and inspect.isfunction(found)]
    assert len(tests) == 5
    for test in tests:
        test()
