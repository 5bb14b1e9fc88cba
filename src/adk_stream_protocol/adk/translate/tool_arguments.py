"""Tool arguments while they stream: ADK's three dialects become the JSON text that the AI SDK expects.

| dialect                            | id of a chunk                      | arguments of a chunk                 |
|------------------------------------|------------------------------------|--------------------------------------|
| Gemini                             | the call's, on every chunk         | leaves by path, strings in pieces    |
| LiteLLM, Anthropic, OpenAI, Apigee | the call's, on every chunk         | leaves by path                       |
| Interactions API                   | the call's on the first chunk,     | pieces of raw JSON without a path    |
|                                    | then a fresh one on each           |                                      |

A call is shown only if the whole event will have it, since any other part would stay open. So nothing is shown at a
call's first chunk: a second chunk under the same id (in the raw dialect: under the same name) proves that it will.
What is shown is a preview. The arguments that count are those of the whole event.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from google.genai import types

_MADE_UP_ID = "adk-"  # ADK stamps ids of this form on calls that came without one

_TOKEN = re.compile(r"""\[\s*(\d+)\s*\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]|\.?((?:[^.\[\]\\]|\\.)+)""")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}

Path = tuple[str | int, ...]
Scalar = str | float | bool | None


class OutOfOrder(Exception):
    """A leaf that belongs before text that is already written; the preview ends here."""


def parse_json_path(path: str) -> Path:
    def unescape(text: str) -> str:
        return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPED.get(m[2], m[2]), text)

    tokens: list[str | int] = []
    for match in _TOKEN.finditer(path.removeprefix("$")):
        index, *names = match.groups()
        tokens.append(int(index) if index is not None else unescape(next(n for n in names if n is not None)))
    return tuple(tokens)


@dataclass
class _Container:
    is_list: bool
    members: set[str | int] = field(default_factory=set[str | int])


class JsonText:
    """One JSON object, written leaf by leaf in document order."""

    def __init__(self) -> None:
        self._path: list[str | int] = []  # of the innermost open container
        self._open: list[_Container] = []
        self._string: Path | None = None  # whose closing quote is not written yet

    def write(self, path: Path, value: Scalar) -> str:
        """The text that this leaf adds. Pieces of a string come one after the other under its path."""
        if not path:
            raise OutOfOrder
        if self._string == path and isinstance(value, str):
            return _inside_quotes(value)
        text = self._end_string()
        if not self._open:
            text += self._enter(is_list=False)
        shared = _shared_length(self._path, path[:-1])
        while len(self._path) > shared:
            text += "]" if self._open.pop().is_list else "}"
            self._path.pop()
        for key, below in zip(path[shared:], path[shared + 1 :], strict=False):
            text += self._member(key) + self._enter(is_list=isinstance(below, int))
            self._path.append(key)
        text += self._member(path[-1])
        if isinstance(value, str):
            self._string = path
            return f'{text}"{_inside_quotes(value)}'
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of number; 50.0 is what the service makes of 50
        return text + json.dumps(value)

    def _end_string(self) -> str:
        if self._string is None:
            return ""
        self._string = None
        return '"'

    def _enter(self, *, is_list: bool) -> str:
        self._open.append(_Container(is_list))
        return "[" if is_list else "{"

    def _member(self, key: str | int) -> str:
        container = self._open[-1]
        if container.is_list != isinstance(key, int) or key in container.members:
            raise OutOfOrder
        if container.is_list and key != len(container.members):
            raise OutOfOrder
        separator = "," if container.members else ""
        container.members.add(key)
        return separator if container.is_list else f"{separator}{json.dumps(key, ensure_ascii=False)}:"


def _inside_quotes(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _shared_length(one: list[str | int], other: Path) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


@dataclass
class _StreamedCall:
    id: str
    name: str
    text: JsonText | None = field(default_factory=JsonText)  # None: the preview has ended
    deferred: str = ""  # text to show with the second chunk
    shown: bool = False


@dataclass(frozen=True)
class ArgumentText:
    """A piece of a call's arguments; the first of a call opens its part."""

    call_id: str
    name: str
    text: str
    opens: bool


class StreamedArguments:
    """The calls of one speaker whose arguments are arriving."""

    def __init__(self) -> None:
        self._calls: dict[str, _StreamedCall] = {}

    def feed(self, call: types.FunctionCall) -> Iterator[ArgumentText]:
        """What a partial call adds to the preview. A whole call adds nothing: the whole event has its arguments."""
        if call.partial_args is None and not call.will_continue and call.id not in self._calls:
            return
        known = self._calls.get(call.id or "")
        raw = not any(argument.json_path for argument in call.partial_args or ())
        if known is None and raw and call.partial_args and (call.id or "").startswith(_MADE_UP_ID):
            known = self._raw_call(call.name)  # a fragment of the raw dialect, under an id of its own
            if known is not None:
                fragments = "".join(argument.string_value or "" for argument in call.partial_args or ())
                yield from self._show(known, fragments)
            return
        if known is None:
            if not call.id or not call.name:
                return
            known = self._calls[call.id] = _StreamedCall(call.id, call.name)
            # ADK appends later fragments to the raw dialect's first chunk, so it may have some of them already.
            known.deferred = "" if raw else self._text(known, call)
            return
        if call.name and not known.shown:
            known.name = call.name  # LiteLLM's may arrive in pieces
        yield from self._show(known, "" if raw else self._text(known, call))

    def clear(self) -> None:
        self._calls.clear()

    def _raw_call(self, name: str | None) -> _StreamedCall | None:
        """The raw dialect streams one call after the other, so a fragment belongs to the newest call with its name."""
        for call in reversed(self._calls.values()):
            if call.name == name and not call.id.startswith(_MADE_UP_ID):
                return call
        return None

    def _text(self, known: _StreamedCall, call: types.FunctionCall) -> str:
        pieces: list[str] = []
        for argument in call.partial_args or ():
            value = _scalar(argument)
            if known.text is None or not argument.json_path or isinstance(value, _NoValue):
                continue
            try:
                pieces.append(known.text.write(parse_json_path(argument.json_path), value))
            except OutOfOrder:
                known.text = None
        return "".join(pieces)

    def _show(self, call: _StreamedCall, text: str) -> Iterator[ArgumentText]:
        text, call.deferred = call.deferred + text, ""
        if text:  # by then the name is whole: it comes before the arguments
            yield ArgumentText(call.id, call.name, text, opens=not call.shown)
            call.shown = True


class _NoValue:
    """An empty object or list: ADK cannot say which, so it is not part of the preview."""


def _scalar(argument: types.PartialArg) -> Scalar | _NoValue:
    for value in (argument.string_value, argument.number_value, argument.bool_value):
        if value is not None:
            return value
    return None if argument.null_value is not None else _NoValue()
