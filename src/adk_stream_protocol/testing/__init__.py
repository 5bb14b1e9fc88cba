"""For tests of agents behind a bridge: models that follow a script, and a client in the same process.

model = ScriptedModel([[call("get_weather", location="Oslo")], "It is sunny."])
bridge = ChatBridge(LlmAgent(name="helper", model=model, tools=[get_weather]), user_id=lambda _: "ann")
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
answer = await ChatClient(app).send("Weather in Oslo?")
assert answer.text == "It is sunny."

`ScriptedLiveModel` takes the same script and follows it in live mode too, or a coroutine that plays the model's side of
a live session.
"""

from .client import Answer, ChatClient
from .live import ScriptedLiveModel
from .live_session import LiveSession, Received
from .models import Reply, Said, ScriptedModel, call, text, thought

__all__ = [
    "Answer",
    "ChatClient",
    "LiveSession",
    "Received",
    "Reply",
    "Said",
    "ScriptedLiveModel",
    "ScriptedModel",
    "call",
    "text",
    "thought",
]
