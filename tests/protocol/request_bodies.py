"""Bodies of requests: what `useChat` posts, and what resembles it."""

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from adk_stream_protocol.limits import Limits
from adk_stream_protocol.protocol.turn import FileInput, TextInput, Turn, decode_turn

LIMITS = Limits()
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def text(words: Any = "hi") -> dict[str, Any]:
    return {"type": "text", "text": words}


def file(url: Any = "data:image/png;base64,AP8=", media_type: Any = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "file", "mediaType": media_type, "url": url, **more}


def user(*parts: Any, id: Any = "u1", **more: Any) -> dict[str, Any]:
    return {"id": id, "role": "user", "parts": list(parts or [text()]), **more}


def body(*messages: Any, **fields: Any) -> bytes:
    """What `useChat` posts; a field of None is left out."""
    posted = {"id": "chat", "trigger": "submit-message", "messages": list(messages or [user()])} | fields
    return json.dumps({name: value for name, value in posted.items() if value is not None}).encode()


def hello(
    chat_id: str = "chat", message_id: str | None = "u1", version: Any = None, style: Any = None, **again: Any
) -> Turn:
    return Turn(chat_id, message_id, (TextInput("hi"),), version, style, **again)


HELLO = hello()
TOOL_PART = {"type": "tool-add", "toolCallId": "a", "state": "output-available", "input": {}, "output": 1}
ANSWER = {"id": "m1", "role": "assistant", "parts": [{"type": "step-start"}, TOOL_PART, text("2")]}

some_id = st.sampled_from(["chat", "u1", "", "a b", 7, None])
some_part = st.one_of(
    st.builds(text, st.text(max_size=4) | st.none()),
    st.builds(
        file,
        st.sampled_from(["data:", "data:,%zz", "data:;base64,", "http://"]).flatmap(
            lambda head: st.text("A=%é", max_size=4).map(lambda tail: head + tail)
        ),
        st.sampled_from(["image/png", "é/b", "", 1]),
        filename=st.text(max_size=3) | st.none(),
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["data-x", "tool-x", None, 3])}),
)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
some_message = (
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "user", "user", "assistant", "system", 1])},
        optional={"id": some_id, "parts": st.lists(some_part, max_size=3)},
    )
    | json_value
)


def parts_of(*parts: Any, limits: Limits = LIMITS) -> tuple[TextInput | FileInput, ...]:
    return decode_turn(body(user(*parts)), limits).parts
