"""Tools that run in the browser. For ADK their calls are long-running; the client answers them."""

import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast, get_type_hints

import jsonschema
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.genai import types
from pydantic import PydanticUserError, TypeAdapter

from ...errors import ConfigurationError
from ..control_flow import tool_name
from ..node_tree import all_nodes

Approve = bool | Callable[..., bool | Awaitable[bool]]

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


class ClientTool(BaseTool):
    """A tool that runs in the browser. ADK never runs it: the call stays open until the client's output arrives."""

    def __init__(
        self, declaration: types.FunctionDeclaration, *, output: Mapping[str, Any] | None, approve: Approve
    ) -> None:
        super().__init__(name=declaration.name or "", description=declaration.description or "", is_long_running=True)
        self._declaration = declaration
        self._approve = approve
        self.output_schema = None if output is None else dict(output)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self._declaration.model_copy()  # ADK writes into it, for live models

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> None:
        """Returns nothing, so that ADK knows that the result comes later."""

    async def needs_approval(self, arguments: Mapping[str, Any], tool_context: ToolContext) -> bool:
        if not callable(self._approve):
            return self._approve
        given = {**arguments, "tool_context": tool_context}
        parameters = inspect.signature(self._approve).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            given = {name: value for name, value in given.items() if name in {p.name for p in parameters}}
        verdict = self._approve(**given)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)


def browser_tools_of(root: Any) -> dict[str, ClientTool]:
    """The client tools of the agents below the root, by name, without names that other tools have, too."""
    found: dict[str, ClientTool] = {}
    others: set[str] = set()
    for tool in (tool for agent in all_nodes(root) for tool in getattr(agent, "tools", None) or ()):
        if isinstance(tool, ClientTool):
            found.setdefault(tool.name, tool)
        else:
            others.add(tool_name(tool))
    return {name: tool for name, tool in found.items() if name not in others}


def client_tool(
    tool: str | Callable[..., Any],
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    output: Mapping[str, Any] | None = None,
    approve: Approve = False,
) -> ClientTool:
    """A tool that runs in the user's browser.

    `tool` is its name, with a `description` and JSON schemas for its `parameters` and `output`; or a Python function,
    whose signature, docstring and return type give the same. The function itself is never called.

    `approve` says whether a person must approve each call before the browser runs it; or it is a function that decides
    this. The function gets the call's arguments that it has parameters for, and `tool_context` if it has such a
    parameter.
    """
    if isinstance(tool, str):
        if not description:
            raise ConfigurationError(f"The client tool {tool!r} needs a description: the model chooses tools by it.")
        declaration = types.FunctionDeclaration(
            name=tool, description=description, parameters_json_schema=_parameters(tool, parameters)
        )
    else:
        if parameters is not None:
            raise ConfigurationError("A client tool made of a function takes its parameters from the signature.")
        declaration = _declaration(tool)
        declaration.description = description or declaration.description
        output = output if output is not None else _output_schema(tool)
    for schema in (declaration.parameters_json_schema, output):
        _require_schema(schema, declaration.name or "")
    return ClientTool(declaration, output=output, approve=approve)


def _parameters(name: str, schema: Any) -> dict[str, Any]:
    """Models call a tool with named arguments, so its schema is that of an object."""
    if schema is None or schema == {}:
        return _NO_PARAMETERS
    given = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, Mapping) else {}
    if given.get("type") != "object":
        raise ConfigurationError(
            f"The parameters of the client tool {name!r} must be the JSON Schema of an object: "
            '{"type": "object", "properties": {...}}.'
        )
    return given


def fits(output: Any, schema: Mapping[str, Any] | None) -> bool:
    return schema is None or jsonschema.Draft202012Validator(schema).is_valid(output)  # pyright: ignore[reportUnknownMemberType]


def _declaration(function: Callable[..., Any]) -> types.FunctionDeclaration:
    # As ADK itself declares a function, so that both kinds of tools look the same to the model.
    with warnings.catch_warnings():  # on Vertex ADK warns that this way is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        declaration = FunctionTool(function)._get_declaration()  # pyright: ignore[reportPrivateUsage]
    if declaration is None:
        raise ConfigurationError(f"{function!r} cannot be declared to a model.")
    return declaration


def _output_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    try:
        returned = get_type_hints(function).get("return")
        return None if returned is None or returned is type(None) else TypeAdapter(returned).json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        name = getattr(function, "__name__", repr(function))
        raise ConfigurationError(f"No schema can be made of what {name!r} returns: {error}") from None


def _require_schema(schema: Any, name: str) -> None:
    try:
        jsonschema.Draft202012Validator.check_schema(schema if schema is not None else {})
    except jsonschema.SchemaError as error:
        raise ConfigurationError(f"A schema of the client tool {name!r} is not valid: {error.message}") from None
