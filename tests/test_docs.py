"""What the Markdown pages show is true: all code in them is run or checked, and every link leads somewhere.

What is done with a block depends on its language:

- `python`: the blocks of a page are run from top to bottom, as one program. A block under a name is also that module.
- `ts`, `tsx`, `js`, `vue`, `svelte`: each block is a file, under the name in its first line if it has one. Its types
  are checked with the real packages; those of a `vue` or `svelte` file in its script. tests/browser runs the files of
  the pages about clients.
- `json`: parsed, as a whole or line by line.
- `sh`: the options of our own commands and of servers are parsed by those programs, targets of make must exist.
- `nginx`: used by tests/test_production.py where nginx is installed.
- `dockerfile`: not built, and its page says so. The command that it starts is parsed like those of `sh`.
- `mermaid`: not at all; tests/protocol draws it.

Names that a page leaves to its reader, such as `root_agent`, are in `GIVEN`.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from gunicorn.config import Config as GunicornConfig
from uvicorn.main import main as uvicorn_main

import options_tables
from adk_stream_protocol import ChatBridge
from adk_stream_protocol.cli_options import build_parser
from adk_stream_protocol.testing import ScriptedModel
from support.apps import app_of, user_of
from support.documents import PAGES, ROOT, Block, anchors_of, blocks_of, run_page, text_without_code

LANGUAGES = {"python", "ts", "tsx", "js", "vue", "svelte", "json", "sh", "nginx", "dockerfile", "mermaid"}
COMPONENTS = ("vue", "svelte")
TYPED = ("ts", "tsx", "js", *COMPONENTS)
WITH_PYTHON = [page for page in PAGES if any(blocks_of(page, "python"))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def agent() -> LlmAgent:
    return LlmAgent(name="helper", model=ScriptedModel(["Hello."]))


async def send_a_mail(_: Any) -> None: ...


def given_for(page: Path) -> dict[str, Any]:
    bridge = ChatBridge(agent(), user_id=user_of)
    tools = {"process_payment": lambda amount: amount, "get_location": lambda: None}
    names: dict[str, dict[str, Any]] = {
        "docs/reference/http.md": {"bridge": bridge, "app": app_of(bridge)},
        "docs/topics/approvals.md": tools,
        "docs/topics/policies.md": {
            **{"agent": agent(), "user_of": user_of},
            **{"groups_of": lambda _user: ["managers"], "send_a_mail": send_a_mail},
        },
    }
    return names.get(name_of(page), {})


# -- code --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_says_its_language(page: Path) -> None:
    fences = re.findall(r"^[ >]*(?:```|~~~)", page.read_text(), re.MULTILINE)
    assert len(fences) == 2 * len([*blocks_of(page)]), f"{name_of(page)} has a block that no test sees"
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{name_of(page)}:{block.line}: {block.language or 'no language'}"


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
async def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SESSION_KEY", "a key of 32 bytes, as JWTs want it")
    names = run_page(page, **given_for(page))
    for found in names.values():
        if isinstance(found, ChatBridge):
            await found.aclose()


def test_the_functions_in_the_python_of_a_page_use_names_that_exist(tmp_path: Path) -> None:
    for page in WITH_PYTHON:
        given = "".join(f"{name} = None\n" for name in given_for(page))
        program = "\n".join(block.code for block in blocks_of(page, "python"))
        (tmp_path / f"{name_of(page).replace('/', '_')}.py").write_text(given + program)
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F401,E9", str(tmp_path)]
    checked = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_types_of_the_pages_code_for_browsers_are_sound(tmp_path: Path) -> None:
    for page in PAGES:
        for block in blocks_of(page, *TYPED):
            _write_module(tmp_path / re.sub(r"\W+", "-", name_of(page)), page, block)
    (tmp_path / "node_modules").symlink_to(ROOT / "page" / "node_modules")
    (tmp_path / "ambient.d.ts").write_text(AMBIENT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(_tsconfig()))
    compiler = ROOT / "page" / "node_modules" / "typescript" / "bin" / "tsc"
    checked = subprocess.run(
        ["node", str(compiler), "-p", str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


# Next.js takes 350 MB, so `make test` goes without. Its own types are checked by `next build` in tests/next.
AMBIENT = """
declare module "next" {
  export interface NextConfig {
    cacheComponents?: boolean;
    rewrites?(): Promise<{ source: string; destination: string }[]>;
  }
}
declare module "next/headers" { export function cookies(): Promise<{ toString(): string }>; }
declare module "next/navigation" { export function useRouter(): { refresh(): void }; }
declare module "*.vue" { const component: import("vue").Component; export default component; }
"""


def _write_module(folder: Path, page: Path, block: Block) -> None:
    file = folder / (block.file or f"line-{block.line}.{block.language}")
    code = block.code
    if block.language in COMPONENTS:
        code = "\n".join(re.findall(r"<script[^>]*>(.*?)</script>", code, re.DOTALL))
        file = file.with_suffix(".ts")
    file.parent.mkdir(parents=True, exist_ok=True)
    assert not file.exists(), f"{name_of(page)} has two files {block.file}"
    file.write_text(code)


def _tsconfig() -> dict[str, Any]:
    vue, others = (ROOT / folder / "node_modules" for folder in ("client", "tests/browser"))
    paths = {
        "ai": [str(ROOT / "page/node_modules/ai/dist/index.d.ts")],
        "adk-stream-client": [str(ROOT / "client/src/index.ts")],
        "adk-stream-client/audio": [str(ROOT / "client/src/audio/index.ts")],
        "@ai-sdk/vue": [str(vue / "@ai-sdk/vue/dist/index.d.ts")],
        "vue": [str(vue / "vue/dist/vue.d.mts")],
        "@ai-sdk/svelte": [str(others / "@ai-sdk/svelte/dist/index.d.ts")],
        "@angular/*": [str(others / "@angular/*")],
        "@assistant-ui/*": [str(others / "@assistant-ui/*")],
    }
    return {
        "compilerOptions": {
            **{"target": "es2024", "module": "esnext", "moduleResolution": "bundler", "jsx": "react-jsx"},
            **{"lib": ["es2024", "dom", "dom.iterable", "dom.asynciterable"], "types": ["vite/client", "node"]},
            **{"noEmit": True, "strict": True, "skipLibCheck": True, "allowImportingTsExtensions": True},
            **{"allowJs": True, "checkJs": True, "moduleDetection": "force", "paths": paths},
            "experimentalDecorators": True,  # Angular's
        },
        "files": [str(others / "svelte/types/index.d.ts")],
        "include": ["**/*.ts", "**/*.tsx", "**/*.js", "**/*.mjs"],
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_json_of_a_page_is_json(page: Path) -> None:
    for block in blocks_of(page, "json"):
        try:
            json.loads(block.code)
        except json.JSONDecodeError:
            for line in block.code.splitlines():
                json.loads(line)


def test_the_tables_of_options_are_those_of_the_docstrings() -> None:
    page = options_tables.PAGE.read_text()
    assert options_tables.written(page) == page, "run `python tests/options_tables.py`"
    for name in options_tables.CLASSES:
        for row in options_tables.table_of(name).splitlines():
            assert not re.search(r"\|\s+\|", row), f"no docstring: {row}"


# -- commands ----------------------------------------------------------------------------------------------------------

TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OTHERS = {
    "cd",
    "curl",
    "docker",
    "export",
    "mkdir",
    "node",
    "npm",
    "npx",
    "nginx",
    "openssl",
    "pip",
    "pytest",
    "python",
}


def commands_of(block: Block) -> Iterator[list[str]]:
    if block.language == "dockerfile":
        yield from (json.loads(command) for command in re.findall(r"^CMD (.+)$", block.code, re.MULTILINE))
        return
    for line in lines_of(block):
        command: list[str] = []
        for word in [*shlex.split(line, comments=True), ";"]:
            if word in ("&&", "|", ";", "&"):
                if command:
                    yield command
                command = []
            elif command or "=" not in word:  # not X=y before a command
                command.append(word)


def lines_of(block: Block) -> Iterator[str]:
    """A quoted argument may have several."""
    line = ""
    for more in block.code.replace("\\\n", " ").splitlines():
        line = f"{line}\n{more}" if line else more
        try:
            shlex.split(line, comments=True)
        except ValueError:
            continue
        yield line
        line = ""
    assert not line, f"a quote is not closed: {line}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    for block in blocks_of(page, "sh", "dockerfile"):
        for program, *arguments in commands_of(block):
            program = program.removeprefix(".venv/bin/")
            where = f"{name_of(page)}:{block.line}: {program} {' '.join(arguments)}"
            if program == "make":
                assert {word for word in arguments if "=" not in word} <= TARGETS, where
            elif program == "adk-stream":
                _parse_ours(arguments, where)
            elif program == "uvicorn":
                uvicorn_main.make_context("uvicorn", arguments)
            elif program == "gunicorn":
                GunicornConfig().parser().parse_args(arguments)
            else:
                assert program in OTHERS, where


def _parse_ours(arguments: list[str], where: str) -> None:
    try:
        build_parser().parse_args(arguments)
    except SystemExit as ended:
        if ended.code != 0:  # --help and --version end with 0
            pytest.fail(where)


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_without_code(page)):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{name_of(page)}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors_of(file), f"{name_of(page)}: {target}"
