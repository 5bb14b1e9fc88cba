"""`adk-stream-client` has a type for whatever the server emits: a part or a field that one of them lacks fails."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from google.adk.events.ui_widget import UiWidget

from adk_stream_protocol.adk.calls.policy import Card, CardField
from adk_stream_protocol.adk.translate.usage import Usage
from support.documents import ROOT

SOURCE = ROOT / "src" / "adk_stream_protocol"
TYPES = (ROOT / "client" / "src" / "messages.ts").read_text()

FREE = {"adk-state", "adk-output"}
"""What is in them is the application's own."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


# -- what the server emits ---------------------------------------------------------------------------------------------


def functions() -> Iterator[Function]:
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(), str(file))):
            if isinstance(node, Function):
                yield node


FUNCTIONS = list(functions())


def function(name: str, text: str = "") -> Function:
    (found,) = [one for one in FUNCTIONS if one.name == name and text in ast.unparse(one)]
    return found


def keys_of(node: ast.expr, within: Function) -> set[str]:
    """The keys of a dictionary that an expression in a function makes. Raises for one that it cannot follow."""
    match node:
        case ast.Constant(None):
            return set()
        case ast.Dict(keys, values):
            literal = {key.value for key in keys if isinstance(key, ast.Constant)}
            spread = [value for key, value in zip(keys, values, strict=True) if key is None]
            return literal.union(*(keys_of(value, within) for value in spread))
        case ast.DictComp(generators=[ast.comprehension(iter=ast.Call(ast.Attribute(source, "items")))]):
            return keys_of(source, within)
        case ast.IfExp(_, first, second):
            return keys_of(first, within) | keys_of(second, within)
        case ast.BoolOp(ast.Or(), values):
            return set[str]().union(*(keys_of(value, within) for value in values))
        case ast.Name(name):
            return keys_of_name(name, within)
        case ast.Call(ast.Name(name)):
            return returned_by(function(name))
        case ast.Call(ast.Attribute(_, "get"), [ast.Constant("adk"), _]):
            return set()  # whoever made it is found, too
        case ast.Call(ast.Attribute(ast.Name("widget"), "model_dump")):
            return {field.alias or name for name, field in UiWidget.model_fields.items()}
        case ast.Call(ast.Attribute(ast.Attribute(_, "_usage"), "metadata")):
            return returned_by(function("metadata", "modelVersion"))
        case _:
            raise AssertionError(f"{within.name}: which keys has `{ast.unparse(node)}`? Teach it to this test.")


def keys_of_name(name: str, within: Function) -> set[str]:
    found: set[str] = set()
    values: list[ast.expr] = []
    for node in ast.walk(within):
        match node:
            case ast.Assign([ast.Name(target)], value) | ast.AnnAssign(ast.Name(target), _, ast.expr() as value):
                # What only leaves fields out of it adds none.
                values += [value] if target == name and f"in {name}.items()" not in ast.unparse(value) else []
            case ast.AugAssign(ast.Name(target), ast.BitOr(), value) if target == name:
                values.append(value)
            case ast.Assign([ast.Subscript(ast.Name(target), ast.Constant(str() as key))]) if target == name:
                found.add(key)
            case _:
                pass
    assert values, f"{within.name}: where does `{name}` come from? Teach it to this test."
    return found.union(*(keys_of(value, within) for value in values))


def returned_by(one: Function) -> set[str]:
    values = [node.value for node in ast.walk(one) if isinstance(node, ast.Return) and node.value is not None]
    return set[str]().union(*(keys_of(value, one) for value in values))


@cache
def emitted_parts() -> dict[str, set[str]]:
    """The keys of each data part, by its name."""
    parts: dict[str, set[str]] = {}
    for one in FUNCTIONS:
        for node in ast.walk(one):
            match node:
                case ast.Call(ast.Attribute(_, "data"), [ast.Constant(str() as name), data, *_]):
                    name = f"adk-{name}"
                case ast.Call(ast.Name("Data"), [ast.Constant(str() as name), data, *_]) if "adk-" in name:
                    name = name.removeprefix("data-")
                case _:
                    continue
            parts.setdefault(name, set()).update(set() if name in FREE else keys_of(data, one))
    return parts


def emitted_about_parts() -> set[str]:
    """The keys of `providerMetadata.adk`."""
    found: set[str] = set()
    for one in FUNCTIONS:
        for node in ast.walk(one):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                owned = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "adk"]
                found |= set[str]().union(*(keys_of(value, one) for value in owned))
    return found


# -- what the client knows ---------------------------------------------------------------------------------------------


def fields_of(body: str) -> dict[str, str]:
    """The fields of a type `{ ... }`, and the types of these."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).strip().removeprefix("{").removesuffix("}")
    fields, depth, field = [], 0, ""
    for character in body:
        depth += {"{": 1, "[": 1, "<": 1, "}": -1, "]": -1, ">": -1}.get(character, 0)
        if character == ";" and depth == 0:
            fields.append(field)
            field = ""
        else:
            field += character
    pairs = (field.split(":", 1) for field in [*fields, field] if field.strip())
    return {name.strip().rstrip("?").strip('"'): kind.strip() for name, kind in pairs}


def type_of(name: str) -> dict[str, str]:
    found = re.search(rf"^export type {name} = (\{{.*?^\}});$", TYPES, re.MULTILINE | re.DOTALL)
    assert found, name
    return fields_of(found[1])


PARTS = type_of("AdkDataParts")


# -- both --------------------------------------------------------------------------------------------------------------


def test_each_data_part_that_the_server_emits_has_a_type_and_is_documented() -> None:
    emitted, documented = set(emitted_parts()), (ROOT / "docs" / "reference" / "http.md").read_text()
    assert emitted == set(PARTS)
    assert emitted == set(re.findall(r"^\| `data-(adk-[\w-]+)` \|", documented, re.MULTILINE))


@pytest.mark.parametrize("name", sorted(set(PARTS) - FREE))
def test_a_data_part_has_the_fields_that_the_server_emits(name: str) -> None:
    assert emitted_parts()[name] == set(fields_of(PARTS[name]))


def test_a_link_of_a_chain_has_the_fields_that_the_server_emits() -> None:
    dictionaries = [node for node in ast.walk(function("chain_of")) if isinstance(node, ast.Dict)]
    emitted = {key.value for node in dictionaries for key in node.keys if isinstance(key, ast.Constant)}
    assert emitted == set(type_of("AdkChainLink"))


def test_a_card_has_the_fields_that_an_application_may_set() -> None:
    card = type_of("AdkCard")
    assert set(Card.__annotations__) == set(card)
    assert set(CardField.__annotations__) == set(fields_of(card["fields"].removesuffix("[]")))


def test_the_metadata_of_a_message_has_the_fields_that_the_server_emits() -> None:
    metadata = type_of("AdkMetadata")
    assert returned_by(function("metadata", "'limit'")) == set(metadata)
    assert set(Usage()._sums) == set(fields_of(metadata["usage"]))  # pyright: ignore[reportPrivateUsage]


def test_the_metadata_of_a_part_has_the_fields_that_the_server_emits() -> None:
    assert emitted_about_parts() == set(type_of("AdkProviderMetadata"))


def test_a_source_that_is_not_understood_fails_rather_than_counting_for_nothing() -> None:
    (one,) = ast.parse("def f(x):\n    y = x.somewhere()\n    return {'a': 1, **y}").body
    assert isinstance(one, ast.FunctionDef)
    with pytest.raises(AssertionError, match=r"x.somewhere\(\)"):
        returned_by(one)
