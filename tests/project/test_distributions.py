"""What is in the wheel and in the source distribution."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import traceanalyzer
from tests.support.distributions import build
from tests.support.places import ROOT


def source_files(folder: Path) -> Iterator[Path]:
    """Yield every file below, also behind links to folders, but what running leaves behind."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            yield from source_files(path)
        elif path.is_file() and not path.name.startswith(".") and path.suffix != ".pyc":
            yield path


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_package_also_behind_links(wheel: Path) -> None:
    held = {name for name in contents(wheel) if not name.startswith("traceanalyzer-")}
    assert held == {path.relative_to(ROOT).as_posix() for path in source_files(ROOT / "traceanalyzer")}
    assert {
        "traceanalyzer/py.typed",
        "traceanalyzer/kernels/dense.py",
        "traceanalyzer/sample_traces/gptoss20b_decode_synthetic.json.gz",
        "traceanalyzer/hardware/gpus.csv",
        "traceanalyzer/commands/report/templates/page.html.j2",
    } <= held


def test_the_metadata_say_what_the_project_is(wheel: Path) -> None:
    files = contents(wheel)
    folder = f"traceanalyzer-{traceanalyzer.__version__}.dist-info"
    metadata = message_from_bytes(files[f"{folder}/METADATA"])
    assert metadata["Name"] == "traceanalyzer"
    assert metadata["Version"] == traceanalyzer.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == "<3.14,>=3.10"
    assert files[f"{folder}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert b"traceanalyzer = traceanalyzer.cli.main:main" in files[f"{folder}/entry_points.txt"]
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not any(name in line for line in needed for name in ("pytest", "hypothesis", "xlsxwriter", "ray"))


def test_the_source_distribution_gives_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(sdist, tmp_path)
    (source,) = tmp_path.iterdir()
    for name in ("SECURITY.md", "tests/conftest.py", "kernels/dense.py", "traces/README.md", "Makefile"):
        assert (source / name).is_file(), name
    again = build("wheel", source, tmp_path)
    assert contents(again) == contents(wheel)
