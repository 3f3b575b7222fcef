"""Write what was measured into docs/benchmarks.md: ``python -m bench.publish [--check]``.

The page has the words, bench/results the numbers. A section's text stands between two markers, ``<!-- bench:NAME -->``
and ``<!-- /bench:NAME -->``, and is made from the results alone, so that the two cannot diverge.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import bench.sections
from bench.environment import ROOT
from bench.results import FOLDER, load

PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
NOT_YET = "Not measured yet."


def sections() -> dict[str, ModuleType]:
    """Return the sections by name, in order: every module of ``bench.sections`` that can render."""
    modules = {m.name: import_module(f"bench.sections.{m.name}") for m in iter_modules(bench.sections.__path__)}
    found = {name: module for name, module in modules.items() if hasattr(module, "render")}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))


def texts(results: Path = FOLDER) -> dict[str, str]:
    """Return the Markdown of every section, made from its results."""
    found = {}
    for name, module in sections().items():
        document = load(module.RESULTS, results)
        found[name] = NOT_YET if document is None else module.render(document).strip()
    return found


def images(results: Path = FOLDER) -> dict[str, bytes]:
    """Return the pictures of every section by file name."""
    found: dict[str, bytes] = {}
    for module in sections().values():
        document = load(module.RESULTS, results)
        if document is not None and hasattr(module, "images"):
            found.update(module.images(document))
    return found


def fill(page: str, made: Mapping[str, str]) -> str:
    """Return the page with every section's text between its markers.

    Raises:
        ValueError: the page lacks the markers of a section, or has some that no section belongs to.
    """
    marked = re.findall(r"<!-- bench:([\w-]+) -->", page)
    lacking, unknown = set(made) - set(marked), set(marked) - set(made)
    if lacking or unknown or len(marked) != len(set(marked)):
        raise ValueError(f"markers: missing {sorted(lacking)}, without a section {sorted(unknown)}, found {marked}")
    for name, text in made.items():
        before, begin, rest = page.partition(f"<!-- bench:{name} -->")
        _, end, after = rest.partition(f"<!-- /bench:{name} -->")
        if not end:
            raise ValueError(f"the section {name} has no end: expected <!-- /bench:{name} -->")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def main() -> None:
    """Write the page and its pictures, or tell whether the page is as the results say."""
    parser = argparse.ArgumentParser(description="Write docs/benchmarks.md from bench/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit status 1 where the page is stale")
    options = parser.parse_args()
    page = PAGE.read_text()
    made = fill(page, texts())
    if options.check:
        if made != page:
            sys.exit("docs/benchmarks.md is not what bench/results says: run python -m bench.publish")
        return
    PAGE.write_text(made)
    for name, data in images().items():
        IMAGES.mkdir(parents=True, exist_ok=True)
        (IMAGES / name).write_bytes(data)


if __name__ == "__main__":
    main()
