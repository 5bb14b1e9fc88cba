"""Which agents a name or a folder on the command line stands for, in the layouts that ADK's own commands know."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.models.google_llm import Gemini

from adk_stream_protocol import served_agents
from adk_stream_protocol.errors import ConfigurationError
from adk_stream_protocol.served_agents import FoundAgent, find_agents, model_without_key
from adk_stream_protocol.testing import ScriptedModel

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")
AGENT = """
from google.adk.agents import LlmAgent
from adk_stream_protocol.testing import ScriptedModel
root_agent = LlmAgent(name="chef", model=ScriptedModel([]))
"""
APP = (
    AGENT
    + """
from google.adk.apps import App
app = App(name="of_its_own", root_agent=root_agent)
"""
)
OLD_CONFIGURATION = pytest.mark.filterwarnings("ignore:LlmAgentConfig is deprecated:DeprecationWarning")  # ADK's own


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """An empty directory that one is in. What is imported from it is forgotten."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known, environment = set(sys.modules), dict(os.environ)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__path__", sys.modules[name].__spec__)):
            del sys.modules[name]
    os.environ.clear()
    os.environ.update(environment)


def write(files: dict[str, str], root: Path) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def found(where: str) -> list[tuple[str, str | None, str]]:
    """Names, app names, and the names of the root agents."""
    return [(one.name, one.app_name, root_of(one).name) for one in find_agents(where)]


def root_of(one: FoundAgent) -> LlmAgent:
    return one.agent.root_agent if isinstance(one.agent, App) else one.agent


# -- one agent --------------------------------------------------------------------------------------------------------

ONE = {
    "a folder of `adk create`": (
        {"cook/__init__.py": "from . import agent as agent\n", "cook/agent.py": AGENT},
        ("cook", "./cook", "cook/"),
    ),
    "a folder without __init__": ({"cook/agent.py": AGENT}, ("cook",)),
    "a package that has its agent itself": ({"cook/__init__.py": AGENT, "cook/tools/__init__.py": ""}, ("cook",)),
    "a module": ({"cook.py": AGENT}, ("cook",)),
    "a module of a package": ({"kitchen/__init__.py": "", "kitchen/cook.py": AGENT}, ("kitchen.cook",)),
    "a package of a package": ({"kitchen/cook/agent.py": AGENT}, ("kitchen.cook", "kitchen/cook")),
}


@pytest.mark.parametrize(("layout", "where"), [(layout, where) for layout in ONE for where in ONE[layout][1]])
def test_one_agent_is_found_under_the_name_of_its_folder(layout: str, where: str, here: Path) -> None:
    write(ONE[layout][0], here)
    assert found(where) == [("cook", "cook", "chef")]


def test_the_current_folder_may_be_the_agents(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"cook/agent.py": AGENT}, here)
    monkeypatch.chdir(here / "cook")
    assert found(".") == [("cook", "cook", "chef")]


def test_an_app_comes_before_the_agent_in_it_and_keeps_its_name(here: Path) -> None:
    write({"cook/agent.py": APP}, here)
    assert found("cook") == [("cook", None, "chef")]
    assert isinstance(find_agents("cook")[0].agent, App)


def test_an_app_of_another_library_is_none(here: Path) -> None:
    write({"cook.py": f"{AGENT}\napp = object()"}, here)
    assert found("cook") == [("cook", "cook", "chef")]


def test_an_attribute_is_taken_as_it_is(here: Path) -> None:
    write({"kitchen/cook.py": f"{AGENT}\nsous_chef = root_agent"}, here)
    assert found("kitchen.cook:sous_chef") == [("chef", None, "chef")]


@OLD_CONFIGURATION
def test_an_agent_may_be_a_configuration(here: Path) -> None:
    write({"cook/root_agent.yaml": "name: chef\nmodel: gemini-2.5-flash\ninstruction: Cook.\n"}, here)
    assert found("cook") == [("cook", "cook", "chef")]


# -- several agents ---------------------------------------------------------------------------------------------------


@OLD_CONFIGURATION
def test_a_folder_of_several_agents_has_them_all_by_name(here: Path) -> None:
    write(
        {
            "agents/waiter/agent.py": AGENT,
            "agents/cook/__init__.py": AGENT,
            "agents/baker/root_agent.yaml": "name: chef\nmodel: gemini-2.5-flash\ninstruction: Bake.\n",
            "agents/shared/__init__.py": "",
            "agents/menus/soup.txt": "",
            "agents/.hidden/agent.py": "raise Exception",
            "agents/__pycache__/agent.py": "raise Exception",
            "agents/notes.md": "",
        },
        here,
    )
    names = [("baker", "baker", "chef"), ("cook", "cook", "chef"), ("waiter", "waiter", "chef")]
    assert found("agents") == names


def test_a_folder_of_agents_may_be_a_package(here: Path) -> None:
    write({"agents/__init__.py": "", "agents/cook/agent.py": AGENT}, here)
    assert found("agents") == [("cook", "cook", "chef")]


# -- .env -------------------------------------------------------------------------------------------------------------


def test_the_env_file_of_the_folder_is_read_before_the_agent(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_BEFORE", "by me")
    asks = 'import os\nassert os.environ["DISH"] == "soup"\n'
    write({"cook/.env": "DISH=soup\nSET_BEFORE=by the file\n", "cook/agent.py": asks + AGENT}, here)
    find_agents("cook")
    assert os.environ["SET_BEFORE"] == "by me"


@pytest.mark.parametrize("where", ["kitchen.cook", "kitchen.cook:root_agent", "kitchen/cook"])
def test_the_nearest_env_file_above_counts(where: str, here: Path) -> None:
    write({"kitchen/.env": "DISH=soup", ".env": "DISH=rice", "kitchen/cook/__init__.py": AGENT}, here)
    find_agents(where)
    assert os.environ["DISH"] == "soup"


def test_env_files_can_be_switched_off_as_for_adk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADK_DISABLE_LOAD_DOTENV", "1")
    write({"cook/.env": "DISH=soup", "cook/agent.py": AGENT}, here)
    find_agents("cook")
    assert "DISH" not in os.environ


# -- refusals ---------------------------------------------------------------------------------------------------------

HOW_TO = "does not name an agent: write a folder, package.module or package.module:attribute."
REFUSED = {
    "nowhere": "There is no folder and no module 'nowhere' here.",
    "./nowhere": "There is no folder './nowhere'.",
    "hlaf": "There is no folder and no module 'hlaf' here. Did you mean half?",
    "./sevral": "There is no folder './sevral'. Did you mean several?",
    "plian:agent": "There is no module 'plian' here. Did you mean plain?",
    "kitchen.nowhere": "There is no folder and no module 'kitchen.nowhere' here.",
    "nowhere:agent": "There is no module 'nowhere' here.",
    "plain:agent": "The module 'plain' has no 'agent'.",
    "plain": "'plain' has no agent: define root_agent or app there, or write plain:attribute.",
    "empty": "The folder 'empty' has no agent. It needs an agent.py that defines root_agent, or folders that have one.",
    "half": "The folder 'half' has an agent.py that defines neither root_agent nor app.",
    "several": "The folder 'half' has an agent.py that defines neither root_agent nor app.",
    "plain.py": "'plain.py' is a file. Write the name of its folder, or of its module: plain",
    "half/agent.py": "'half/agent.py' is a file. Write the name of its folder, or of its module: half.agent",
    "email": "There is another module 'email'. Rename the folder.",
    "1st": "The folder '1st' needs a name of letters, digits, - and _ that begins with a letter.",
    "user": "The folder 'user' needs another name: ADK uses this one.",
    "two": "The root_agent of 'two_numbers' must be an ADK agent, App or Runner, not int.",
    "number": "The root_agent of 'number' must be an ADK agent, App or Runner, not int.",
    "number:root_agent": "'number:root_agent' must be an ADK agent, App or Runner, not int.",
    "": f"'' {HOW_TO}",
    ":agent": f"':agent' {HOW_TO}",
    "plain:": f"'plain:' {HOW_TO}",
    ".plain:agent": f"'.plain:agent' {HOW_TO}",
}


@pytest.mark.parametrize("where", REFUSED)
def test_what_is_no_agent_is_refused_with_what_to_write(where: str, here: Path) -> None:
    write(
        {
            "plain.py": "",
            "number.py": "root_agent = 1",
            "two/one_cook/agent.py": AGENT,
            "two/two_numbers/agent.py": "root_agent = 1",
            "kitchen/__init__.py": "",
            "empty/notes.md": "",
            **{f"{name}/agent.py": "" for name in ("half", "several/half")},
            **{f"{name}/agent.py": AGENT for name in ("email", "1st", "user")},
        },
        here,
    )
    with pytest.raises(ConfigurationError) as refused:
        find_agents(where)
    assert str(refused.value) == REFUSED[where]


TRACED = "Traceback (most recent call last):\n  File "


@pytest.mark.parametrize("where", ["cook", "cook.agent", "cook:agent", "cook/"])
def test_an_import_that_fails_inside_the_agent_is_shown_to_its_author(where: str, here: Path) -> None:
    write({"cook/__init__.py": "", "cook/agent.py": "import oven\n"}, here)
    write({"cook/__init__.py": "import oven\n"} if where == "cook:agent" else {}, here)
    file = here / "cook" / ("__init__.py" if where == "cook:agent" else "agent.py")
    assert shown_of(where, where.partition(":")[0].rstrip("/")) == (
        f"{TRACED}\"{file}\", line 1, in <module>\n    import oven\nModuleNotFoundError: No module named 'oven'"
    )


def shown_of(where: str, name: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        find_agents(where)
    first, _, shown = str(refused.value).partition("\n")
    assert first == f"The agent in {name!r} cannot be imported:"
    return shown


def test_what_is_no_python_is_shown_by_its_line_alone(here: Path) -> None:
    write({"cook/agent.py": "def cook(:\n"}, here)
    shown = shown_of("cook", "cook").splitlines()
    assert shown[0] == f'  File "{here}/cook/agent.py", line 1'
    assert shown[-1] == "SyntaxError: invalid syntax"
    assert len(shown) == 4


def test_lines_of_the_authors_other_modules_are_shown_and_none_of_libraries(here: Path) -> None:
    """Those of the agent's own package always are, since the package may be installed."""
    heats = "import json\njson.loads('{')\n"
    write({"agents/cook/agent.py": "import oven_of_all\n", "agents/oven_of_all.py": heats}, here)
    shown = shown_of("agents", "cook").splitlines()
    assert [line.split(",")[0] for line in shown if line.startswith("  File")] == [
        f'  File "{here}/agents/cook/agent.py"',
        f'  File "{here}/agents/oven_of_all.py"',
    ]
    assert shown[-1].startswith("json.decoder.JSONDecodeError: ")


def test_lines_of_an_agent_that_is_installed_are_shown(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_agents, "_NOT_THE_AUTHORS", (str(here),))
    write({"cook/agent.py": "from . import oven\n", "cook/oven.py": "heat\n"}, here)
    shown = shown_of("cook", "cook")
    assert [name in shown for name in ("cook/agent.py", "cook/oven.py")] == [True, True]


def test_the_causes_of_a_failed_import_are_shown_without_lines_of_libraries(here: Path) -> None:
    cook = "import json\ntry:\n    json.loads('{')\nexcept ValueError as error:\n    raise RuntimeError('cold') HOW\n"
    for how, said in (("from error", "direct cause"), ("", "During handling"), ("from None", "")):
        name = f"cook_{len(how)}"
        write({f"{name}/agent.py": cook.replace("HOW", how)}, here)
        shown = shown_of(name, name)
        assert said in shown
        assert shown.count("  File ") == (2 if said else 1)
        assert shown.count(f'  File "{here}/{name}/agent.py"') == (2 if said else 1)
        assert not said or "    json.loads('{')\n" in shown


@pytest.mark.parametrize(("text", "says"), [("name: [", "root_agent.yaml"), ("- a\n", "Expected a dictionary.")])
def test_a_broken_configuration_is_shown_without_the_lines_of_its_readers(text: str, says: str, here: Path) -> None:
    write({"cook/root_agent.yaml": text}, here)
    shown = shown_of("cook", "cook")
    assert says in shown
    assert "Traceback" not in shown


def test_a_refusal_of_this_library_inside_an_agent_is_shown_with_its_place(here: Path) -> None:
    write({"cook/agent.py": "from adk_stream_protocol import ChatBridge\nChatBridge(1, user_id=1)\n"}, here)
    shown = shown_of("cook", "cook")
    assert "cook/agent.py" in shown
    assert shown.count("  File ") == 1


# -- keys -------------------------------------------------------------------------------------------------------------


def test_a_model_of_gemini_without_a_key_is_named(here: Path) -> None:
    agent = LlmAgent(name="a", model="gemini-2.5-flash")
    scripted = ScriptedModel([])
    assert model_without_key(agent) == "gemini-2.5-flash"
    assert model_without_key(App(name="app", root_agent=agent)) == "gemini-2.5-flash"
    assert model_without_key(LlmAgent(name="b", model=scripted, sub_agents=[agent])) == "gemini-2.5-flash"
    assert (model_without_key(LlmAgent(name="c")) or "").startswith("gemini-")
    assert model_without_key(LlmAgent(name="d", model=scripted)) is None
    assert model_without_key(LlmAgent(name="e", model=Gemini(model="gemini-2.5-flash"))) is None  # may bring its own
    assert model_without_key(SequentialAgent(name="f")) is None
    assert model_without_key(LlmAgent(name="g", model="no-such-model")) is None
    assert model_without_key(["no agent"]) is None


@pytest.mark.parametrize("key", KEYS)
def test_any_way_to_reach_gemini_will_do(key: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(key, "1")
    assert model_without_key(LlmAgent(name="a", model="gemini-2.5-flash")) is None
