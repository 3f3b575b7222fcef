"""What the commands that hold a trace against a roofline share: model, GPU, workload and layout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceanalyzer.cli.common import FiniteRange, open_inputs
from traceanalyzer.words import PHASES

if TYPE_CHECKING:
    from traceanalyzer.hardware import Gpu
    from traceanalyzer.model import Architecture
    from traceanalyzer.roofline import Request
    from traceanalyzer.trace import Trace

gpu_file_option = click.option(
    "--gpu-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file that describes more GPUs; they come before the built-in ones.",
)

OPTIONS = (
    click.option("--model", help="A built-in name such as gpt-oss-20b, or the path of a config.json."),
    click.option("--gpu", help="The GPU, if the trace does not name it; `gpus` lists those known."),
    gpu_file_option,
    click.option(
        "--capture",
        type=click.Path(exists=True),
        help="The trace of the graph capture, or a folder of them: gives shapes.",
    ),
    click.option(
        "--phase", type=click.Choice(PHASES), help="Only complete steps of this phase; decode if there are any."
    ),
    click.option("--requests", type=click.IntRange(min=1), help="Sequences per step, instead of those of its marker."),
    click.option("--tokens", type=click.IntRange(min=1), help="New tokens per step."),
    click.option("--kv-tokens", type=click.IntRange(min=1), help="Tokens of all contexts, new ones included."),
    click.option("--tp", type=click.IntRange(min=1), help="Tensor-parallel degree."),
    click.option("--pp", type=click.IntRange(min=1), help="Pipeline-parallel degree."),
    click.option("--ep", type=click.IntRange(min=1), help="Expert-parallel degree."),
    click.option(
        "--experts-hit", type=FiniteRange(min=0, min_open=True), help="Distinct experts hit per layer, if known."
    ),
    click.option("--routing-skew", type=FiniteRange(min=0), default=0.0, help="Zipf exponent of routing; 0: uniform."),
)


@dataclass(frozen=True)
class Given:
    """What the user stated; None where it is left to the trace."""

    model: str | None
    gpu: str | None
    gpu_file: Path | None
    capture: str | None
    phase: str | None
    requests: int | None
    tokens: int | None
    kv_tokens: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    experts_hit: float | None
    routing_skew: float

    def request(self, *, step: int | None = None, no_cache: bool = False) -> Request:
        """Return what to ask of the roofline analysis.

        Raises:
            click.UsageError: model or GPU are not known.
            TraceError: the capture trace cannot be used.
        """
        from traceanalyzer.model import ExpertRouting
        from traceanalyzer.roofline import Request
        from traceanalyzer.roofline.workloads import Stated

        return Request(
            model=given_model(self.model),
            gpu=given_gpu(self.gpu, self.gpu_file),
            captures=open_captures(self.capture, no_cache=no_cache),
            phase=self.phase,
            step=step,
            stated=Stated(self.requests, self.tokens, self.kv_tokens),
            tp=self.tp,
            pp=self.pp,
            ep=self.ep,
            routing=ExpertRouting(skew=self.routing_skew, distinct=self.experts_hit),
        )


def open_captures(path: str | None, *, no_cache: bool = False) -> tuple[Trace, ...]:
    """Open the recordings of graph captures at a path, those of the lowest rank where they name ranks.

    Raises:
        TraceError: none can be used.
    """
    if path is None:
        return ()
    traces = open_inputs([path], no_cache=no_cache).traces
    ranks = [trace.rank for trace in traces if trace.rank is not None]
    return tuple(trace for trace in traces if not ranks or trace.rank == min(ranks))


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options above; it receives them as one ``given``."""

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> Any:
        given = Given(**{field.name: arguments.pop(field.name) for field in fields(Given)})
        return command(given=given, **arguments)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def given_model(model: str | None) -> Architecture | None:
    """Return the model that the user names, if any; errors are those of ``named_model``."""
    return None if model is None else named_model(model)


def named_model(model: str) -> Architecture:
    """Return the model of a name, or of a config.json.

    Raises:
        click.UsageError: it is neither built in nor a file.
        click.ClickException: the file does not describe a model.
    """
    from traceanalyzer.model import ModelError, load

    try:
        return load(model)
    except ModelError as error:
        raised = click.ClickException if Path(model).exists() else click.UsageError
        raise raised(str(error)) from error


def given_gpu(gpu: str | None, gpu_file: Path | None) -> Gpu | None:
    """Return the GPU that the user names, or the only one of a file without a name.

    Raises:
        click.UsageError: it is not known, or the file describes several.
        click.ClickException: the file cannot be used.
    """
    if gpu is not None:
        return named_gpu(gpu, gpu_file)
    own = gpus_of(gpu_file)
    if gpu_file is None:
        return None
    if len(own) != 1:
        raise click.UsageError(f"{gpu_file} describes {len(own)} GPUs: name one with --gpu")
    return own[0]


def named_gpu(gpu: str, gpu_file: Path | None) -> Gpu:
    """Return the GPU of a name, looked up in the file first.

    Raises:
        click.UsageError: it is not known.
        click.ClickException: the file cannot be used.
    """
    from traceanalyzer.hardware import HardwareError, find_gpu, known_gpus

    own = gpus_of(gpu_file)
    try:
        return find_gpu(gpu, (*own, *known_gpus()))
    except HardwareError as error:
        raise click.UsageError(str(error)) from error


def gpus_of(file: Path | None) -> tuple[Gpu, ...]:
    """Return the GPUs that a file describes.

    Raises:
        click.ClickException: the file cannot be used.
    """
    from traceanalyzer.hardware import HardwareError, read_gpus

    try:
        return tuple(read_gpus(file)) if file else ()
    except HardwareError as error:
        raise click.ClickException(str(error)) from error
