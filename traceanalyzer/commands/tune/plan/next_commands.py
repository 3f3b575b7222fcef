"""The commands to run after a plan."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from traceanalyzer.commands.tune.compile.device import device_of
from traceanalyzer.commands.tune.plan.compute import Plan, PlannedTarget

AFTER = "AFTER.json.gz"
"""Stands for the trace that is recorded once the server runs the new tile."""

NOT_OF_ROOFLINE = ("--triton-cache",)


def next_commands(plan: Plan, paths: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return what to run next, quoted for a shell: screen, run, rules, proof; or what tells more without a target.

    Paths and options are those that the user gave, so that what is run next is of the same rank and layout.
    """
    if plan.target is not None:
        return _tuning(plan, plan.target, paths, options)
    of_roofline = _words(options, [name for name in options if name not in NOT_OF_ROOFLINE])
    roofline = _line("roofline", *paths, *of_roofline)
    if not any(one.kernel.retunable for one in plan.refused):
        return [roofline]
    again = ("tune", "plan", *paths, *_words(options, options))
    gpu = () if plan.roofline.ceilings else ("--gpu", "NAME")
    if plan.roofline.model is None:
        return [_line(*again, "--model", model, *gpu) for model in plan.fitting_models or ("NAME",)]
    return [_line(*again, *gpu) if gpu else roofline]


def _line(*words: str) -> str:
    return shlex.join(["traceanalyzer", *words])


def _words(options: Mapping[str, str], names: Iterable[str]) -> list[str]:
    return [word for name in names if name in options for word in (name, options[name])]


def _tuning(plan: Plan, target: PlannedTarget, paths: Sequence[str], stated: Mapping[str, str]) -> list[str]:
    own = _words(stated, ("--rank", "--phase"))
    verify = _line("tune", "verify", "--before", paths[0], "--after", AFTER, *own)
    bench = target.bench
    if bench is None:
        return [verify]
    product = target.candidate.product
    problem = ["--kernel", bench.kernel, "--shape", bench.shape]
    problem += ["--dtype", bench.dtype] if bench.dtype else []
    axes = [word for axis in bench.axes for word in ("--axis", axis)]
    gpu = _gpu_words(plan, stated)
    commands = []
    if bench.screens and gpu and product is not None:
        rows = str(bench.rows(product.common_m))
        commands.append(_line("tune", "screen", *problem, *gpu, "--m", rows, *axes))
    rows = ",".join(str(m) for m in dict.fromkeys(bench.rows(m) for m in target.m))
    routing = ["--routing", "uniform", "--routing", "skewed"] if bench.experts is not None else []
    sweep = f"{bench.kernel}.jsonl"
    measured = ["--backend", bench.backend, "--m", rows, *axes, *routing]
    # tune run sees its GPU; one that only the user's file describes has to be named.
    measured += gpu if "--gpu-file" in stated else []
    commands.append(_line("tune", "run", *problem, *measured, "--output", sweep))
    commands.append(_line("tune", "policy", sweep, *(["--where", "routing=uniform"] if routing else [])))
    return [*commands, verify]


def _gpu_words(plan: Plan, stated: Mapping[str, str]) -> list[str]:
    """Options that name the GPU for the screen; none where it does not know it."""
    gpu = plan.roofline.ceilings.gpu if plan.roofline.ceilings else None
    if gpu is None:
        return []
    try:
        return ["--gpu", device_of(None, gpu).name, *_words(stated, ("--gpu-file",))]
    except ValueError:
        return []
