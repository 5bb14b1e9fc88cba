"""Finds the agents that a command line names: a folder as ADK's own commands take it, a module, or an attribute."""

import importlib
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from dotenv import load_dotenv
from google.adk.agents import LlmAgent
from google.adk.agents.config_agent_utils import from_config
from google.adk.apps import App
from google.adk.models.google_llm import Gemini

from .adk.runner import AgentLike
from .demo.agent import gemini_is_configured
from .errors import ConfigurationError

_NAME = re.compile(r"[a-zA-Z][\w-]*", re.ASCII)  # what ADK takes for the name of an app
_NOT_THE_AUTHORS = ("<", str(Path(__file__).parent), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
"""How the names of other files begin, in a traceback: generated code, this library, Python, installed packages."""


class FoundAgent(NamedTuple):
    name: str
    """For people and addresses."""
    agent: Any
    """An agent, App or Runner; `ChatBridge` looks closer."""
    app_name: str | None
    """The name under which its chats are kept: that of its folder or module, since `adk create` calls each agent
    `root_agent`. None if it has one itself."""
    folder: Path
    """Where its `.env` belongs."""


def find_agents(where: str) -> list[FoundAgent]:
    """`where`: a folder with one agent or several, `package`, `package.module` or `package.module:attribute`."""
    path = Path(where)
    if where and path.is_dir():  # an empty name is an unset variable of a shell, not the current folder
        return _in_folder(path.resolve(), where)
    if path.is_file():
        module = ".".join(path.with_suffix("").parts)
        raise ConfigurationError(f"{where!r} is a file. Write the name of its folder, or of its module: {module}")
    if ":" not in where and ("/" in where or os.sep in where):
        raise ConfigurationError(f"There is no folder {where!r}.{_meant(path.name)}")
    module_name, colon, attribute = where.partition(":")
    if not module_name or module_name.startswith(".") or (colon and not attribute):
        raise ConfigurationError(
            f"{where!r} does not name an agent: write a folder, package.module or package.module:attribute."
        )
    return [_in_module(module_name, attribute)]


def _meant(name: str) -> str:
    here = [path.stem for path in Path.cwd().iterdir() if path.is_dir() or path.suffix == ".py"]
    top = name.partition(".")[0]
    close = [] if top in here else get_close_matches(top, here, n=1)
    return f" Did you mean {close[0]}?" if close else ""


# -- modules ----------------------------------------------------------------------------------------------------------


def _in_module(name: str, attribute: str) -> FoundAgent:
    here = Path.cwd()
    _read_env(here.joinpath(*name.split(".")))
    _import_from(here)
    if not attribute:
        agent = _agent_of_package(name)
        if agent is None and _import(name) is None:
            raise ConfigurationError(f"There is no folder and no module {name!r} here.{_meant(name)}")
        if agent is None:
            raise ConfigurationError(
                f"{name!r} has no agent: define root_agent or app there, or write {name}:attribute."
            )
        return _found(name.rpartition(".")[2], agent, here)
    module = _import(name)
    if module is None:
        raise ConfigurationError(f"There is no module {name!r} here.{_meant(name)}")
    if not hasattr(module, attribute):
        raise ConfigurationError(f"The module {name!r} has no {attribute!r}.")
    agent = _checked(getattr(module, attribute), repr(f"{name}:{attribute}"))
    return FoundAgent(str(getattr(root_of(agent), "name", "")), agent, None, here)


def _agent_of_package(name: str) -> Any:
    """`app` or `root_agent` of a module, or of its submodule `agent`; None if there is none."""
    for module_name in (name, f"{name}.agent"):
        module = _import(module_name, named=name)
        if isinstance(app := getattr(module, "app", None), App):
            return app
        if (agent := getattr(module, "root_agent", None)) is not None:
            return _checked(agent, f"The root_agent of {name!r}")
    return None


def _import(name: str, *, named: str | None = None) -> ModuleType | None:
    """None if there is no such module. `named`: what the agent's author calls it."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise _failed_import(named or name, error) from None


def _import_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _failed_import(name: str, error: Exception) -> ConfigurationError:
    """With a traceback for the agent's author."""
    chain: list[BaseException] = [error]
    for each in chain:
        each.__traceback__ = _authors_part(each.__traceback__, name.partition(".")[0])
        chain += [one for one in (each.__cause__, each.__context__) if one is not None and one not in chain]
    shown = "".join(traceback.format_exception(error)).rstrip()
    return ConfigurationError(f"The agent in {name!r} cannot be imported:\n{shown}")


def _authors_part(whole: TracebackType | None, package: str) -> TracebackType | None:
    """Without frames of libraries, unless the agent itself is installed as one."""
    entries: list[TracebackType] = []
    while whole is not None:
        entries.append(whole)
        whole = whole.tb_next
    part = None
    for entry in reversed(entries):
        frame = entry.tb_frame
        of_package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if of_package == package or not frame.f_code.co_filename.startswith(_NOT_THE_AUTHORS):
            part = TracebackType(part, frame, entry.tb_lasti, entry.tb_lineno)
    return part


def _checked(agent: Any, what: str) -> Any:
    if not isinstance(agent, AgentLike):
        raise ConfigurationError(f"{what} must be an ADK agent, App or Runner, not {type(agent).__name__}.")
    return agent


def _found(name: str, agent: Any, folder: Path) -> FoundAgent:
    is_named = isinstance(agent, App)
    return FoundAgent(name, agent, None if is_named else name, folder)


# -- folders ----------------------------------------------------------------------------------------------------------


def _in_folder(folder: Path, where: str) -> list[FoundAgent]:
    if _defines_agent(folder):
        return [_of_folder(folder)]
    if _is_package(folder) and (one := _load(folder)) is not None:
        return [one]
    several = [
        one
        for below in sorted(folder.iterdir())
        if not below.name.startswith((".", "__")) and (one := _below(below)) is not None
    ]
    if not several:
        raise ConfigurationError(
            f"The folder {where!r} has no agent. "
            "It needs an agent.py that defines root_agent, or folders that have one."
        )
    return several


def _below(folder: Path) -> FoundAgent | None:
    if _defines_agent(folder):
        return _of_folder(folder)
    return _load(folder) if _is_package(folder) else None  # a package without an agent is something that they share


def _defines_agent(folder: Path) -> bool:
    return (folder / "agent.py").is_file() or (folder / "root_agent.yaml").is_file()


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _of_folder(folder: Path) -> FoundAgent:
    found = _load(folder)
    if found is None:
        raise ConfigurationError(f"The folder {folder.name!r} has an agent.py that defines neither root_agent nor app.")
    return found


def _load(folder: Path) -> FoundAgent | None:
    name = folder.name
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"The folder {name!r} needs a name of letters, digits, - and _ that begins with a letter."
        )
    if name == "user":
        raise ConfigurationError("The folder 'user' needs another name: ADK uses this one.")
    _read_env(folder)
    if (folder / "root_agent.yaml").is_file():
        try:
            return _found(name, from_config(str(folder / "root_agent.yaml")), folder)
        except Exception as error:  # of YAML, of Pydantic, of ADK, and of the modules that the file names
            raise _failed_import(name, error) from None
    _import_from(folder.parent)
    module = _import(name)
    if module is not None and folder not in (Path(path).resolve() for path in getattr(module, "__path__", ())):
        raise ConfigurationError(f"There is another module {name!r}. Rename the folder.")
    agent = _agent_of_package(name)
    return None if agent is None else _found(name, agent, folder)


def _read_env(start: Path) -> None:
    """The nearest `.env` from here upwards, as ADK's commands read it. What is set already stays."""
    if os.environ.get("ADK_DISABLE_LOAD_DOTENV", "").lower() in ("true", "1"):
        return
    for folder in (start, *start.parents):
        if (folder / ".env").is_file():
            load_dotenv(folder / ".env")
            return


# -- keys -------------------------------------------------------------------------------------------------------------


def model_without_key(agent: Any) -> str | None:
    """The name of a model of Gemini that is to be used without any way to reach it; None if there is none."""
    return None if gemini_is_configured() else next(_gemini_models(root_of(agent)), None)


def _gemini_models(agent: Any) -> Iterator[str]:
    """Those that are given by name. A model that is an object may bring its own key."""
    if isinstance(agent, LlmAgent) and isinstance(agent.model, str):
        with suppress(Exception):  # a model that ADK does not know fails later, with its own words
            model = agent.canonical_model
            if isinstance(model, Gemini):
                yield model.model
    for below in getattr(agent, "sub_agents", None) or ():
        yield from _gemini_models(below)


def root_of(agent: Any) -> Any:
    """The root agent of an App or a Runner."""
    return getattr(agent, "root_agent", None) or getattr(agent, "agent", None) or agent
