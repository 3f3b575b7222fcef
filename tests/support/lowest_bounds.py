"""Print ``name==bound`` for every dependency of pyproject.toml: constraints for pip, which has no lowest resolution.

python -m tests.support.lowest_bounds [extra ...] > lowest.txt
"""

from __future__ import annotations

import sys
from typing import Any

from packaging.requirements import Requirement

from tests.support.places import ROOT


def lowest(project: dict[str, Any], extras: tuple[str, ...] = ()) -> list[str]:
    """Return one ``name==version; marker`` a dependency that has a lower bound.

    Args:
        project: the table ``project`` of a pyproject.toml.
        extras: optional dependencies to be held to their bounds as well.

    Raises:
        ValueError: a dependency has no lower bound.
    """
    written = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    lines = []
    for requirement in map(Requirement, written):
        bounds = [bound.version for bound in requirement.specifier if bound.operator in (">=", "==", "~=")]
        if len(bounds) != 1:
            raise ValueError(f"{requirement} has {len(bounds)} lower bounds instead of one")
        marker = f"; {requirement.marker}" if requirement.marker else ""
        lines.append(f"{requirement.name}=={bounds[0]}{marker}")
    return lines


def project_table() -> dict[str, Any]:
    """Return the table ``project`` of this repository's pyproject.toml."""
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(project_table(), tuple(sys.argv[1:]))) + "\n")
