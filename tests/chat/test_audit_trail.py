"""The audit trail: by the bridge, over HTTP for the owner, and by command."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from adk_stream_protocol import cli
from adk_stream_protocol.testing import call
from support.approvers import Approver, in_chain, until
from support.commands import COMMAND
from support.pages import Till, page


async def test_the_owner_reads_the_trail_of_his_chat_and_nobody_else_does() -> None:
    policy = in_chain("max", "eva", cards={"pay": {"title": "Payment"}}, hints={"pay": "Pay?"})
    async with page([call("pay", amount=5)], "Paid.", tools=(Till().gated,), approvals=policy) as at:
        await at.say("Pay.")
        await Approver(at.chat.app, "max").decide(reason="Fine.")
        await Approver(at.chat.app, "eva").decide()

        async def is_done() -> bool:
            return (await at.chat.bridge.audit("ann", "c1"))[-1].state == "done" and not at.chat.is_running

        await until(is_done)
        lines = (await at.chat.request("GET", "/audit")).json()
        assert [line["state"] for line in lines] == ["in-chain", "in-chain", "approved", "claimed", "started", "done"]
        asked, first, last = lines[:3]
        assert (asked["hint"], asked["card"], asked["arguments"]) == ("Pay?", {"title": "Payment"}, {"amount": 5})
        assert asked["approvers"] == [["max"], ["eva"]]
        (card,) = [part for part in (await at.chat.messages())[-1]["parts"] if part["type"] == "data-adk-approval"]
        assert asked["approval_id"] == card["id"]
        assert (first["by"], first["link"], first["reason"]) == ("max", 0, "Fine.")
        assert (last["by"], last["link"]) == ("eva", 1)
        foreign = await at.chat.of(user="max").request("GET", "/audit")
        unknown = await at.chat.of(user="max", chat_id="c9").request("GET", "/audit")
        assert (foreign.status_code, foreign.content) == (404, unknown.content)


async def test_the_trail_outlives_its_chat_and_a_chat_without_calls_has_an_empty_one() -> None:
    async with page([call("pay", amount=5)], "Hello.", tools=(Till().gated,)) as at:
        await at.say("Pay.")
        await at.chat.of(chat_id="c2").say("Hi.")
        assert (await at.chat.of(chat_id="c2").request("GET", "/audit")).json() == []
        assert (await at.chat.request("DELETE")).status_code == 204
        assert [line["state"] for line in (await at.chat.request("GET", "/audit")).json()] == ["pending"]


async def test_the_bridge_finds_lines_by_user_tool_and_time() -> None:
    script = [[call("pay", amount=1)], [call("pay", amount=2)]]
    async with page(*script, tools=(Till().gated,)) as at:
        await at.say("Pay.")
        await at.chat.of(user="bob", chat_id="c2").say("Pay.")
        bridge = at.chat.bridge
        assert [line.chat.user_id for line in await bridge.audit()] == ["ann", "bob"]
        assert [line.chat.chat_id for line in await bridge.audit("bob")] == ["c2"]
        assert len(await bridge.audit(tool="pay")) == 2
        assert await bridge.audit(tool="ship") == await bridge.audit(until=1.0) == await bridge.audit("bob", "c1") == []
        assert len(await bridge.audit(since=1.0)) == 2


async def test_the_command_prints_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/chats.db"
    async with page([call("pay", amount=5)], tools=(Till().gated,), record=url) as at:
        await at.say("Pay.")
        at.decide("pay", approved=False)
        await at.answer()

    async def lines(*options: str) -> list[dict[str, object]]:
        await asyncio.to_thread(cli.main, ["audit", "--database", url, *options])  # it has a loop of its own
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [(line["state"], line.get("by")) for line in await lines()] == [("pending", None), ("denied", "ann")]
    assert len(await lines("--user", "ann", "--tool", "pay", "--since", "2020-01-01")) == 2
    assert await lines("--user", "bob") == await lines("--until", "2020-01-01T00:00:00Z") == []


def test_the_command_refuses_a_database_that_it_does_not_know() -> None:
    refused = subprocess.run(
        [COMMAND, "audit", "--database", "nothing://"], capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
