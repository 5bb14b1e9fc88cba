"""A client's turn as the content that the model is given."""

from google.genai import types

from adk_stream_protocol.adk.content import encode_content
from adk_stream_protocol.protocol.turn import FileInput, TextInput, Turn


def content_of(*parts: TextInput | FileInput) -> types.Content:
    return encode_content(Turn("chat", "m1", parts, None, None))


def test_text_is_the_user_s() -> None:
    assert content_of(TextInput("hi")) == types.Content(role="user", parts=[types.Part(text="hi")])


def test_bytes_go_inline_under_their_name() -> None:
    blob = types.Blob(data=b"PNG", mime_type="image/png", display_name="a.png")
    assert content_of(FileInput("image/png", b"PNG", "a.png")).parts == [types.Part(inline_data=blob)]


def test_a_link_stays_a_link() -> None:
    link = types.FileData(file_uri="https://a.example/a.pdf", mime_type="application/pdf")
    assert content_of(FileInput("application/pdf", "https://a.example/a.pdf")).parts == [types.Part(file_data=link)]


def test_parts_keep_their_order() -> None:
    parts = content_of(FileInput("image/png", b"PNG"), TextInput("What is it?")).parts
    assert parts is not None
    assert [part.text for part in parts] == [None, "What is it?"]
