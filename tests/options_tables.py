"""Writes the tables of docs/reference/options.md from the docstrings: `python tests/options_tables.py`.

A test compares the page with what this would write.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "adk_stream_protocol"
PAGE = ROOT / "docs" / "reference" / "options.md"
CLASSES = {
    "Limits": "limits.py",
    "ApprovalPolicy": "adk/calls/policy.py",
    "ApprovalRequest": "adk/calls/policy.py",
    "Prepared": "chat/prepared.py",
    "Store": "store/base.py",
}
_TABLE = re.compile(r"<!-- begin: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def written(page: str) -> str:
    """The page with the tables as they should be."""
    return _TABLE.sub(lambda found: f"<!-- begin: {found[1]} -->\n\n{table_of(found[1])}\n<!-- end -->", page)


def table_of(name: str) -> str:
    tree = ast.parse((SOURCE / CLASSES[name]).read_text())
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    methods = [node for node in found.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
    if name == "Store":
        rows = [[_signature(method), _line(ast.get_docstring(method))] for method in methods]
        return _table(["Method", "What it does"], rows)
    fields = list(_fields(found))
    if any(default for _, default, _ in fields):
        return _table(
            ["Field", "Default", "Meaning"], [[f"`{field}`", default, text] for field, default, text in fields]
        )
    return _table(["Field", "Meaning"], [[f"`{field}`", text] for field, _, text in fields])


def _fields(found: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """The name, the default and the docstring of each."""
    for node, after in zip(found.body, [*found.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield node.target.id, _default(node.value), _line(str(text))


def _default(value: ast.expr | None) -> str:
    if value is None:
        return ""
    shown = ast.unparse(value)
    if shown.startswith("field("):
        return "none"
    return {"None": "none", "()": "none"}.get(shown, f"`{shown.replace(' * MIB', ' MiB').replace(' * 1024', ' KiB')}`")


def _signature(method: ast.AsyncFunctionDef | ast.FunctionDef) -> str:
    names = [argument.arg for argument in [*method.args.args[1:], *method.args.kwonlyargs]]
    if method.args.vararg:
        names.insert(1, f"*{method.args.vararg.arg}")
    return f"`{method.name}({', '.join(names)})`"


def _line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
