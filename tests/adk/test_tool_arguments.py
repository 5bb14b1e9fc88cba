"""Leaves by path become JSON text, and a call is shown only when a second chunk has proved it."""

import json
from typing import Any

import pytest
from google.adk.utils.streaming_utils import _JsonPathTracker
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adk.agent_runs import streamed_call
from adk_stream_protocol.adk.translate.tool_arguments import (
    ArgumentText,
    JsonText,
    OutOfOrder,
    StreamedArguments,
    parse_json_path,
)

# -- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("$.city", ("city",)),
        ("city", ("city",)),
        ("$.place.city", ("place", "city")),
        ("$.stops[0].city", ("stops", 0, "city")),
        ("$.stops[ 12 ]", ("stops", 12)),
        ("$['first name']", ("first name",)),
        ('$["a.b"].c', ("a.b", "c")),
        (r"$['it\'s']", ("it's",)),
        (r"$['line\nbreak']", ("line\nbreak",)),
        (r"$['\u00e9']", ("é",)),
        ("$", ()),
    ],
)
def test_a_path_is_read_as_adk_reads_it(path: str, keys: tuple[Any, ...]) -> None:
    assert parse_json_path(path) == keys


# -- JSON text --------------------------------------------------------------------------------------------------------


def written(*leaves: tuple[tuple[str | int, ...], Any]) -> str:
    text = JsonText()
    return "".join(text.write(path, value) for path, value in leaves)


@pytest.mark.parametrize(
    ("leaves", "text"),
    [
        ([(("a",), "x")], '{"a":"x'),
        ([(("a",), "x"), (("a",), "y")], '{"a":"xy'),
        ([(("a",), "x"), (("b",), 1.5)], '{"a":"x","b":1.5'),
        ([(("a",), 50.0)], '{"a":50'),
        ([(("a",), True), (("b",), None)], '{"a":true,"b":null'),
        ([(("a", "b"), 1.0), (("c",), 2.0)], '{"a":{"b":1},"c":2'),
        ([(("a", 0), 1.0), (("a", 1), 2.0)], '{"a":[1,2'),
        ([(("a", 0, "b"), "x"), (("a", 1, "b"), "y")], '{"a":[{"b":"x"},{"b":"y'),
        ([(("a", 0, 0), 1.0), (("a", 1, 0), 2.0)], '{"a":[[1],[2'),
        ([(('"',), 'say "hi"\n')], '{"\\"":"say \\"hi\\"\\n'),
        ([(("ö",), "ü")], '{"ö":"ü'),
    ],
)
def test_leaves_in_order_are_the_beginning_of_a_json_text(leaves: list[Any], text: str) -> None:
    assert written(*leaves) == text


@pytest.mark.parametrize(
    "leaves",
    [
        [((), "x")],
        [(("a",), 1.0), (("a",), 2.0)],
        [(("a", "b"), 1.0), (("c",), 1.0), (("a", "d"), 1.0)],
        [(("a", 1), 1.0)],
        [(("a", 0), 1.0), (("a", "b"), 1.0)],
        [(("a",), "x"), (("b",), "y"), (("a",), "z")],
    ],
)
def test_a_leaf_that_belongs_before_what_is_written_is_refused(leaves: list[Any]) -> None:
    with pytest.raises(OutOfOrder):
        written(*leaves)


json_values = st.recursive(
    st.text(min_size=1, max_size=5) | st.integers(-99, 99) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=3), inner, min_size=1)
    ),
    max_leaves=8,
)


def leaves_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves_of(inner, (*path, key))]
    if isinstance(value, list):
        return [leaf for index, inner in enumerate(value) for leaf in leaves_of(inner, (*path, index))]
    if isinstance(value, str):
        return [(path, piece) for piece in value]
    return [(path, float(value) if type(value) is int else value)]


def closed(text: str) -> str:
    """The text with everything closed that is open in it."""
    closers: list[str] = []
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            closers.append("}" if character == "{" else "]")
        elif character in "}]":
            closers.pop()
    return text + ('"' if in_string else "") + "".join(reversed(closers))


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=3), json_values, min_size=1, max_size=4))
def test_the_leaves_of_any_object_add_up_to_it(value: dict[str, Any]) -> None:
    assert json.loads(closed(written(*leaves_of(value)))) == value


# -- calls ------------------------------------------------------------------------------------------------------------


def shown(*chunks: types.Part) -> list[ArgumentText]:
    arguments = StreamedArguments()
    return [piece for chunk in chunks if chunk.function_call for piece in arguments.feed(chunk.function_call)]


def test_a_call_is_shown_with_its_second_chunk() -> None:
    first, second = streamed_call("c1", "f", ("$.a", "x")), streamed_call("c1", None, ("$.a", "y"))
    assert shown(first) == []
    assert shown(first, second) == [ArgumentText("c1", "f", '{"a":"xy', opens=True)]


def test_only_the_first_piece_of_a_call_opens_it() -> None:
    chunks = [streamed_call("c1", "f", ("$.a", piece)) for piece in "xyz"]
    assert [piece.opens for piece in shown(*chunks)] == [True, False]


def test_a_whole_call_adds_nothing() -> None:
    whole = types.Part(function_call=types.FunctionCall(id="c1", name="f", args={"a": 1}))
    assert shown(whole, whole) == []


def test_leaves_out_of_order_end_the_preview_and_nothing_else() -> None:
    chunks = [
        streamed_call("c1", "f", ("$.a.b", 1.0)),
        streamed_call("c1", "f", ("$.c", 1.0)),
        streamed_call("c1", "f", ("$.a.d", 1.0)),
        streamed_call("c1", "f", ("$.e", 1.0)),
    ]
    assert "".join(piece.text for piece in shown(*chunks)) == '{"a":{"b":1},"c":1'


def test_an_empty_container_waits_for_the_whole_call() -> None:
    """It comes as a path without a value, which says neither {} nor []."""
    empty = types.Part(
        function_call=types.FunctionCall(id="c1", partial_args=[types.PartialArg(json_path="$.a")], will_continue=True)
    )
    chunks = [streamed_call("c1", "f"), empty, streamed_call("c1", "f", ("$.b", 1.0))]
    assert "".join(piece.text for piece in shown(*chunks)) == '{"b":1'


def test_a_raw_fragment_without_a_call_of_its_name_is_not_shown() -> None:
    assert shown(streamed_call("adk-1", "f", '{"a"'), streamed_call("adk-2", "f", ":1}")) == []


def test_raw_fragments_belong_to_the_newest_call_of_their_name() -> None:
    def first(call_id: str) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id=call_id, name="f", partial_args=[]))

    fragments = [streamed_call(f"adk-{number}", "f", "{}", goes_on=None) for number in range(2)]
    pieces = shown(first("c1"), fragments[0], first("c2"), fragments[1])
    assert [(piece.call_id, piece.text) for piece in pieces] == [("c1", "{}"), ("c2", "{}")]


def test_fragments_that_the_first_raw_chunk_already_holds_are_shown_once() -> None:
    """ADK appends to the object that it has sent; a slow reader finds the later fragments in it."""
    first = types.Part(
        function_call=types.FunctionCall(id="c1", name="f", partial_args=[types.PartialArg(string_value='{"a":1}')])
    )
    assert [piece.text for piece in shown(first, streamed_call("adk-1", "f", '{"a":1}'))] == ['{"a":1}']


def test_after_clear_an_id_is_that_of_a_new_call() -> None:
    arguments = StreamedArguments()
    for _ in range(2):
        chunk = streamed_call("0", "f", ("$.a", "x")).function_call
        assert chunk is not None
        assert list(arguments.feed(chunk)) == []
        arguments.clear()


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_what_adk_s_tracker_makes_of_json_comes_back_as_that_json(size: int) -> None:
    """The tracker is behind LiteLLM, Anthropic, OpenAI and Apigee."""
    source = {"city": 'Zürich "old" town', "days": 3, "stops": [{"name": "a"}, {"name": "b"}], "fast": True}
    raw = json.dumps(source, ensure_ascii=False)
    tracker = _JsonPathTracker()
    chunks = [streamed_call("c1", "f")]
    for start in range(0, len(raw), size):
        arguments = tracker.handle_chunk(raw[start : start + size])
        call = types.FunctionCall(id="c1", name="f", partial_args=arguments or None, will_continue=True)
        chunks.append(types.Part(function_call=call))
    text = "".join(piece.text for piece in shown(*chunks))
    assert json.loads(closed(text)) == source
