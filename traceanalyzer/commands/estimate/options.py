"""The options of ``estimate`` that are written in a notation of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceanalyzer.model import Format

MOST_BATCHES = 64


def refuse_alone(
    options: dict[str, Any], *, compare_gpu: str | None, shares: str | None, measured: float | None
) -> None:
    """Stop where an option is given without the one that it goes with."""
    if (shares or measured) and not compare_gpu:
        raise click.UsageError("--shares and --measured-tokens-per-s go with --compare-gpu")
    if (options["to_share"] or options["change"]) and not options["trace"]:
        raise click.UsageError("--to-share and --change go with --trace")
    if options["select"] and not options["calibrate_serving"]:
        raise click.UsageError("--select goes with --calibrate-serving")
    if options["calibrate"] and options["calibrate_serving"]:
        raise click.UsageError("--calibrate and --calibrate-serving exclude each other")
    if options["ideal"] and (options["calibrate"] or options["calibrate_serving"]):
        raise click.UsageError("--roofline leaves nothing to calibrate")


def batches_of(text: str | None) -> tuple[int, ...]:
    """Read ``--batch``: numbers of requests with commas; none where it is not given."""
    from traceanalyzer.commands.estimate.deployment import MOST_SEQUENCES
    from traceanalyzer.commands.estimate.errors import EstimateError

    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 1 <= int(part) <= MOST_SEQUENCES for part in parts) or len(parts) > MOST_BATCHES:
        raise EstimateError(f"--batch is a number of requests from 1 to {MOST_SEQUENCES:,}, or several, not {text!r}")
    return tuple(dict.fromkeys(int(part) for part in parts))


def links_of(text: str | None, *, several: bool) -> tuple[float, ...]:
    """Read ``--link-gbps``: one bandwidth, or LOW:HIGH where several may be compared."""
    from traceanalyzer.commands.estimate.errors import EstimateError
    from traceanalyzer.commands.estimate.parallel import spread

    if text is None:
        return ()
    low, _, high = text.partition(":")
    try:
        found = (float(low), float(high or low))
    except ValueError:
        raise EstimateError(f"--link-gbps is a bandwidth in GB/s, or LOW:HIGH, not {text!r}") from None
    rates = spread(*found)
    if len(rates) > 1 and not several:
        raise EstimateError("--link-gbps LOW:HIGH goes with --compare-parallel")
    return rates


def shares_of(text: str | None) -> dict[str, float]:
    """Read ``--shares``, such as ``decode=0.7,prefill=0.85``."""
    from traceanalyzer.commands.estimate.errors import EstimateError

    found: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.partition("=")
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if name.strip() not in ("decode", "prefill") or not 0 <= share <= 1:
            raise EstimateError(f"shares are written as decode=0.7,prefill=0.85, each 0 to 1, not {part.strip()!r}")
        found[name.strip()] = share
    return found


def format_of(name: str | None, option: str) -> Format | None:
    """Read ``--dtype`` or ``--kv-dtype``."""
    from traceanalyzer.model import FORMATS, format_named

    if name is None:
        return None
    found = format_named(name)
    if found is None:
        raise click.UsageError(f"{option} {name} is not known; there are {', '.join(FORMATS)}")
    return found
