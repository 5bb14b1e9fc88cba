"""A live session: the agent of the fifth example over one WebSocket, with voice.

The routes are there already. In the page, with `ai` 7 or with `adk-stream-client`:

    useChat({ transport: new WebSocketChatTransport({ url: "/api/chat/live" }) })
"""

from fastapi import FastAPI
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.tools import FunctionTool
from google.genai import types
from starlette.requests import HTTPConnection

from adk_stream_protocol import ChatBridge


def send_money(amount: int, recipient: str) -> dict[str, object]:
    """Send money from the user's account."""
    return {"sent": amount, "to": recipient}


def user_of(connection: HTTPConnection) -> str | None:
    """A page cannot set headers on its WebSocket: a cookie tells who it is."""
    return connection.cookies.get("session")  # look it up where you keep your sessions


agent = LlmAgent(
    name="teller",
    model="gemini-2.5-flash-native-audio-latest",
    tools=[FunctionTool(send_money, require_confirmation=True)],
)
bridge = ChatBridge(
    agent,
    user_id=user_of,
    run_config=RunConfig(
        response_modalities=[types.Modality.AUDIO],
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
    ),
)
app = FastAPI()
app.include_router(bridge.router("/api/chat"))
