"""Approvers decide in their inbox, and the chat of the call goes on by itself."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import FunctionTool

from adk_stream_protocol import ApprovalPolicy, ApprovalRequest, Chain, Link, Nobody, client_tool
from adk_stream_protocol.testing import call
from support.approvers import CHAINED, ended, groups_of, in_chain, of, reload, shown, until, virtual_store
from support.pages import Page, Till, page, results_told

# -- a chain ----------------------------------------------------------------------------------------------------------


async def test_manager_then_executive_decide_and_the_call_runs_with_nobody_connected() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), **CHAINED) as at:
        asked = await at.say("Pay.")
        assert asked.of_type("tool-approval-request") == []
        assert at.states("pay") == ["input-available"]
        assert shown(at)["status"] == "pending"
        assert [link["status"] for link in shown(at)["chain"]] == ["waiting", "pending"]
        max_, eva = of(at, "max", "managers"), of(at, "eva")
        assert await eva.inbox() == []
        (card,) = await max_.inbox()
        assert (card["tool"], card["arguments"], card["user"]) == ("pay", {"amount": 5}, "ann")
        first = await max_.decide(reason="It is due.")
        assert (first.status_code, first.json()["status"]) == (200, "pending")
        assert (till.paid, await max_.inbox()) == ([], [])
        await reload(at)
        assert shown(at)["chain"][0] | {"at": ""} == {
            "approvers": ["group:managers"],
            "status": "approved",
            "by": "max",
            "reason": "It is due.",
            "at": "",
        }
        second = await eva.decide()
        assert (second.status_code, second.json()["status"]) == (200, "approved")
        await ended(at)
        assert till.paid == [5]
        assert at.part("pay")["output"] == {"paid": 5}
        assert results_told(at.chat.model) == [{"paid": 5}]
        assert at.messages[-1]["parts"][-1] == {"type": "text", "text": "Paid.", "state": "done"}
        assert (shown(at)["status"], [link["by"] for link in shown(at)["chain"]]) == ("approved", ["max", "eva"])


@pytest.mark.parametrize("link", [0, 1])
async def test_a_denial_anywhere_ends_it_and_the_model_is_told(link: int) -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Not paid.", tools=(till.gated,), **CHAINED) as at:
        await at.say("Pay.")
        people = [of(at, "max", "managers"), of(at, "eva")]
        for person in people[:link]:
            await person.decide()
        denied = await people[link].decide(False, reason="Too much.")
        assert denied.json()["status"] == "denied"
        await ended(at)
        assert till.paid == []
        assert results_told(at.chat.model) == [
            {"error": "This call was not run: an approver denied it. Reason: Too much."}
        ]
        assert at.part("pay")["state"] == "output-error"
        assert (shown(at)["status"], shown(at)["chain"][link]["status"]) == ("denied", "denied")


async def test_a_tool_without_a_gate_of_its_own_waits_for_whom_the_policy_names() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(FunctionTool(till.pay),), **CHAINED) as at:
        await at.say("Pay.")
        assert till.paid == []
        await of(at, "max", "managers").decide()
        await of(at, "eva").decide()
        await ended(at)
        assert till.paid == [5]


async def test_what_is_recorded_is_told_to_whoever_repeats_and_to_nobody_else() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), **CHAINED) as at:
        await at.say("Pay.")
        max_, eva, owner = of(at, "max", "managers"), of(at, "eva"), of(at, "ann", "managers")
        (card,) = await max_.inbox()
        said = {"approved": True, "digest": card["digest"]}
        strangers = [eva, owner, of(at, "zoe", "executives"), of(at, "group:managers"), of(at, "Max")]
        for stranger in strangers:
            assert await stranger.inbox() == []
            refused = await stranger.post(card["id"], **said)
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not-found")
        assert (await max_.post("adk-invented", **said)).content == (await eva.post(card["id"], **said)).content
        first = await max_.post(card["id"], **said)
        assert (await max_.post(card["id"], **said)).json() == first.json()
        assert (await max_.post(card["id"], approved=False, digest=card["digest"])).json() == first.json()
        colleague = await of(at, "meg", "managers").post(card["id"], **said)
        assert colleague.json() == first.json()
        last = await eva.post(card["id"], **said)
        await ended(at)
        assert (await eva.post(card["id"], **said)).json() == last.json()
        assert till.paid == [5]
        assert (await owner.post(card["id"], **said)).status_code == 404


async def test_another_digest_is_refused_as_such_and_only_to_those_who_are_asked() -> None:
    async with page([call("pay", amount=5)], tools=(Till().gated,), **CHAINED) as at:
        await at.say("Pay.")
        (card,) = await of(at, "max", "managers").inbox()
        wrong = {"approved": True, "digest": "0" * 64}
        refused = await of(at, "max", "managers").post(card["id"], **wrong)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "another-digest")
        assert (await of(at, "eva").post(card["id"], **wrong)).status_code == 404
        assert len(await of(at, "max", "managers").inbox()) == 1


@pytest.mark.parametrize(
    "body",
    [{}, {"approved": "yes", "digest": "x"}, {"approved": True}, {"approved": True, "digest": "x", "reason": 1}, []],
)
async def test_a_body_that_is_no_decision_is_refused(body: Any) -> None:
    async with page([call("pay", amount=5)], tools=(Till().gated,), **CHAINED) as at:
        await at.say("Pay.")
        max_ = of(at, "max", "managers")
        (card,) = await max_.inbox()
        assert (await max_.fetch("POST", f"/{card['id']}", json=body)).status_code == 400


async def test_the_owner_who_is_not_named_cannot_answer_in_his_chat() -> None:
    till = Till()
    async with page([call("pay", amount=5)], tools=(till.gated,), **CHAINED) as at:
        await at.say("Pay.")
        (card,) = await of(at, "max", "managers").inbox()
        part = at.part("pay")
        part |= {"state": "approval-responded", "approval": {"id": card["id"], "approved": True}}
        refused = await at.answer()
        assert (refused.status, till.paid) == (404, [])
        assert len(await of(at, "max", "managers").inbox()) == 1


@pytest.mark.parametrize("is_last", [True, False])
async def test_the_owner_who_is_named_is_asked_in_his_chat(is_last: bool) -> None:
    till = Till()
    names = ("eva", "ann") if is_last else ("ann", "eva")
    options = {"approvals": in_chain(*names), "groups": groups_of}
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,), **options) as at:
        await at.say("Pay.")
        if is_last:
            assert at.states("pay") == ["input-available"]
            await of(at, "eva").decide()
            tab = await at.second_tab()
            tab._judges.clear()  # pyright: ignore[reportPrivateUsage]
            assert tab.states("pay") == ["approval-requested"]
            part = tab.part("pay")
            part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": True}}
            assert (await tab.chat.post({"id": "c1", "messages": tab.messages})).status == 200
        else:
            assert at.states("pay") == ["approval-requested"]
            at.decide("pay")
            answered = await at.answer()
            assert answered.types == ["start", "data-adk-approval", "finish"]
            assert [link["status"] for link in shown(at)["chain"]] == ["approved", "waiting"]
            assert (till.paid, at.states("pay")) == ([], ["approval-responded"])
            again = await at.second_tab()
            assert again.states("pay") == ["approval-responded"]
            await of(at, "eva").decide()
        await ended(at)
        assert till.paid == [5]


@pytest.mark.virtual_time
async def test_a_link_that_does_not_decide_in_time_ends_the_chain_and_the_model_is_told_by_itself() -> None:
    till = Till()
    policy = in_chain("max", Link(["eva"], deadline_s=30), deadline_s=100)
    async with page(
        [call("pay", amount=5)], "Too late.", tools=(till.gated,), approvals=policy, record=virtual_store()
    ) as at:
        await at.say("Pay.")
        await asyncio.sleep(90)
        await of(at, "max").decide()
        await asyncio.sleep(29)
        assert len(await of(at, "eva").inbox()) == 1
        await asyncio.sleep(2)
        assert await of(at, "eva").inbox() == []
        await asyncio.sleep(60)
        await ended(at)
        assert till.paid == []
        assert "expired" in results_told(at.chat.model)[0]["error"]
        assert (shown(at)["status"], shown(at)["chain"][1]["status"]) == ("expired", "expired")


async def test_a_new_message_runs_meanwhile_and_the_chain_stays() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Hello.", "Paid.", tools=(till.gated,), **CHAINED) as at:
        await at.say("Pay.")
        assert (await at.say("Hi.")).text == "Hello."
        await of(at, "max", "managers").decide()
        await of(at, "eva").decide()
        await ended(at)
        assert till.paid == [5]


# -- the inbox --------------------------------------------------------------------------------------------------------


async def test_the_inbox_lists_across_chats_newest_first_in_pages() -> None:
    many = [[call("pay", amount=amount)] for amount in range(5)]
    async with page(*many, tools=(Till().gated,), **CHAINED) as at:
        for place in range(5):
            await Page(at.chat.of(chat_id=f"c{place}", user=f"user-{place}")).say("Pay.")
        max_ = of(at, "max", "managers")
        assert [card["arguments"]["amount"] for card in await max_.inbox()] == [4, 3, 2, 1, 0]
        first = (await max_.fetch("GET", "?limit=3")).json()
        rest = (await max_.fetch("GET", f"?limit=3&cursor={first['cursor']}")).json()
        assert [card["user"] for card in rest["approvals"]] == ["user-1", "user-0"]
        assert rest["cursor"] is None
        for wrong in ("0", "-1", "x", "1.5", ""):
            refused = await max_.fetch("GET", f"?limit={wrong}")
            assert refused.status_code == 400
            assert refused.json()["error"]["message"] == "`limit` must be a whole number from 1 to 99999."


async def test_the_owners_own_approvals_are_in_his_inbox_and_can_be_decided_there() -> None:
    till = Till()
    async with page([call("pay", amount=5)], "Paid.", tools=(till.gated,)) as at:
        await at.say("Pay.")
        (card,) = await of(at, "ann").inbox()
        assert card["id"] == at.part("pay")["approval"]["id"]
        assert await of(at, "bob").inbox() == []
        assert (await of(at, "bob").post(card["id"], approved=True, digest=card["digest"])).status_code == 404
        assert (await of(at, "ann").decide()).json()["status"] == "approved"
        await ended(at)
        assert till.paid == [5]


async def test_the_chat_id_of_the_inbox_is_reserved() -> None:
    async with page("Hello.", chat_id="approvals") as at:
        assert (await at.say("Hi.")).status == 400


# -- the browser ------------------------------------------------------------------------------------------------------


async def test_a_browsers_tool_is_given_to_the_browser_after_the_chain() -> None:
    tool = client_tool("locate", "Where?", output={"type": "string"})
    async with page([call("locate")], "There.", tools=(tool,), approvals=in_chain("max")) as at:
        asked = await at.say("Where?")
        assert asked.of_type("tool-input-available") == asked.of_type("tool-approval-request") == []
        await of(at, "max").decide()
        await until(lambda: not any(task.get_name() == "adk-stream decided" for task in asyncio.all_tasks()))
        await until(lambda: not at.chat.is_running)
        await reload(at)
        assert at.states("locate") == ["input-available"]
        part = at.part("locate")
        part |= {"state": "output-available", "output": "Tokyo"}
        assert (await at.chat.post({"id": "c1", "messages": at.messages})).text == "There."


# -- the run that follows ---------------------------------------------------------------------------------------------


@pytest.mark.virtual_time
async def test_such_a_run_goes_on_without_a_reader() -> None:
    till = Till()
    replies = [[call("pay", amount=5)], [call("think")], "Paid."]

    async def think() -> str:
        """Thinks for longer than a run without a reader may."""
        await asyncio.sleep(300)
        return "done"

    def decide(request: ApprovalRequest) -> Any:
        return Chain([Link(["max"])]) if request.tool == "pay" else Nobody

    policy = ApprovalPolicy(decide=decide)
    async with page(*replies, tools=(FunctionTool(till.pay), FunctionTool(think)), approvals=policy) as at:
        await at.say("Pay.")
        await of(at, "max").decide()
        await asyncio.sleep(400)
        await ended(at)
        assert results_told(at.chat.model)[-1] == {"result": "done"}
