"""A client's turn as the content that ADK gives to the model."""

from google.genai import types

from ..protocol.turn import FileInput, TextInput, Turn


def encode_content(turn: Turn) -> types.Content:
    return types.Content(role="user", parts=[_part(part) for part in turn.parts])


def _part(part: TextInput | FileInput) -> types.Part:
    if isinstance(part, TextInput):
        return types.Part(text=part.text)
    if isinstance(part.content, bytes):
        blob = types.Blob(data=part.content, mime_type=part.media_type, display_name=part.filename)
        return types.Part(inline_data=blob)
    link = types.FileData(file_uri=part.content, mime_type=part.media_type, display_name=part.filename)
    return types.Part(file_data=link)
