"""The limits that the product's code keeps, checked by ``make lint``: python -m tests.support.house [FOLDER ...].

Modules of at most 400 lines; functions of at most 60 lines, 7 parameters and a complexity of 15; class names used
once; no two modules of one name but the four of every command; and no value that says only that it was found.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.places import ROOT

MODULE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 7
COMPLEXITY = 15
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)
"""What adds a path through a function; every further operand of ``and`` and ``or`` does, too."""
EVERYWHERE = frozenset({"__init__", "__main__", "command", "compute", "plot", "result", "view", "options"})
"""Names of modules that mean the same in every folder."""
SAYS_NOTHING = frozenset({"found"})
"""Names that say where a value came from, not what it is."""
FOLDERS = ("traceanalyzer", "kernels")


def modules(folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    """Return the modules of some folders; links to folders are not followed."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if not linked(path))


def linked(path: Path) -> bool:
    """Whether a path leads through a link, as traceanalyzer/kernels does."""
    return any(parent.is_symlink() for parent in path.parents)


def complaints(paths: list[Path]) -> Iterator[str]:
    """Yield what breaks a limit, with its place."""
    classes: dict[str, list[str]] = defaultdict(list)
    names: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT).as_posix()
        if (lines := text.count("\n")) > MODULE_LINES:
            yield f"{place}: {lines} lines, at most {MODULE_LINES}"
        if path.stem not in EVERYWHERE and "schemes" not in path.parts:
            names[path.stem].append(place)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not any(one.startswith(f"{place}:") for one in classes[node.name]):
                classes[node.name].append(f"{place}:{node.lineno}")
            yield from (f"{place}:{line}: {reason}" for line, reason in of_node(node))
    for kind, uses in (("class", classes), ("module", names)):
        for name, places in uses.items():
            if len(places) > 1:
                yield f"{kind} {name} is used {len(places)} times: {', '.join(places)}"


def of_node(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield what breaks a limit of functions, or a rule of names, at a node."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        assert node.end_lineno is not None
        if (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES:
            yield node.lineno, f"{node.name} has {lines} lines, at most {FUNCTION_LINES}"
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = [one.arg for one in every if one.arg not in {"self", "cls"}]
        if (paths := complexity(node)) > COMPLEXITY:
            yield node.lineno, f"{node.name} has a complexity of {paths}, at most {COMPLEXITY}"
        if len(own) > PARAMETERS and not takes_more(node):
            yield node.lineno, f"{node.name} has {len(own)} parameters, at most {PARAMETERS}"
    if isinstance(node, ast.arg) and node.arg in SAYS_NOTHING:
        yield node.lineno, f"a parameter is named {node.arg}"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in SAYS_NOTHING:
        yield node.lineno, f"a value is named {node.id}"


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the paths through a function, those of functions within it apart."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        count += isinstance(node, BRANCHES)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += len(node.ifs) if isinstance(node, ast.comprehension) else 0
        waiting += ast.iter_child_nodes(node)
    return count


def takes_more(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether others decide how many parameters a function has: options of a Click command, arguments of a kernel."""
    return any("command" in ast.unparse(one) or "jit" in ast.unparse(one) for one in function.decorator_list)


def main() -> int:
    """Print every complaint; return the exit status."""
    wanted = [Path(one).resolve() for one in sys.argv[1:]]
    told = list(complaints(modules()))
    if wanted:
        places = [path.relative_to(ROOT).as_posix() for path in wanted]
        told = [line for line in told if any(place in line for place in places)]
    sys.stdout.write("".join(f"{line}\n" for line in told))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
