"""For tests of agents behind a bridge: models that follow a script, and a client in the same process.

model = ScriptedModel([[call("get_weather", location="Oslo")], "It is sunny."])
bridge = ChatBridge(LlmAgent(name="helper", model=model, tools=[get_weather]), user_id=lambda _: "ann")
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
answer = await ChatClient(app).send("Weather in Oslo?")
assert answer.text == "It is sunny."

`ScriptedLiveModel` follows the same script in live mode, too. Instead of a script it takes a coroutine function that
plays the model in a live session.
"""

from .client import Answer, ChatClient
from .live_model import ScriptedLiveModel
from .live_session import LiveSession
from .models import Reply, Said, ScriptedModel, call, text, thought
from .received import Received

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
