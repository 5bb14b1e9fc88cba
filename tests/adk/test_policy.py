"""What people read when they are asked."""

from adk_stream_protocol import ApprovalPolicy
from adk_stream_protocol.adk.calls.policy import is_for_people


def test_a_hint_is_a_text_or_made_from_the_arguments() -> None:
    policy = ApprovalPolicy(hints={"pay": lambda arguments: f"Pay {arguments['amount']}?", "locate": "Where?"})
    assert policy.hint("pay", {"amount": 5}) == "Pay 5?"
    assert policy.hint("locate", {}) == "Where?"
    assert policy.hint("balance", {}) is None


def test_adks_own_hint_is_for_programs() -> None:
    asked = "Please approve or reject the tool call pay() "
    assert not is_for_people(asked + "by responding with a FunctionResponse with an expected ToolConfirmation payload.")
    assert is_for_people(asked)
    assert is_for_people(None)
