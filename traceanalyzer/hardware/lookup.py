"""A GPU by the name a person gives it, and GPUs that a user describes in a TOML file."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import structs

from traceanalyzer.hardware.errors import HardwareError
from traceanalyzer.hardware.gpus import DTYPES, Gpu, known_gpus

BRAND_WORDS = frozenset({"nvidia", "amd", "instinct", "geforce", "tesla", "generation", "edition", "graphics"})
MAX_FILE_BYTES = 1024 * 1024


def find_gpu(name: str, gpus: Sequence[Gpu] | None = None) -> Gpu:
    """Return the GPU of this name.

    Case, punctuation and brand words do not matter. A part of a name is enough where only one GPU has it.

    Args:
        name: the product's name, or that of the driver.
        gpus: GPUs to choose from, the first of equal names winning; the built-in table by default.

    Raises:
        HardwareError: there is none, or several; the message names the likely ones.
    """
    table = known_gpus() if gpus is None else gpus
    wanted = words(name)
    if not wanted:
        raise HardwareError("a GPU needs a name; `traceanalyzer gpus` lists those known")
    for fits in (_equal, _contains, _spelled):
        fitting = [gpu for gpu in table if any(fits(wanted, words(own)) for own in (gpu.name, *gpu.device_names))]
        distinct = list({gpu.name: gpu for gpu in reversed(fitting)}.values())
        if len(distinct) == 1:
            return distinct[0]
        if distinct:
            listed = ", ".join(gpu.name for gpu in reversed(distinct))
            raise HardwareError(f"GPU {name[:60]!r} fits several: {listed}; name one")
    raise HardwareError(f"GPU {name[:60]!r} is not known; {_near(wanted, table)}")


def words(name: str) -> tuple[str, ...]:
    """Return a name's words in lower case, brand words left out."""
    return tuple(word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in BRAND_WORDS)


def _equal(wanted: tuple[str, ...], own: tuple[str, ...]) -> bool:
    return wanted == own


def _contains(wanted: tuple[str, ...], own: tuple[str, ...]) -> bool:
    return set(wanted) <= set(own)


def _spelled(wanted: tuple[str, ...], own: tuple[str, ...]) -> bool:
    return "".join(wanted) in "".join(own)


def _near(wanted: tuple[str, ...], table: Sequence[Gpu]) -> str:
    spelled = {"".join(words(own)): gpu.name for gpu in table for own in (gpu.name, *gpu.device_names)}
    matches = difflib.get_close_matches("".join(wanted), list(spelled), n=4, cutoff=0.5)
    near = ", ".join(dict.fromkeys(spelled[match] for match in matches))
    hint = f"similar names are {near}" if near else "no name is similar"
    return f"{hint}; `traceanalyzer gpus` lists all, and a TOML file can describe others"


def read_gpus(path: str | Path) -> tuple[Gpu, ...]:
    """Read GPUs that a user describes.

    Each ``[[gpu]]`` needs ``name``; then either ``like``, the name of a known GPU whose figures it takes over
    where it gives none, or ``bandwidth_gbps`` and ``peak_tflops`` (a table by data type). Other keys are those of
    ``Gpu``.

    Raises:
        HardwareError: the file cannot be read, or a value is missing or absurd; the message names it.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise HardwareError(f"{path}: larger than a list of GPUs can be")
        document = _toml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise HardwareError(f"{path}: {error.strerror or error}") from error
    except HardwareError:
        raise
    except ValueError as error:
        raise HardwareError(f"{path}: not valid TOML ({error})") from error
    entries = document.get("gpu")
    entries = [entries] if isinstance(entries, Mapping) else entries
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, Mapping) for entry in entries):
        raise HardwareError(f"{path}: needs one [[gpu]] or more")
    try:
        return tuple(_described(entry, file.name) for entry in entries)
    except HardwareError as error:
        raise HardwareError(f"{path}: {error}") from error


def _toml(text: str) -> dict[str, Any]:
    """Parse TOML: the standard library knows it since Python 3.11, before that the package tomli."""
    try:
        parser = import_module("tomllib")
    except ModuleNotFoundError:
        try:
            parser = import_module("tomli")
        except ModuleNotFoundError as error:
            raise HardwareError("reading TOML before Python 3.11 needs the package tomli") from error
    document: dict[str, Any] = parser.loads(text)
    return document


TEXTS = frozenset({"name", "vendor", "architecture", "compute_capability", "target", "link", "pcie", "source", "note"})
COUNTS = frozenset({"warp_size", "compute_units"})
KEYS = frozenset(Gpu.__struct_fields__) - {"confidence"}


def _described(entry: Mapping[str, Any], file_name: str) -> Gpu:
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise HardwareError("a [[gpu]] lacks its name")
    unknown = sorted(set(entry) - KEYS - {"like"})
    if unknown:
        raise HardwareError(f"{name}: {unknown[0]} is not a key of a GPU; keys are {', '.join(sorted(KEYS))} and like")
    given = {key: _value(name, key, value) for key, value in entry.items() if key != "like"}
    like = entry.get("like")
    base = _blank(name) if like is None else find_gpu(str(like))
    for key in ("bandwidth_gbps", "peak_tflops"):
        if like is None and key not in given:
            raise HardwareError(f"{name}: lacks {key} (or like, the name of a known GPU)")
    origin = f"{file_name}" + (f", else as {base.name}: {base.source}" if like is not None else "")
    peaks = {**base.peak_tflops, **given.pop("peak_tflops", {})}
    if not {"bandwidth_gbps", "measured_bandwidth_gbps"}.isdisjoint(given) or like is None:
        given.setdefault("measured_bandwidth_gbps", None)
    names = {"device_names": (), "source": origin, "confidence": "user", **given}
    return structs.replace(base, **{**names, "peak_tflops": peaks})


def _blank(name: str) -> Gpu:
    empty: dict[str, Any] = dict.fromkeys(Gpu.__struct_fields__)
    return Gpu(**{**empty, "name": name, "bandwidth_gbps": 0.0, "peak_tflops": {}, "device_names": ()})


def _value(name: str, key: str, value: Any) -> Any:
    if key in TEXTS:
        if not isinstance(value, str):
            raise HardwareError(f"{name}: {key} must be text")
        return value
    if key == "device_names":
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise HardwareError(f"{name}: device_names must be a list of texts")
        return tuple(value)
    if key == "peak_tflops":
        return _peaks(name, value)
    number = _positive(name, key, value)
    return int(number) if key in COUNTS else number


def _peaks(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping) or not value:
        raise HardwareError(f"{name}: peak_tflops must be a table, such as {{ bf16 = 989.4 }}")
    unknown = sorted(set(value) - set(DTYPES))
    if unknown:
        raise HardwareError(f"{name}: {unknown[0]} is not a data type of peak_tflops; types are {', '.join(DTYPES)}")
    return {dtype: _positive(name, f"peak_tflops.{dtype}", peak) for dtype, peak in value.items()}


def _positive(name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise HardwareError(f"{name}: {key} must be a number above 0, not {value!r}")
    return float(value)
