"""Tools of the browser's: how they are declared, when a person is asked first, and which outputs they take."""

import asyncio
from typing import Any, Literal

import pytest
from google.adk.tools import FunctionTool, ToolContext
from pydantic import BaseModel
from typing_extensions import TypedDict

from adk_stream_protocol import ConfigurationError, client_tool
from adk_stream_protocol.adk.calls.client_tools import fits
from adk_stream_protocol.errors import StoreUnavailable
from adk_stream_protocol.protocol.call_record import CallKey, ChatKey
from adk_stream_protocol.store.base import Snapshot
from adk_stream_protocol.store.memory import MemoryStore
from adk_stream_protocol.testing import Answer, call
from support.conversations import asked_parts
from support.pages import Page, page

TRACK = {"type": "object", "properties": {"track": {"type": "integer"}}, "required": ["track"]}


def play(track: Literal[1, 2], loud: bool = False) -> dict[str, Any]:  # pyright: ignore[reportReturnType]
    """Play a track."""


# -- declarations -----------------------------------------------------------------------------------------------------


def test_a_tool_by_its_name_is_declared_as_its_schema_says() -> None:
    tool = client_tool("play", "Play a track.", TRACK)
    declared = tool._get_declaration()
    assert (declared.name, declared.description) == ("play", "Play a track.")
    assert declared.parameters_json_schema == TRACK
    assert tool.is_long_running
    assert tool.output_schema is None


def test_a_tool_without_parameters_is_declared_with_none() -> None:
    assert client_tool("where", "Where?")._get_declaration().parameters_json_schema == {
        "type": "object",
        "properties": {},
    }


def test_a_function_is_declared_as_adk_declares_it_as_a_tool_of_its_own() -> None:
    assert client_tool(play)._get_declaration() == FunctionTool(play)._get_declaration()


def test_a_description_of_ones_own_outranks_the_docstring() -> None:
    tool = client_tool(play, "Only on request.")
    assert tool._get_declaration().description == tool.description == "Only on request."


class Place(TypedDict):
    latitude: float


class Song(BaseModel):
    title: str


def nothing() -> None:
    """Nothing."""


def untyped():
    """Untyped."""


def a_place() -> Place:  # pyright: ignore[reportReturnType]
    """A place."""


def a_song() -> Song:  # pyright: ignore[reportReturnType]
    """A song."""


@pytest.mark.parametrize(
    ("function", "fitting", "unfitting"),
    [
        (nothing, [None, "anything", {}], []),
        (untyped, [None, "anything", {}], []),
        (play, [{}, {"a": 1}], [None, "text", []]),
        (a_place, [{"latitude": 1}, {"latitude": 1.5, "more": True}], [{}, {"latitude": "north"}, None]),
        (a_song, [{"title": "Hey"}], [{}, {"title": 5}]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_return_type_of_a_function_says_which_outputs_fit(function: Any, fitting: Any, unfitting: Any) -> None:
    schema = client_tool(function).output_schema
    assert [output for output in fitting if not fits(output, schema)] == []
    assert [output for output in unfitting if fits(output, schema)] == []


def test_an_output_schema_of_ones_own_outranks_the_return_type() -> None:
    assert client_tool(play, output={"type": "string"}).output_schema == {"type": "string"}


class Opaque:
    """What JSON knows nothing of."""


def opaque() -> Opaque:  # pyright: ignore[reportReturnType]
    """Opaque."""


def misspelt() -> "Opake":  # noqa: F821  # pyright: ignore
    """Names a type that is not there."""


@pytest.mark.parametrize(
    ("making", "words"),
    [
        (lambda: client_tool("play"), "needs a description"),
        (lambda: client_tool("play", ""), "needs a description"),
        (lambda: client_tool(play, parameters=TRACK), "from the signature"),
        (lambda: client_tool("play", "Plays.", {"type": "nonsense"}), "'play' must be the JSON Schema of an object"),
        (lambda: client_tool("play", "Plays.", {"type": "string"}), "'play' must be the JSON Schema of an object"),
        (lambda: client_tool("play", "Plays.", {"track": TRACK}), "'play' must be the JSON Schema of an object"),
        (lambda: client_tool("play", "Plays.", "track"), "'play' must be the JSON Schema of an object"),  # pyright: ignore
        (lambda: client_tool("play", "Plays.", {**TRACK, "required": "track"}), "'play' is not valid"),
        (lambda: client_tool("play", "Plays.", output={"type": 5}), "'play' is not valid"),
        (lambda: client_tool(play, output={"required": "track"}), "'play' is not valid"),
        (lambda: client_tool(opaque), "opaque"),
        (lambda: client_tool(misspelt), "misspelt"),
    ],
)
def test_a_tool_that_cannot_work_is_refused_at_start_up(making: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        making()


async def test_the_model_is_offered_the_tool_and_the_function_is_never_called() -> None:
    def explode(track: int) -> None:
        """Explodes."""
        raise AssertionError("called")

    async with page([call("explode", track=1)], "Done.", tools=(client_tool(explode),)) as at:
        await at.say("Go.")
        at.output("explode", {"ok": True})
        assert (await at.answer()).text == "Done."
        (offered,) = at.chat.model.requests[0].config.tools
        assert [declared.name for declared in offered.function_declarations] == ["explode"]
        assert asked_parts(at.chat.model.requests[1]) == ["Go.", {"call": "explode"}, {"result": {"ok": True}}]


# -- approvals --------------------------------------------------------------------------------------------------------


def over_one(track: int) -> bool:
    return track > 1


async def by_state(tool_context: ToolContext) -> bool:
    return tool_context.state.get("careful", False)


def with_all(**arguments: Any) -> bool:
    assert set(arguments) == {"track", "tool_context"}
    return arguments["track"] > 1


@pytest.mark.parametrize(
    ("approve", "track", "state", "is_asked"),
    [
        (False, 1, {}, False),
        (True, 1, {}, True),
        (over_one, 1, {}, False),
        (over_one, 2, {}, True),
        (with_all, 1, {}, False),
        (with_all, 2, {}, True),
        (by_state, 1, {}, False),
        (by_state, 1, {"careful": True}, True),
        (lambda: True, 1, {}, True),
    ],
)
async def test_whether_a_person_is_asked_may_depend_on_the_call(
    approve: Any, track: int, state: dict[str, Any], is_asked: bool
) -> None:
    tool = client_tool("play", "Plays.", TRACK, approve=approve)
    prepared = {"prepare": lambda _connection, _body: {"state_delta": state}}
    async with page([call("play", track=track)], "Played.", tools=(tool,), **prepared) as at:
        asked = await at.say("Play.")
        assert at.states() == ["approval-requested" if is_asked else "input-available"]
        assert bool(asked.of_type("tool-input-available")) is not is_asked
        await at.is_what_a_reload_shows()


class UnreadableStore(MemoryStore):
    """Cannot be asked about a chat while it is told so."""

    unreadable = False

    async def read(self, chat: ChatKey, call: CallKey | None = None) -> Snapshot:
        if self.unreadable and call is None:
            raise StoreUnavailable
        return await super().read(chat, call)


def is_not_given_to_the_browser(at: Page, answer: Answer) -> None:
    assert answer.of_type("tool-input-available") == []
    assert at.states() == ["output-error"]


async def test_a_call_is_not_given_to_the_browser_if_it_cannot_be_told_whether_to_ask() -> None:
    def broken() -> bool:
        raise ValueError("SECRET")

    async with page([call("play", track=1)], tools=(client_tool("play", "Plays.", TRACK, approve=broken),)) as at:
        answer = await at.say("Play.")
        assert answer.types[-1] == "error"
        assert "SECRET" not in answer.raw
        is_not_given_to_the_browser(at, answer)
        await at.is_what_a_reload_shows()


async def test_a_call_is_not_given_to_the_browser_if_the_run_is_stopped_before_anybody_is_asked() -> None:
    asking, never = asyncio.Event(), asyncio.Event()

    async def thinks() -> bool:
        asking.set()
        return await never.wait()

    async with page([call("play", track=1)], tools=(client_tool("play", "Plays.", TRACK, approve=thinks),)) as at:
        saying = asyncio.create_task(at.say("Play."))
        await asking.wait()
        await at.chat.stop()
        answer = await saying
        assert answer.types[-1] == "abort"
        is_not_given_to_the_browser(at, answer)
        await at.is_what_a_reload_shows()


async def test_what_was_just_recorded_is_known_while_the_store_cannot_be_read() -> None:
    store = UnreadableStore()

    def asks() -> bool:
        store.unreadable = True
        return True

    tool = client_tool("play", "Plays.", TRACK, approve=asks)
    async with page([call("play", track=1)], tools=(tool,), record=store) as at:
        assert (await at.say("Play.")).of_type("tool-input-available") == []
        assert at.states() == ["approval-requested"]
        store.unreadable = False
        await at.is_what_a_reload_shows()


# -- outputs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema_from", ["schema", "signature"])
async def test_an_output_that_does_not_fit_is_refused_and_the_call_stays_open(schema_from: str) -> None:
    schema = {"type": "object", "required": ["latitude"]}
    tool = client_tool("a_place", "Where?", output=schema) if schema_from == "schema" else client_tool(a_place)
    async with page([call("a_place")], "There.", tools=(tool,)) as at:
        await at.say("Where?")
        filled_in = {**at.part("a_place"), "state": "output-available", "output": {"longitude": 1}}
        message = {**at.messages[-1], "parts": [filled_in]}
        refused = await at.chat.post({"id": "c1", "messages": [message], "messageId": message["id"]})
        assert (refused.status, (refused.error or {})["code"]) == (422, "output-does-not-fit")
        assert len(at.chat.model.requests) == 1
        await at.is_what_a_reload_shows()
        at.output("a_place", {"latitude": 1})
        assert (await at.answer()).text == "There."


async def test_an_error_of_the_browsers_needs_no_schema() -> None:
    async with page([call("a_place")], "Unknown.", tools=(client_tool(a_place),)) as at:
        await at.say("Where?")
        at.fail("a_place", "The user has no GPS.")
        assert (await at.answer()).text == "Unknown."
        assert asked_parts(at.chat.model.requests[1])[-1] == {"result": {"error": "The user has no GPS."}}
        await at.is_what_a_reload_shows()


@pytest.mark.parametrize("output", ["text", 5, None, [1, 2], True, {"a": {"b": [None]}}, {"error": "mine"}, {}])
async def test_any_json_is_an_output_where_no_schema_says_otherwise(output: Any) -> None:
    async with page([call("play", track=1)], "Done.", tools=(client_tool("play", "Plays.", TRACK),)) as at:
        await at.say("Play.")
        at.output("play", output)
        assert (await at.answer()).text == "Done."
        told = asked_parts(at.chat.model.requests[1])[-1]
        assert told == {"result": output if isinstance(output, dict) else {"result": output}}
        await at.is_what_a_reload_shows()
