import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

from adk_stream_protocol.adk.calls.client_tools import ClientTool
from adk_stream_protocol.demo.agent import GEMINI_MODEL, DemoGemini, build_agent, build_app
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.tools import WALLET_KEY, demo_tools, get_weather, process_payment


class Wallet:
    """What `process_payment` needs of a tool context: the state of one chat and the id of the call."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def pay(self, amount: Any, recipient: str = "Hanako", call_id: str = "call-1", **more: str) -> dict[str, Any]:
        context = SimpleNamespace(state=self.state, function_call_id=call_id)
        return process_payment(amount, recipient, tool_context=context, **more)


def test_weather_of_a_place_is_always_the_same():
    first, second = get_weather("Tokyo"), get_weather("Tokyo")
    assert first == second
    assert set(first) == {"location", "temperature_c", "condition"}
    assert first["location"] == "Tokyo"


def test_places_differ_in_their_weather():
    cities = ["Tokyo", "Paris", "Oslo", "Lima", "Cairo", "Nairobi", "Quito", "Perth"]
    weathers = [get_weather(city) for city in cities]
    assert len({weather["condition"] for weather in weathers}) > 2
    assert len({weather["temperature_c"] for weather in weathers}) > 4


def test_snow_falls_only_in_the_cold():
    weathers = [get_weather(f"place {number}") for number in range(200)]
    snowy = [weather["temperature_c"] for weather in weathers if weather["condition"] == "snowy"]
    others = [weather["temperature_c"] for weather in weathers if weather["condition"] != "snowy"]
    assert snowy
    assert max(snowy) < 5 < min(others)


def test_payment_is_taken_from_a_wallet_of_1000():
    assert Wallet().pay(50) == {
        "success": True,
        "transaction_id": "txn-call-1",
        "amount": 50,
        "recipient": "Hanako",
        "currency": "USD",
        "balance": 950,
        "message": "Sent 50 USD to Hanako.",
    }


def test_wallet_remembers_what_was_paid_before():
    wallet = Wallet()
    first, second = wallet.pay(30, call_id="call-1"), wallet.pay(40.25, call_id="call-2")
    assert (first["balance"], second["balance"]) == (970, 929.75)
    assert first["transaction_id"] != second["transaction_id"]


def test_a_payment_that_was_rewound_is_in_the_wallet_again():
    """ADK's rewind puts None where there was nothing before."""
    wallet = Wallet()
    wallet.pay(30)
    wallet.state[WALLET_KEY] = None
    assert wallet.pay(40)["balance"] == 960


def test_wallet_can_be_emptied_but_not_overdrawn():
    wallet = Wallet()
    assert wallet.pay(1000)["balance"] == 0
    assert wallet.pay(0.01) == {"error": "Insufficient funds: 0.01 USD is more than the balance of 0 USD."}


def test_many_small_payments_do_not_drift():
    wallet = Wallet()
    balances = [wallet.pay(0.1)["balance"] for _ in range(30)]
    assert balances[-1] == 997


def test_payment_names_the_currency_it_was_given():
    result = Wallet().pay(5, currency="EUR")
    assert (result["currency"], result["message"]) == ("EUR", "Sent 5 EUR to Hanako.")


@pytest.mark.parametrize(
    ("amount", "reason"),
    [
        (1000.01, "Insufficient funds"),
        (5000, "Insufficient funds"),
        (0, "positive"),
        (-5, "positive"),
        (math.nan, "positive"),
        (math.inf, "positive"),
        (-math.inf, "positive"),
        ("plenty", "positive"),
        (None, "positive"),
        (10**400, "positive"),
        (0.001, "whole cents"),
    ],
)
def test_impossible_amount_is_an_error_and_leaves_the_wallet_alone(amount: Any, reason: str):
    wallet = Wallet()
    result = wallet.pay(amount)
    assert set(result) == {"error"}
    assert reason in result["error"]
    assert wallet.state == {}
    assert wallet.pay(1)["balance"] == 999


def test_payment_and_location_ask_the_person_and_only_browser_tools_stay_open():
    async def asks(tool: Any) -> bool:
        by_browser = isinstance(tool, ClientTool)
        return await (tool.needs_approval({}, None) if by_browser else tool.check_require_confirmation({}, None))

    kinds = {tool.name: (tool.is_long_running, asyncio.run(asks(tool))) for tool in demo_tools()}
    assert kinds == {
        "get_weather": (False, False),
        "process_payment": (False, True),
        "change_bgm": (True, False),
        "get_location": (True, True),
    }


def test_declarations_show_the_model_exactly_the_arguments_it_may_give():
    parameters = {}
    for tool in demo_tools():
        declaration = tool._get_declaration()
        assert declaration is not None
        schema = declaration.parameters_json_schema or (
            declaration.parameters.model_dump(exclude_none=True) if declaration.parameters else {}
        )
        parameters[tool.name] = (list(schema.get("properties", {})), schema.get("required", []))
    assert parameters == {
        "get_weather": (["location"], ["location"]),
        "process_payment": (["amount", "recipient", "currency"], ["amount", "recipient"]),
        "change_bgm": (["track"], ["track"]),
        "get_location": ([], []),
    }


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("API_KEY", "GENAI_USE_VERTEXAI", "GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(f"GOOGLE_{name}", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    return monkeypatch


def test_without_credentials_the_agent_runs_on_the_offline_model(environment: pytest.MonkeyPatch):
    environment.setenv("GOOGLE_API_KEY", "")
    environment.setenv("GOOGLE_GENAI_USE_VERTEXAI", "false")
    assert isinstance(build_agent().model, OfflineModel)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GOOGLE_API_KEY", "a-key"),
        ("GEMINI_API_KEY", "a-key"),
        ("GOOGLE_GENAI_USE_VERTEXAI", "TRUE"),
        ("GOOGLE_GENAI_USE_ENTERPRISE", "1"),
    ],
)
def test_with_credentials_the_agent_runs_on_gemini(environment: pytest.MonkeyPatch, name: str, value: str):
    environment.setenv(name, value)
    model = build_agent().model
    assert isinstance(model, DemoGemini)
    assert model.model == GEMINI_MODEL


def test_a_model_given_wins_over_the_environment(environment: pytest.MonkeyPatch):
    environment.setenv("GOOGLE_API_KEY", "a-key")
    offline = OfflineModel()
    assert build_agent(offline).model is offline
    assert build_agent("gemini-2.5-pro").model == "gemini-2.5-pro"


def test_app_is_resumable_and_named(environment: pytest.MonkeyPatch):
    app = build_app()
    assert app.name == "adk_stream_demo"
    assert app.root_agent is not None
    assert app.root_agent.name == "demo_agent"
    assert app.resumability_config is not None
    assert app.resumability_config.is_resumable
