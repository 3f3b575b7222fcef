"""The commands to run after a plan, each ready for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from traceanalyzer.commands.tune.compile.device import device_of
from traceanalyzer.commands.tune.plan.compute import Plan, Target

AFTER = "AFTER.json.gz"
"""Stands for the trace that is recorded once the server runs the new tile."""

NOT_OF_ROOFLINE = ("--triton-cache",)


def next_commands(found: Plan, paths: Sequence[str], stated: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return what to run next: screen, run, rules, proof; or what tells more where there is no target.

    Args:
        found: the plan.
        paths: the traces as the user gave them.
        stated: options as the user gave them, such as ``--tp``: what is run next is of the same rank and layout.
    """
    options = dict(stated or {})
    if found.target is not None:
        return _tuning(found, found.target, paths, options)
    roofline = shlex.join([*paths, *_words(options, [name for name in options if name not in NOT_OF_ROOFLINE])])
    if not any(refusal.candidate.kernel.retunable for refusal in found.refused):
        return (f"traceanalyzer roofline {roofline}",)
    trace = shlex.join([*paths, *_words(options, options)])
    if found.roofline.model is None:
        models = found.fitting_models or ("NAME",)
        gpu = "" if found.roofline.ceilings else " --gpu NAME"
        return tuple(f"traceanalyzer tune plan {trace} --model {shlex.quote(model)}{gpu}" for model in models)
    if found.roofline.ceilings is None:
        return (f"traceanalyzer tune plan {trace} --gpu NAME",)
    return (f"traceanalyzer roofline {roofline}",)


def _words(options: Mapping[str, str], names: Iterable[str]) -> list[str]:
    return [word for name in names if name in options for word in (name, options[name])]


def _tuning(found: Plan, target: Target, paths: Sequence[str], stated: Mapping[str, str]) -> tuple[str, ...]:
    own = _words(stated, ("--rank", "--phase"))
    verify = shlex.join(["traceanalyzer", "tune", "verify", "--before", paths[0], "--after", AFTER, *own])
    bench = target.bench
    if bench is None:
        return (verify,)
    product = target.candidate.product
    problem = ["--kernel", bench.kernel, "--shape", bench.shape]
    problem += ["--dtype", bench.dtype] if bench.dtype else []
    axes = [word for axis in bench.axes for word in ("--axis", axis)]
    gpu = _gpu_words(found, stated)
    commands = []
    if bench.screens and gpu and product is not None:
        rows = str(bench.rows(product.common_m))
        commands.append(["traceanalyzer", "tune", "screen", *problem, *gpu, "--m", rows, *axes])
    rows = ",".join(str(m) for m in dict.fromkeys(bench.rows(m) for m in target.m))
    routing = ["--routing", "uniform", "--routing", "skewed"] if bench.experts is not None else []
    sweep = f"{bench.kernel}.jsonl"
    measured = ["--backend", bench.backend, "--m", rows, *axes, *routing]
    # tune run sees its GPU; one that only the user's file describes has to be told.
    measured += gpu if "--gpu-file" in stated else []
    commands.append(["traceanalyzer", "tune", "run", *problem, *measured, "--output", sweep])
    rules = ["traceanalyzer", "tune", "policy", sweep]
    commands.append([*rules, "--where", "routing=uniform"] if routing else rules)
    return (*map(shlex.join, commands), verify)


def _gpu_words(found: Plan, stated: Mapping[str, str]) -> list[str]:
    """Options that name the GPU for the screen; none where it does not know it."""
    gpu = found.roofline.ceilings.gpu if found.roofline.ceilings else None
    if gpu is None:
        return []
    try:
        return ["--gpu", device_of(None, gpu).name, *_words(stated, ("--gpu-file",))]
    except ValueError:
        return []
