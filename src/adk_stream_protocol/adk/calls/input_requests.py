"""Questions of an agent that the user answers in a form: ADK's `request_input`, as a tool or in a workflow."""

from typing import Any, cast

import jsonschema

from .client_tools import fits

_UNTRUSTED = ("pattern", "patternProperties")  # a model could write one that takes for ever


def schema_of_answer(arguments: Any, *, by_model: bool) -> Any:
    """What the answer must fit; None if anything does. `by_model`: a model has written the schema."""
    given = cast(dict[str, Any], arguments) if isinstance(arguments, dict) else {}
    schema = given.get("response_schema")
    if not isinstance(schema, dict):
        return None
    try:
        if _has_foreign_reference(schema):
            return None
        schema = _without_patterns(schema) if by_model else cast(dict[str, Any], schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        fits(None, schema)  # a reference may lead nowhere
    except Exception:  # whatever the schema makes of the validator
        return None
    return schema


def value_of_answer(output: Any) -> Any:
    """What the user said. Some clients wrap it as ADK does."""
    wrapped = cast(dict[str, Any], output) if isinstance(output, dict) else {}
    return wrapped["result"] if wrapped.keys() == {"result"} else cast(Any, output)


def _has_foreign_reference(schema: Any) -> bool:
    """Whether it refers to another document, which a validator would fetch."""
    if isinstance(schema, dict):
        found = cast(dict[str, Any], schema)
        references = [found[name] for name in ("$ref", "$dynamicRef") if name in found]
        is_foreign = any(not (isinstance(each, str) and each.startswith("#")) for each in references) or "$id" in found
        return is_foreign or any(_has_foreign_reference(each) for each in found.values())
    return isinstance(schema, list) and any(_has_foreign_reference(each) for each in cast(list[Any], schema))


def _without_patterns(schema: Any) -> Any:
    if isinstance(schema, dict):
        found = cast(dict[str, Any], schema)
        return {name: _without_patterns(value) for name, value in found.items() if name not in _UNTRUSTED}
    return [_without_patterns(each) for each in cast(list[Any], schema)] if isinstance(schema, list) else schema
