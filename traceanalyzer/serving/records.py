"""A result from one mapping of a file: a JSON object or a row of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from traceanalyzer.serving.metrics import canonical, column, direction, is_fact
from traceanalyzer.serving.serving_result import UNLIMITED, Kind, PerRequest, ServingResult, Setting, as_number

KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("serve", ("request_throughput", "output_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms")),
    ("latency", ("avg_latency",)),
    ("throughput", ("requests_per_second", "tokens_per_second")),
)
# Names, times and totals of a run, which are no settings.
NO_SETTINGS = {"date", "label", "run_number", "num_prompts", "endpoint_type", "success_rate", "percentiles", ""}
ROW_COUNTS = {"completed", "failed", "num_prompts", "total_input_tokens", "total_output_tokens"}
NO_LIMIT = {None, "", "none", "null", "not set", "unlimited", "inf"}


def from_object(
    saved: Mapping[str, Any], source: str, place: str | None = None, *, repeat: bool = False
) -> ServingResult | None:
    """Read a JSON object that a benchmark saved; None if it has none of the figures of a result."""
    keyed = {canonical(str(key)): value for key, value in saved.items()}
    kind = next((kind for kind, keys in KINDS if any(key in keyed for key in keys)), None)
    if kind is None:
        return from_row({str(key): value for key, value in saved.items()}, source, place)
    failed = _failed(keyed)
    details = _per_request(keyed, failed)
    metrics = _metrics(keyed)
    extra = _derived(details, failed, kind, metrics)
    label = keyed.get("label")
    return ServingResult(
        source=source,
        place=place,
        kind=kind,
        metrics={**extra, **metrics},
        settings=_settings(keyed),
        prompts=_count(keyed.get("num_prompts")),
        completed=_count(keyed.get("completed", keyed.get("num_requests"))),
        failed=failed,
        input_tokens=as_number(keyed.get("total_input_tokens")),
        output_tokens=as_number(keyed.get("total_output_tokens")),
        derived=frozenset(extra),
        label=str(label) if label else None,
        repeat=repeat,
        per_request=details,
    )


def from_row(row: Mapping[str, Any], source: str, place: str | None = None) -> ServingResult | None:
    """Read a row of a table by its headings; other columns are settings. None if no column is a metric."""
    metrics: dict[str, float] = {}
    resolution: dict[str, float] = {}
    settings: dict[str, Setting] = {}
    counts: dict[str, int | None] = {}
    success: float | None = None
    for heading, cell in row.items():
        target = column(heading)
        text = str(cell).strip() if cell is not None else ""
        value = as_number(text.rstrip("%").strip())
        if target is None:
            if canonical(heading) in ROW_COUNTS:
                counts[canonical(heading)] = _count(value)
            elif text and _is_setting(heading):
                settings[heading.strip()] = _setting(cell if not isinstance(cell, str) else text)
        elif target.key == "max_concurrency":
            settings["max_concurrency"] = _concurrency(text)
        elif target.key == "num_prompts":
            counts["num_prompts"] = _count(value)
        elif target.key == "success_rate":
            success = _share(text, value)
        elif value is not None:
            metrics[target.key] = value * target.factor
            if isinstance(cell, str):
                resolution[target.key] = half_unit(text) * target.factor
    if not metrics:
        return None
    prompts, failed, completed = _requests(counts, success)
    return ServingResult(
        source=source,
        place=place,
        kind="serve",
        metrics=metrics,
        settings=settings,
        prompts=prompts,
        completed=completed,
        failed=failed,
        success_share=success if failed is None else None,
        input_tokens=counts.get("total_input_tokens"),
        output_tokens=counts.get("total_output_tokens"),
        resolution=resolution,
    )


def _is_setting(heading: str) -> bool:
    """Whether a column that is not a metric is a setting of the run."""
    key = canonical(heading)
    return bool(heading.strip()) and not is_fact(key) and key not in NO_SETTINGS


def half_unit(text: str) -> float:
    """Return half a unit of the last digit: 0.005 for ``0.06``, 0 for text with all digits of a float."""
    digits = text.strip().partition(".")[2]
    decimals = len(digits) if digits.isdigit() else 0
    return 0.0 if decimals > 6 or "e" in text.lower() else 0.5 * 10.0**-decimals


def _metrics(keyed: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics; the percentiles of ``bench latency`` get keys of their own."""
    percentiles = keyed.get("percentiles")
    if isinstance(percentiles, Mapping):
        keyed = {**keyed, **{f"p{p}_latency": value for p, value in percentiles.items()}}
    numbers = {key: as_number(value) for key, value in keyed.items() if direction(key) is not None}
    # Only speech models have a real-time factor; vLLM writes 0 for all others.
    return {key: value for key, value in numbers.items() if value is not None and (key, value) != ("rtfx", 0)}


def _settings(keyed: Mapping[str, Any]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    if keyed.get("backend") is None and keyed.get("endpoint_type") is not None:
        settings["backend"] = str(keyed["endpoint_type"])
    for key, value in keyed.items():
        if key == "max_concurrency":
            settings[key] = _concurrency(value)
        elif value is None or key in NO_SETTINGS or is_fact(key) or direction(key) is not None:
            continue
        elif isinstance(value, str | int | float | bool) and not _is_list_as_text(value):
            settings[key] = _setting(value)
    return settings


def _is_list_as_text(value: Any) -> bool:
    return isinstance(value, str) and (not value.strip() or value.lstrip()[0] in "[{")


def _setting(value: Any) -> Setting:
    """Return one value for all spellings of a setting: 32 and "32", Infinity and "inf"."""
    if isinstance(value, bool):
        return value
    number = as_number(value)
    if number is not None:
        return number
    if isinstance(value, float):
        return "inf" if math.isinf(value) else "nan"
    text = str(value)
    return "inf" if text.lower() in {"inf", "infinity"} else text


def _concurrency(value: Any) -> Setting:
    known = value.strip().lower() if isinstance(value, str) else value
    return UNLIMITED if known in NO_LIMIT else _setting(value)


def _failed(keyed: Mapping[str, Any]) -> int | None:
    """Return failed requests: as stated, else by error texts, else prompts that were not completed."""
    stated = _count(keyed.get("failed"))
    if stated is not None:
        return stated
    errors = keyed.get("errors")
    if isinstance(errors, list) and errors and all(isinstance(error, str) for error in errors):
        return sum(bool(error) for error in errors)
    prompts, completed = _count(keyed.get("num_prompts")), _count(keyed.get("completed"))
    return None if prompts is None or completed is None else max(0, prompts - completed)


def _per_request(keyed: Mapping[str, Any], failed: int | None) -> PerRequest:
    """Return numbers per request; with failures, entries cannot be matched to requests."""
    if failed:
        return PerRequest()
    lists = {}
    for key in ("ttfts", "output_lens", "latencies"):
        values = keyed.get(key)
        numbers = [as_number(value) for value in values] if isinstance(values, list) else []
        lists[key] = tuple(n for n in numbers if n is not None) if None not in numbers else ()
    return PerRequest(**lists)


def _derived(details: PerRequest, failed: int | None, kind: Kind, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return end-to-end latency over the requests' own, if the file has no summary of them."""
    if kind != "serve" or failed or not details.latencies or "mean_e2el_ms" in metrics:
        return {}
    ordered = sorted(details.latencies)
    return {
        "mean_e2el_ms": fmean(ordered) * 1000,
        "median_e2el_ms": median(ordered) * 1000,
        "p99_e2el_ms": _percentile(ordered, 0.99) * 1000,
    }


def _percentile(ordered: list[float], share: float) -> float:
    """Interpolate linearly between the two nearest ranks, as NumPy does."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _count(value: Any) -> int | None:
    number = as_number(value)
    return None if number is None or number < 0 else round(number)


def _share(text: str, value: float | None) -> float | None:
    """Read a success rate, ``99.5%`` or ``0.995``, as a share."""
    if value is None:
        return None
    return value / 100 if text.endswith("%") or value > 1 else value


def _requests(counts: Mapping[str, int | None], success: float | None) -> tuple[int | None, int | None, int | None]:
    """Return prompts, failed and completed requests of a row from its counts and success rate."""
    prompts, failed, completed = counts.get("num_prompts"), counts.get("failed"), counts.get("completed")
    if failed is None and prompts is not None and (completed is not None or success is not None):
        failed = prompts - (completed if completed is not None else round(prompts * (success or 0.0)))
        failed = max(0, failed)
        return prompts, failed, completed if completed is not None else prompts - failed
    if failed is None and success == 1:
        failed = 0
    return prompts, failed, completed
