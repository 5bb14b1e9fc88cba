"""The JSON of every chunk: its exact fields, and values that JSON has no place for."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from adk_stream_protocol.protocol import chunks as c
from adk_stream_protocol.protocol.chunks import encode_json, plain_json

LONE_SURROGATE = "\ud83d"
ADK = {"adk": {"author": "root"}}

EVERY_KIND = [
    (c.Start(), '{"type":"start"}'),
    (c.Start("m1", {}), '{"type":"start","messageId":"m1","messageMetadata":{}}'),
    (c.StartStep(), '{"type":"start-step"}'),
    (c.FinishStep(), '{"type":"finish-step"}'),
    (c.Finish(), '{"type":"finish"}'),
    (c.Finish("stop", {"n": 1}), '{"type":"finish","finishReason":"stop","messageMetadata":{"n":1}}'),
    (c.Abort(), '{"type":"abort"}'),
    (c.Error("no"), '{"type":"error","errorText":"no"}'),
    (c.MessageMetadata({}), '{"type":"message-metadata","messageMetadata":{}}'),
    (c.TextStart("t1"), '{"type":"text-start","id":"t1"}'),
    (c.TextStart("t1", ADK), '{"type":"text-start","id":"t1","providerMetadata":{"adk":{"author":"root"}}}'),
    (c.TextDelta("t1", ""), '{"type":"text-delta","id":"t1","delta":""}'),
    (c.TextEnd("t1"), '{"type":"text-end","id":"t1"}'),
    (
        c.TextEnd("t1", ADK, [{"url": "u"}]),
        '{"type":"text-end","id":"t1","providerMetadata":{"adk":{"author":"root"}},"citations":[{"url":"u"}]}',
    ),
    (c.ReasoningStart("r1"), '{"type":"reasoning-start","id":"r1"}'),
    (c.ReasoningStart("r1", ADK), '{"type":"reasoning-start","id":"r1","providerMetadata":{"adk":{"author":"root"}}}'),
    (c.ReasoningDelta("r1", "hm"), '{"type":"reasoning-delta","id":"r1","delta":"hm"}'),
    (c.ReasoningEnd("r1"), '{"type":"reasoning-end","id":"r1"}'),
    (c.ReasoningEnd("r1", ADK), '{"type":"reasoning-end","id":"r1","providerMetadata":{"adk":{"author":"root"}}}'),
    (c.ToolInputStart("a", "add"), '{"type":"tool-input-start","toolCallId":"a","toolName":"add"}'),
    (
        c.ToolInputStart("a", "add", True, False),
        '{"type":"tool-input-start","toolCallId":"a","toolName":"add","providerExecuted":true,"dynamic":false}',
    ),
    (c.ToolInputDelta("a", "{"), '{"type":"tool-input-delta","toolCallId":"a","inputTextDelta":"{"}'),
    (
        c.ToolInputAvailable("a", "add", None),
        '{"type":"tool-input-available","toolCallId":"a","toolName":"add","input":null}',
    ),
    (
        c.ToolInputAvailable("a", "add", {}, True, ADK, True),
        '{"type":"tool-input-available","toolCallId":"a","toolName":"add","input":{},"providerExecuted":true,'
        '"providerMetadata":{"adk":{"author":"root"}},"dynamic":true}',
    ),
    (
        c.ToolInputError("a", "add", None, "cut"),
        '{"type":"tool-input-error","toolCallId":"a","toolName":"add","input":null,"errorText":"cut"}',
    ),
    (
        c.ToolInputError("a", "add", 1, "cut", True, True),
        '{"type":"tool-input-error","toolCallId":"a","toolName":"add","input":1,"errorText":"cut",'
        '"providerExecuted":true,"dynamic":true}',
    ),
    (c.ToolOutputAvailable("a", None), '{"type":"tool-output-available","toolCallId":"a","output":null}'),
    (
        c.ToolOutputAvailable("a", [0], True, True, True),
        '{"type":"tool-output-available","toolCallId":"a","output":[0],"providerExecuted":true,"dynamic":true,'
        '"preliminary":true}',
    ),
    (c.ToolOutputError("a", "no"), '{"type":"tool-output-error","toolCallId":"a","errorText":"no"}'),
    (
        c.ToolOutputError("a", "no", True, True),
        '{"type":"tool-output-error","toolCallId":"a","errorText":"no","providerExecuted":true,"dynamic":true}',
    ),
    (c.ToolOutputDenied("a"), '{"type":"tool-output-denied","toolCallId":"a"}'),
    (c.ToolApprovalRequest("ok", "a"), '{"type":"tool-approval-request","approvalId":"ok","toolCallId":"a"}'),
    (
        c.ToolApprovalRequest("ok", "a", "Pay?", {"hint": "Pay?"}),
        '{"type":"tool-approval-request","approvalId":"ok","toolCallId":"a","reason":"Pay?",'
        '"approvalDescriptor":{"hint":"Pay?"}}',
    ),
    (
        c.ToolApprovalRequest("ok", "a", is_automatic=True),
        '{"type":"tool-approval-request","approvalId":"ok","toolCallId":"a","isAutomatic":true}',
    ),
    (c.ToolApprovalResponse("ok", True), '{"type":"tool-approval-response","approvalId":"ok","approved":true}'),
    (c.SourceUrl("s", "u"), '{"type":"source-url","sourceId":"s","url":"u"}'),
    (c.SourceUrl("s", "u", "T"), '{"type":"source-url","sourceId":"s","url":"u","title":"T"}'),
    (
        c.SourceDocument("s", "text/plain", "T"),
        '{"type":"source-document","sourceId":"s","mediaType":"text/plain","title":"T"}',
    ),
    (
        c.SourceDocument("s", "text/plain", "T", "f.txt"),
        '{"type":"source-document","sourceId":"s","mediaType":"text/plain","title":"T","filename":"f.txt"}',
    ),
    (c.File("u", "image/png"), '{"type":"file","url":"u","mediaType":"image/png"}'),
    (c.ReasoningFile("u", "image/png"), '{"type":"reasoning-file","url":"u","mediaType":"image/png"}'),
    (c.Data("data-adk-state", None), '{"type":"data-adk-state","data":null}'),
    (c.Data("data-adk-state", {"k": 1}, "x"), '{"type":"data-adk-state","data":{"k":1},"id":"x"}'),
]


@pytest.mark.parametrize(("chunk", "expected"), EVERY_KIND, ids=lambda value: type(value).__name__)
def test_each_kind_has_exactly_these_fields(chunk: c.AnyChunk, expected: str) -> None:
    assert encode_json(chunk).decode() == expected


def test_the_table_above_holds_every_kind() -> None:
    assert {type(chunk) for chunk, _ in EVERY_KIND} == {*c.Chunk.__subclasses__(), c.Data}


# -- values that JSON has no place for ------------------------------------------------------------------------------


def output_of(value: Any) -> Any:
    """The `output` that a client reads when a tool returned `value`."""
    encoded = encode_json(c.ToolOutputAvailable("a", value))
    parsed = json.loads(encoded.decode("utf-8", "strict"), parse_constant=lambda name: pytest.fail(name))
    assert parsed.keys() == {"type", "toolCallId", "output"}
    return parsed["output"]


class Point(BaseModel):
    x: int
    seen: datetime
    label: str = "p"


@dataclass
class Pair:
    left: Any
    right: Any


class Record(msgspec.Struct):
    name: str
    tags: set[str]


class Colour(Enum):
    RED = "red"


class ForeignModel:
    """Has a `model_dump` of another library's shape."""

    def model_dump(self) -> dict[str, int]:
        return {"x": 1}


class Shown:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (float("nan"), None),
        ([float("inf"), float("-inf"), 1.5], [None, None, 1.5]),
        (b"\x00\xff", "AP8="),
        (NOON, "2026-01-02T12:00:00Z"),
        (Decimal("1.10"), "1.10"),
        (frozenset({7}), [7]),
        ((1, "two"), [1, "two"]),
        (Colour.RED, "red"),
        (1 + 2j, "(1+2j)"),
        (Point(x=1, seen=NOON), {"x": 1, "seen": "2026-01-02T12:00:00Z", "label": "p"}),
        ([Point(x=1, seen=NOON)], [{"x": 1, "seen": "2026-01-02T12:00:00Z", "label": "p"}]),
        (Pair(1, {2}), {"left": 1, "right": [2]}),
        (Record("n", {"t"}), {"name": "n", "tags": ["t"]}),
        (ForeignModel(), "<ForeignModel>"),
        ({1: "int", 2.5: "float", None: "none"}, {"1": "int", "2.5": "float", "None": "none"}),
        ({(1, 2): "tuple", b"k": "bytes"}, {"(1, 2)": "tuple", "aw==": "bytes"}),
        (2**80, 2**80),
    ],
    ids=lambda value: type(value).__name__,
)
def test_python_values_become_json_that_says_the_same(value: Any, seen: Any) -> None:
    assert output_of(value) == seen


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (LONE_SURROGATE, "?"),
        (f"a{LONE_SURROGATE}b", "a?b"),
        ({"deep": [{"er": ("x", LONE_SURROGATE)}]}, {"deep": [{"er": ["x", "?"]}]}),
        ({f"key{LONE_SURROGATE}": 1}, {"key?": 1}),
        ([LONE_SURROGATE, {7}, None, True, 0.5, 3], ["?", [7], None, True, 0.5, 3]),
        ([LONE_SURROGATE, NOON, b"\x00\xff"], ["?", "2026-01-02T12:00:00Z", "AP8="]),
        ([LONE_SURROGATE, {(1, 2): None}], ["?", {"(1, 2)": None}]),
        ([LONE_SURROGATE, float("nan")], ["?", None]),
        (Pair(LONE_SURROGATE, Shown("s")), {"left": "?", "right": "s"}),
        (Record(LONE_SURROGATE, {"t"}), {"name": "?", "tags": ["t"]}),
        (Shown(LONE_SURROGATE), "?"),
        ([LONE_SURROGATE, Point(x=1, seen=NOON)], ["?", {"x": 1, "seen": "2026-01-02T12:00:00Z", "label": "p"}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_half_an_emoji_is_replaced_and_the_rest_of_the_value_stays(value: Any, seen: Any) -> None:
    assert output_of(value) == seen


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (c.TextDelta("t1", f"x{LONE_SURROGATE}"), {"type": "text-delta", "id": "t1", "delta": "x?"}),
        (c.Error(LONE_SURROGATE), {"type": "error", "errorText": "?"}),
        (c.Data("data-adk-x", [LONE_SURROGATE]), {"type": "data-adk-x", "data": ["?"]}),
        (
            c.ToolInputAvailable("a", "add", LONE_SURROGATE, provider_metadata={"adk": {LONE_SURROGATE: 1}}),
            {
                "type": "tool-input-available",
                "toolCallId": "a",
                "toolName": "add",
                "input": "?",
                "providerMetadata": {"adk": {"?": 1}},
            },
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_repaired_chunk_keeps_its_fields_and_gains_no_null(chunk: c.AnyChunk, expected: Any) -> None:
    assert json.loads(encode_json(chunk)) == expected


def test_text_of_every_script_stays_as_it_is() -> None:
    text = '日本語 é 😀 \u2028\u2029 \x00 </script> " \\'
    assert json.loads(encode_json(c.TextDelta("t1", text)))["delta"] == text


class FailsToShowItself:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error

    def __repr__(self) -> str:  # pytest's own use
        return f"{type(self).__name__}-{type(self.error).__name__}"


class FailsToBeDumped(FailsToShowItself):
    def model_dump(self, *, mode: str) -> Any:
        raise self.error


class FailsAtEveryAttribute(FailsToShowItself):
    """As a proxy does outside of its context."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("outside of the context")


@pytest.mark.parametrize(
    "value",
    [
        FailsToShowItself(ValueError()),
        FailsToShowItself(RuntimeError()),
        FailsToShowItself(KeyError("k")),
        FailsToBeDumped(TypeError()),
        FailsToBeDumped(ZeroDivisionError()),
        FailsAtEveryAttribute(ValueError()),
    ],
    ids=repr,
)
def test_an_object_that_cannot_show_itself_is_named_by_its_class(value: Any) -> None:
    assert output_of({"ok": 1, "bad": value}) == {"ok": 1, "bad": f"<{type(value).__name__}>"}


@pytest.mark.parametrize("collect", [list, tuple, set, frozenset])
def test_the_other_members_of_its_collection_are_shown(collect: Any) -> None:
    bad = FailsToShowItself(ValueError())
    assert sorted(output_of(collect([bad, "ok"]))) == ["<FailsToShowItself>", "ok"]


def test_a_dict_key_that_cannot_show_itself_does_not_end_the_stream() -> None:
    assert list(output_of({FailsToShowItself(ValueError()): 1}).values()) == [1]


def test_a_number_with_more_digits_than_python_prints_does_not_end_the_stream() -> None:
    assert output_of({"ok": 1, "factorial": 10**5000})["ok"] == 1


# -- depth ------------------------------------------------------------------------------------------------------------


def nested(depth: int, wrap: Any) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: (v, 1), lambda v: Pair(v, 1)])
def test_nesting_without_end_in_sight_is_cut(wrap: Any) -> None:
    encoded = encode_json(c.Data("data-adk-x", nested(5000, wrap)))
    assert b"core" not in encoded
    assert len(re.findall(rb"[\[{]", encoded)) <= 102
    json.loads(encoded)


def test_nesting_that_a_person_can_read_is_not_cut() -> None:
    assert output_of(nested(90, lambda v: [v, LONE_SURROGATE])) == nested(90, lambda v: [v, "?"])


def test_a_list_that_holds_itself_is_cut() -> None:
    circle: list[Any] = ["x"]
    circle.append(circle)
    assert output_of(circle)[0] == "x"
    assert b'"..."' in encode_json(c.Data("data-adk-x", circle))


class CountedList(list[Any]):
    """Ends the test instead of letting it run for ever."""

    visits = 0

    def __iter__(self) -> Any:
        CountedList.visits += 1
        assert CountedList.visits < 20_000, "every branch of the circle is followed again and again"
        return super().__iter__()


def test_a_circle_with_branches_costs_no_more_than_a_glance() -> None:
    """Such as a tree whose nodes know their parent: each level doubles the work unless the circle is seen."""
    CountedList.visits = 0
    circle = CountedList()
    circle.extend([circle, circle])
    output_of(circle)


# -- any value at all -------------------------------------------------------------------------------------------------

any_text = st.text(st.characters(exclude_categories=()), max_size=5)
any_key = any_text | st.integers() | st.none() | st.booleans() | st.tuples(st.integers()) | st.binary(max_size=3)
any_leaf = any_key | st.floats() | st.datetimes() | st.decimals() | st.uuids() | st.complex_numbers()
any_value = st.recursive(
    any_leaf,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(any_key, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.builds(Shown, any_text)
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_value, any_text)
def test_any_value_becomes_one_line_of_strict_json(value: Any, text: str) -> None:
    output_of(value)
    assert b"\n" not in encode_json(c.Data("data-adk-x", value, text))


def test_one_chunk_alone_is_encoded_whatever_is_in_it() -> None:
    alone, again = ([*c.encode_chunks([c.TextDelta("0", "a\ud800b")] * count)] for count in (1, 2))
    assert alone == again[:1] == [b'{"type":"text-delta","id":"0","delta":"a?b"}']


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=[])), st.sampled_from([c.TextDelta, c.ReasoningDelta]))
def test_the_deltas_of_a_part_are_encoded_as_any_chunk(text: str, delta: type[c.TextDelta | c.ReasoningDelta]) -> None:
    assert [c.DeltaEncoder(delta, "t1").encode(text)] == c.encode_chunks([delta("t1", text)])


@given(any_text)
def test_whatever_a_part_is_called_its_deltas_have_its_id(part_id: str) -> None:
    assert [c.DeltaEncoder(c.TextDelta, part_id).encode("a")] == c.encode_chunks([c.TextDelta(part_id, "a")])


def test_a_deep_value_is_cut_where_a_reader_asks_for_it() -> None:
    value: object = {1: float("nan")}
    for _ in range(150):
        value = [value]
    whole, cut = json.dumps(plain_json(value)), json.dumps(plain_json(value, is_cut=True))
    assert whole == "[" * 150 + '{"1": null}' + "]" * 150
    assert cut == "[" * 101 + '"..."' + "]" * 101
