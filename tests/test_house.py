"""The habits of CONTRIBUTING.md that can be counted: lines of files, parameters of functions, attributes of classes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "adk_stream_protocol"
PAGE = PACKAGE.parents[1] / "page" / "src"
TREES = {file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text()) for file in PACKAGE.rglob("*.py")}

MAX_LINES, MAX_PARAMETERS, MAX_ATTRIBUTES = 350, 5, 10
LONG_FILES = {"store/sql.py"}
LONG_SIGNATURES = {  # all by keyword
    "bridge.py:ChatBridge.__init__",
    "protocol/call_record.py:decide",
    "adk/translate/translator.py:Translator.__init__",
    "demo/server.py:build_server",
}


def nodes(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{inside}{node.name}", node
            yield from nodes(node.body, f"{inside}{node.name}.")


def everything() -> Iterator[tuple[str, ast.stmt]]:
    for file, tree in TREES.items():
        yield from nodes(tree.body, f"{file}:")


def fields_of(cls: ast.ClassDef) -> dict[str, bool]:
    """The fields in the body of a class, and whether each has a docstring."""
    after = [*cls.body[1:], None]
    return {
        node.target.id: isinstance(following, ast.Expr)
        for node, following in zip(cls.body, after, strict=True)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if "ClassVar" not in ast.unparse(node.annotation)
    }


def attributes_of(cls: ast.ClassDef) -> set[str]:
    """Whatever a method assigns to `self`."""
    return {
        node.attr
        for method in cls.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def in_table(cls: ast.ClassDef) -> set[str]:
    lines = (ast.get_docstring(cls) or "").splitlines()
    return {name for line in lines if line.startswith("|") for name in re.findall(r"`(\w+)`", line)}


def test_files_can_be_read_in_one_go() -> None:
    lines = {file: len((PACKAGE / file).read_text().splitlines()) for file in TREES}
    assert {file for file, count in lines.items() if count > MAX_LINES} == LONG_FILES


def test_functions_have_few_parameters() -> None:
    long: set[str] = set()
    for name, node in everything():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if sum(each.arg not in ("self", "cls") for each in given) > MAX_PARAMETERS:
                long.add(name)
    assert long == LONG_SIGNATURES


def test_a_class_with_many_attributes_has_a_table_of_exactly_these() -> None:
    for name, node in everything():
        if not isinstance(node, ast.ClassDef):
            continue
        fields = fields_of(node)
        attributes = fields.keys() | attributes_of(node)
        if len(attributes) > MAX_ATTRIBUTES and not (fields and all(fields.values())):
            assert in_table(node) - {"Store", "Run"} == attributes, name


def test_one_folder_of_the_page_runs_code_of_the_ai_sdk() -> None:
    """Its tests run with both releases; everywhere else are types only (`page/vitest.ai6.config.ts`)."""
    imports = re.compile(
        r"^(?:import|export) (?!type )[^;]*? from \"(?:ai|@ai-sdk/react)\"|import\(\"(?:ai|@ai-sdk)", re.M
    )
    files = [*PAGE.rglob("*.ts"), *PAGE.rglob("*.tsx")]
    assert {file.relative_to(PAGE).parts[0] for file in files if imports.search(file.read_text())} == {"app"}
