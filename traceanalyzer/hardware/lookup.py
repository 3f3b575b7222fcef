"""A GPU by the name that a person gives it, and GPUs that a user describes in a TOML file."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from traceanalyzer.hardware.gpus import DTYPES, Gpu, HardwareError, known_gpus

BRAND_WORDS = frozenset({"nvidia", "amd", "instinct", "geforce", "tesla", "generation", "edition", "graphics"})
MAX_FILE_BYTES = 1024 * 1024
Words = tuple[str, ...]
FITS: tuple[Callable[[Words, Words], bool], ...] = (
    lambda wanted, own: wanted == own,
    lambda wanted, own: set(wanted) <= set(own),
    lambda wanted, own: "".join(wanted) in "".join(own),
)
"""Whether a GPU has a name, strictest first: the same words, all of its words, its letters."""


def find_gpu(name: str, gpus: Sequence[Gpu] | None = None) -> Gpu:
    """Return the GPU of this name.

    Case, punctuation and brand words do not matter; part of a name is enough if it fits only one GPU.

    Args:
        name: of the product, or as the driver reports it.
        gpus: GPUs to choose from, of equal names the first; the built-in table by default.

    Raises:
        HardwareError: there is none, or several; the message names likely ones.
    """
    table = known_gpus() if gpus is None else gpus
    wanted = words(name)
    if not wanted:
        raise HardwareError("a GPU needs a name; `traceanalyzer gpus` lists those known")
    for fits in FITS:
        fitting = [gpu for gpu in table if any(fits(wanted, words(own)) for own in (gpu.name, *gpu.device_names))]
        distinct = list({gpu.name: gpu for gpu in reversed(fitting)}.values())
        if len(distinct) == 1:
            return distinct[0]
        if distinct:
            listed = ", ".join(gpu.name for gpu in reversed(distinct))
            raise HardwareError(f"GPU {name[:60]!r} fits several: {listed}; name one")
    raise HardwareError(f"GPU {name[:60]!r} is not known; {_near(wanted, table)}")


def words(name: str) -> Words:
    """Return a name's words in lower case, without brand words."""
    return tuple(word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in BRAND_WORDS)


def _near(wanted: Words, table: Sequence[Gpu]) -> str:
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
    """Parse TOML with the standard library, before Python 3.11 with the package tomli."""
    try:
        parser = import_module("tomllib")
    except ModuleNotFoundError:
        try:
            parser = import_module("tomli")
        except ModuleNotFoundError as error:
            raise HardwareError("reading TOML before Python 3.11 needs the package tomli") from error
    document: dict[str, Any] = parser.loads(text)
    return document


def _described(entry: Mapping[str, Any], file_name: str) -> Gpu:
    name, like = entry.get("name"), entry.get("like")
    if not isinstance(name, str) or not name.strip():
        raise HardwareError("a [[gpu]] lacks its name")
    given = {key: value for key, value in entry.items() if key != "like"}
    keys = frozenset(Gpu.__struct_fields__) - {"confidence"}
    unknown = sorted(given.keys() - keys)
    if unknown:
        raise HardwareError(f"{name}: {unknown[0]} is not a key of a GPU; keys are {', '.join(sorted(keys))} and like")
    for key in ("bandwidth_gbps", "peak_tflops"):
        if like is None and key not in given:
            raise HardwareError(f"{name}: lacks {key} (or like, the name of a known GPU)")
    peaks = given.pop("peak_tflops", {})
    _refuse_absurd(name, given, peaks)
    made: dict[str, Any] = dict.fromkeys(Gpu.__struct_fields__)
    made |= {"peak_tflops": {}, "source": file_name}
    if like is not None:
        base = find_gpu(str(like))
        made = structs.asdict(base) | {"source": f"{file_name}, else as {base.name}: {base.source}"}
    if not {"bandwidth_gbps", "measured_bandwidth_gbps"}.isdisjoint(given):
        made["measured_bandwidth_gbps"] = None
    made |= {"device_names": (), "confidence": "user", **given, "peak_tflops": {**made["peak_tflops"], **peaks}}
    try:
        return msgspec.convert(made, Gpu)
    except msgspec.ValidationError as error:
        raise HardwareError(f"{name}: {error}") from error


def _refuse_absurd(name: str, given: Mapping[str, Any], peaks: Any) -> None:
    """Raise HardwareError for peaks that are no table by data type, and for numbers that are not above 0."""
    if not isinstance(peaks, Mapping):
        raise HardwareError(f"{name}: peak_tflops must be a table, such as {{ bf16 = 989.4 }}")
    unknown = sorted(set(peaks) - set(DTYPES))
    if unknown:
        raise HardwareError(f"{name}: {unknown[0]} is not a data type of peak_tflops; types are {', '.join(DTYPES)}")
    for key, value in {**given, **{f"peak_tflops.{dtype}": peak for dtype, peak in peaks.items()}}.items():
        if isinstance(value, int | float) and not 0 < value < math.inf:
            raise HardwareError(f"{name}: {key} must be a number above 0, not {value!r}")
