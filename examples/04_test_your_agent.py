"""A test of your agent as the page sees it, without a model and without a network."""

import asyncio

from fastapi import FastAPI
from google.adk.agents import LlmAgent

from adk_stream_protocol import ChatBridge
from adk_stream_protocol.testing import ChatClient, ScriptedModel, call


def get_weather(location: str) -> dict[str, str]:
    """The weather somewhere."""
    return {"location": location, "condition": "sunny"}


def test_the_weather_is_looked_up_and_told() -> None:
    model = ScriptedModel([[call("get_weather", location="Oslo")], "Sunny in Oslo."])
    agent = LlmAgent(name="weather", model=model, tools=[get_weather])
    app = FastAPI()
    app.include_router(ChatBridge(agent, user_id=lambda _: "ann").router("/api/chat"))

    answer = asyncio.run(ChatClient(app).send("How is Oslo?"))

    assert answer.of_type("tool-output-available")[0]["output"]["condition"] == "sunny"
    assert answer.text == "Sunny in Oslo."
    assert len(model.requests) == 2


if __name__ == "__main__":
    test_the_weather_is_looked_up_and_told()
    print("passed")
