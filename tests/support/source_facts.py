"""What the source says: codes of warnings and findings, and environment variables, read from its syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tests.support.places import ROOT

PACKAGE = ROOT / "traceanalyzer"
CODED = {"TraceWarning", "Finding", "RankFinding", "Problem"}
"""Classes whose first field is a code. ``Problem`` of kernels/ is another one: it is never made from text."""


@dataclass(frozen=True)
class Source:
    """A module: where it is, its tree, and each node's parent."""

    path: Path
    tree: ast.Module
    parents: dict[ast.AST, ast.AST]

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function around a node."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None


@lru_cache(maxsize=1)
def sources() -> tuple[Source, ...]:
    """Parse every module of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.append(
            Source(path, tree, {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)})
        )
    return tuple(found)


def called(node: ast.Call) -> str:
    """The last part of what a call calls."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def codes() -> tuple[set[str], list[str]]:
    """Return every code that is given to one of CODED, and the calls whose code could not be read."""
    found: set[str] = set()
    unread: list[str] = []
    for source in sources():
        for call in (node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and called(node) in CODED):
            code = argument(call, 0, "code")
            if code is None or (isinstance(code, ast.Constant) and not isinstance(code.value, str)):
                continue  # another class of that name
            texts = values(source, code)
            found |= texts or set()
            if texts is None:
                unread.append(f"{source.path}:{call.lineno}: {ast.unparse(code)}")
    return found, unread


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by position or name."""
    if len(call.args) > position:
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def values(source: Source, code: ast.expr) -> set[str] | None:
    """Return the texts that an expression can be; null where they cannot be told.

    Followed are: a text; a constant of a module; ``other.code``, which was made elsewhere; a parameter, back to all
    callers of its function in the module's package (of a private one in the module, unless it is a method, which a
    subclass may call); a loop over a literal; a name that also picks a message from a literal dictionary.
    """
    if isinstance(code, ast.Constant):
        return {code.value}
    if isinstance(code, ast.Attribute) and code.attr == "code":
        return set()
    function = source.function_of(code)
    if not isinstance(code, ast.Name):
        return None
    if function is None:
        return of_constant(source, code.id)
    names = [one.arg for one in function.args.args]
    if code.id in names:
        method = names[0] == "self"
        outside = method or not function.name.startswith("_")
        return of_callers(source, function.name, names.index(code.id) - method, code.id, outside)
    return set(of_loops(function, code.id)) or of_table(source, function, code.id) or of_constant(source, code.id)


def of_constant(source: Source, name: str) -> set[str] | None:
    """The text that a module binds to a name once and for all, or that it imports under that name."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                return {node.value.value}
        elif isinstance(node, ast.ImportFrom) and any((one.asname or one.name) == name for one in node.names):
            path = (PACKAGE.parent / (node.module or "").replace(".", "/")).with_suffix(".py")
            original = next(one.name for one in node.names if (one.asname or one.name) == name)
            return next((of_constant(other, original) for other in sources() if other.path == path), None)
    return None


def of_loops(function: ast.FunctionDef, name: str) -> Iterator[str]:
    """The texts that a loop over a literal gives a name."""
    for loop in (node for node in ast.walk(function) if isinstance(node, ast.For)):
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        for at, target in enumerate(targets):
            if isinstance(target, ast.Name) and target.id == name and isinstance(loop.iter, ast.Tuple | ast.List):
                for row in loop.iter.elts:
                    entry = row.elts[at] if isinstance(row, ast.Tuple) else row
                    if isinstance(entry, ast.Constant):
                        yield entry.value


def of_callers(source: Source, function: str, position: int, name: str, outside: bool) -> set[str] | None:
    """The texts that the callers of a function pass: those of its module or, with ``outside``, of its folder."""
    found: set[str] = set()
    for other in sources():
        if other.path.parent != source.path.parent or (other is not source and not outside):
            continue
        for call in (node for node in ast.walk(other.tree) if isinstance(node, ast.Call) and called(node) == function):
            given = argument(call, position, name)
            texts = None if given is None else values(other, given)
            if texts is None:
                return None
            found |= texts
    return found or None


def of_table(source: Source, function: ast.FunctionDef, name: str) -> set[str] | None:
    """The keys of the dictionary of the module that the name picks an entry of."""
    tables = {
        target.id: node.value
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Name)
            and node.slice.id == name
            and isinstance(node.value, ast.Name)
            and node.value.id in tables
        ):
            return {key.value for key in tables[node.value.id].keys if isinstance(key, ast.Constant)}
    return None


def variables() -> set[str]:
    """Return the environment variables that the package reads, sets for itself or hands to programs it starts."""
    found: set[str] = set()
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                found |= {
                    k.value.value for k in node.keywords if k.arg == "envvar" and isinstance(k.value, ast.Constant)
                }
                if is_environment(node.func) or called(node) == "getenv":
                    found |= {one.value for one in node.args[:1] if isinstance(one, ast.Constant)}
            elif (
                isinstance(node, ast.Subscript) and is_environment(node.value) and isinstance(node.slice, ast.Constant)
            ):
                found.add(node.slice.value)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.BinOp):
                found |= handed_on(node)
    return found


def is_environment(node: ast.expr) -> bool:
    """Whether an expression is os.environ or a method of it."""
    return "environ" in {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def handed_on(node: ast.AST) -> set[str]:
    """Keys of a dictionary that is joined with os.environ, or bound to a name that says it is an environment."""
    if isinstance(node, ast.BinOp):
        if not is_environment(node.left):
            return set()
        literals = [node.right]
    else:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        named = any(isinstance(one, ast.Name) and one.id in {"environment", "variables", "env"} for one in targets)
        literals = [node.value] if named else []  # type: ignore[attr-defined]
    return {
        key.value
        for literal in literals
        if isinstance(literal, ast.Dict)
        for key in literal.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isupper()
    }
