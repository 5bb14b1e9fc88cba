"""A true answer said again, where it could be taken for something else."""

from typing import Any

from google.genai import types

from adk_stream_protocol import client_tool
from adk_stream_protocol.testing import call
from security.bank import FORGED, Asked, Bank, answer_body, approval_of, output_of
from support.apps import app_of


async def test_an_approval_sent_again_is_not_the_output_of_the_browser() -> None:
    """For the second of two tabs the call is approved already, and whatever else is said about it may be an output."""
    bank = Bank([call("where")], "There you are.")
    bank.app = app_of(bank.bridge_with([client_tool("where", "Where the user is.", approve=True)]))
    asked = await bank.asks()
    approved = asked.results_body({"toolCallId": asked.part["toolCallId"], "output": {"approved": True}})
    told = [await bank.post(approved) for _ in range(3)]
    assert [answer.status for answer in told] == [200, 200, 200]
    assert len(bank.model.requests) == 1
    freed = Asked(bank, asked.client, await asked.client.approve(asked.answer))
    done = await freed.client.output(freed.answer, {"latitude": 60})
    assert done.text == "There you are."
    assert "approved" not in bank.model.requests[-1].model_dump_json()


# -- namesakes --------------------------------------------------------------------------------------------------------


def numbered(name: str, /, **arguments: Any) -> list[types.Part]:
    """Some models number their calls anew in every answer."""
    return [types.Part(function_call=types.FunctionCall(id="call_0", name=name, args=arguments))]


async def test_an_output_sent_again_is_not_taken_for_that_of_a_later_namesake() -> None:
    bank = Bank(numbered("play", track=1), "It plays.", numbered("play", track=1), "It plays again.")
    first = await bank.asks()
    await first.client.output(first.answer, {"plays": "first"})
    second = await bank.asks(chat_id=first.chat_id)
    before = await bank.facts()
    replayed = await first.client.output(first.answer, {"plays": "first"})
    assert replayed.status == 200
    assert replayed.message_id == first.message_id
    assert await bank.facts() == before
    await bank.refuses(first.body(output_of(first.browser_part, {"plays": FORGED})))
    done = await second.client.output(second.answer, {"plays": "second"})
    assert done.text == "It plays again."
    assert bank.model_never_read()


async def test_the_approval_of_one_call_never_runs_its_namesake() -> None:
    """A model numbers its calls anew in every answer."""
    bank = Bank(numbered("pay", amount=1, to="Hanako"), numbered("pay", amount=2, to="Taro"), "Paid.")
    first = await bank.asks()
    second = await bank.asks(chat_id=first.chat_id)
    await bank.refuses(answer_body(first.chat_id, second.message_id, [approval_of(first.part)]))
    await first.client.approve(first.answer)
    assert bank.runs == [("pay", 1, "Hanako")]
    await second.is_approved_after_all({"paid": 2})
    assert bank.runs == [("pay", 1, "Hanako"), ("pay", 2, "Taro")]


async def test_the_same_payment_asked_twice_is_made_once_for_each_approval() -> None:
    bank = Bank(numbered("pay", amount=1, to="Hanako"), "Paid.", numbered("pay", amount=1, to="Hanako"), "Again.")
    first = await bank.asks()
    await first.is_approved_after_all({"paid": 1})
    second = await bank.asks(chat_id=first.chat_id)
    told = await first.client.approve(first.answer)
    assert told.status == 200
    assert bank.runs == [("pay", 1, "Hanako")]
    await second.is_approved_after_all({"paid": 1})
    assert len(bank.runs) == 2
