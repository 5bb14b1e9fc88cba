"""Makes mutants: copies of a source text with one small mistake each, in executable code only."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
NOTHING = "**{}"  # in the place of a dict's entry or a named argument: nothing at all


class Mutant(NamedTuple):
    line: int
    name: str
    """Where it is and what was changed; stays the same while the code around it moves."""
    source: str


class _Change(NamedTuple):
    node: ast.AST
    """Its place in the source is what `text` replaces."""
    text: str
    end: ast.AST | None = None
    """Where the place ends, if not with the node."""


def mutants_of(source: str) -> Iterator[Mutant]:
    encoded = source.encode()
    starts = [0]
    for line in encoded.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[str] = Counter()
    for where, change in _changes(ast.parse(source), "", in_function=False):
        last = change.end or change.node
        first_byte = starts[change.node.lineno - 1] + change.node.col_offset  # pyright: ignore
        last_byte = starts[last.end_lineno - 1] + last.end_col_offset  # pyright: ignore
        before = " ".join(encoded[first_byte:last_byte].decode().split())
        name = f"{where or 'module'}: {before} -> {change.text}"
        seen[name] += 1
        number = f" ({seen[name]})" if seen[name] > 1 else ""
        mutated = encoded[:first_byte] + change.text.encode() + encoded[last_byte:]
        yield Mutant(change.node.lineno, name + number, mutated.decode())  # pyright: ignore


def _changes(node: ast.AST, where: str, *, in_function: bool) -> Iterator[tuple[str, _Change]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}".lstrip(".")
        in_function = in_function or not isinstance(node, ast.ClassDef)
    for change in _changes_here(node, in_function):
        yield where, change
    for child in _executable(node):
        yield from _changes(child, where, in_function=in_function)


def _executable(node: ast.AST) -> Iterator[ast.AST]:
    """The children that do something when the code runs: no types, no docstrings, no imports."""
    skipped: list[ast.AST | None] = []
    match node:
        case ast.AnnAssign():
            skipped = [node.annotation]
        case ast.arg() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Expr(value=ast.Constant()):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            skipped = [node.returns, *node.decorator_list]
        case ast.Call(func=ast.Name(id="cast" | "TypeVar")):
            skipped = list(node.args[:1])
        case ast.Subscript(value=ast.Name(id="Literal")):
            return
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant()]):
            skipped = list(node.comparators)  # `is` with another literal is a warning, not a mistake
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield child


def _changes_here(node: ast.AST, in_function: bool) -> Iterator[_Change]:
    if isinstance(node, ast.expr):
        for text in _other_expressions(node):
            yield _Change(node, f"({text})")
    if isinstance(node, ast.Dict):
        yield from _changes_of_entries(node)
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            yield _Change(keyword, NOTHING)
    if isinstance(node, ast.If | ast.IfExp):
        yield from _forced(node.test)
    if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
        yield _Change(node.test, "False")
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield from _forced(condition)
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _Change(node.value, "None")
    if isinstance(node, ast.ExceptHandler):
        yield _Change(node.body[0], "raise", end=node.body[-1])
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            yield _Change(decorator, "(lambda undecorated: undecorated)")
    # Outside of functions most deletions are seen by the first import: they would only cost time.
    if in_function and isinstance(node, ast.stmt) and _can_be_deleted(node):
        yield _Change(node, "pass")


def _other_expressions(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in COMPARISONS[type(operator)]:
                yield ast.unparse(ast.Compare(node.left, [other()], node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield ast.unparse(ast.BoolOp(other, node.values))
            for dropped in node.values:
                yield ast.unparse(ast.BoolOp(node.op, [value for value in node.values if value is not dropped]))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield ast.unparse(node.operand)
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield ast.unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))
        case ast.Call(args=[ast.expr() as argument], keywords=[]) if not isinstance(argument, ast.Starred):
            yield ast.unparse(argument)
        case ast.Lambda() if not _is_none(node.body):
            yield ast.unparse(ast.Lambda(node.args, ast.Constant(None)))
        case ast.JoinedStr():
            yield "'mutant'"
        case ast.Constant():
            yield from _other_constants(node.value)
        case _:
            pass


def _other_constants(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield repr(not value)
        case int() | float():
            yield repr(value + 1)
        case str():
            yield repr(value + "mutant")
        case bytes():
            yield repr(value + b"mutant")
        case None:
            yield "'mutant'"
        case _:
            pass


def _changes_of_entries(node: ast.Dict) -> Iterator[_Change]:
    """An entry is gone, or leads where the next different one leads."""
    values = [ast.unparse(value) for value in node.values]
    for number, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is None:
            continue
        yield _Change(key, NOTHING, end=value)
        others = [other for other in values[number + 1 :] + values[:number] if other != values[number]]
        if others:
            yield _Change(value, f"({others[0]})")


def _forced(condition: ast.expr) -> Iterator[_Change]:
    yield _Change(condition, "True")
    yield _Change(condition, "False")


def _can_be_deleted(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    return isinstance(node, ast.Raise | ast.Assign | ast.AugAssign | ast.Delete | ast.Break | ast.Continue | ast.Assert)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
