"""Write what commands print today beneath them in the pages: python -m tests.support.refresh [PAGE...].

Figures that a page shows are drawn again, too. Output with one elided part stays elided: as many lines as stood before
and after it are kept.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.doc_commands import ELISION, PAGES, Command, blocks, commands, is_python, matches
from tests.support.doc_sandbox import prepare, run, why_not_here
from tests.support.places import ROOT


def refresh(page: str, directory: Path) -> None:
    """Run a page's blocks in order in a prepared directory and write the page again."""
    lines = (ROOT / page).read_text(encoding="utf-8").split("\n")
    of_page = commands(page)
    shift, scope = 0, {"__name__": page}
    todo: list[tuple[int, Command | str]] = [(command.line, command) for command in of_page]
    todo += [(block.line, block.text) for block in blocks(page) if is_python(block) and '"cuda"' not in block.text]
    for _, item in sorted(todo, key=lambda entry: entry[0]):
        if isinstance(item, str):
            exec(item, scope)
            continue
        if item.is_synopsis or why_not_here(item):
            continue
        status, stdout, stderr = run(item, directory)
        if status:
            sys.exit(f"{item}\n{stderr}")
        if item.output is None or matches(item.output, stdout):
            continue
        if item.output.count(ELISION) > 1:
            sys.exit(f"{item}: choose by hand what is shown of\n{stdout}")
        new = _elided([line.rstrip() for line in stdout.rstrip("\n").split("\n")], item.output)
        first = item.line + shift
        while lines[first - 1].endswith("\\"):
            first += 1
        lines[first : first + len(item.output)] = new
        shift += len(new) - len(item.output)
    (ROOT / page).write_text("\n".join(lines), encoding="utf-8")
    for figure in directory.glob("*.png"):
        if f"images/{figure.name})" in "\n".join(lines):
            shutil.copy(figure, ROOT / "docs/images" / figure.name)


def _elided(printed: list[str], shown: tuple[str, ...]) -> list[str]:
    if ELISION not in shown:
        return printed
    head = shown.index(ELISION)
    tail = shown[::-1].index(ELISION)
    return [*printed[:head], ELISION, *(printed[-tail:] if tail else [])]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        os.environ["XDG_CACHE_HOME"] = str(Path(made) / "cache")
        (Path(made) / "sandbox").mkdir()
        os.chdir(prepare(Path(made) / "sandbox"))
        for wanted in sys.argv[1:] or PAGES:
            refresh(wanted, Path.cwd())
