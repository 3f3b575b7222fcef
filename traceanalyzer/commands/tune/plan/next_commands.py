"""The commands to run after a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from traceanalyzer.commands.tune.compile.device import device_of
from traceanalyzer.commands.tune.plan.compute import Plan, PlannedTarget
from traceanalyzer.commands.tune.shell_commands import Command

AFTER = "AFTER.json.gz"
"""Stands for the trace that is recorded once the server runs the new tile."""

NOT_OF_ROOFLINE = ("--triton-cache",)


def next_commands(plan: Plan, paths: Sequence[str], stated: Mapping[str, str] | None = None) -> tuple[Command, ...]:
    """Return what to run next: screen, run, rules, proof; or what tells more where there is no target.

    Args:
        plan: what was planned.
        paths: the traces as the user gave them.
        stated: options as the user gave them, such as ``--tp``: what is run next is of the same rank and layout.
    """
    options = dict(stated or {})
    if plan.target is not None:
        return _tuning(plan, plan.target, paths, options)
    of_roofline = _words(options, [name for name in options if name not in NOT_OF_ROOFLINE])
    roofline = Command(("roofline", *paths, *of_roofline))
    if not any(refusal.candidate.kernel.retunable for refusal in plan.refused):
        return (roofline,)
    again = ("tune", "plan", *paths, *_words(options, options))
    gpu = () if plan.roofline.ceilings else ("--gpu", "NAME")
    if plan.roofline.model is None:
        return tuple(Command((*again, "--model", model, *gpu)) for model in plan.fitting_models or ("NAME",))
    return (Command((*again, *gpu)),) if gpu else (roofline,)


def _words(options: Mapping[str, str], names: Iterable[str]) -> list[str]:
    return [word for name in names if name in options for word in (name, options[name])]


def _tuning(plan: Plan, target: PlannedTarget, paths: Sequence[str], stated: Mapping[str, str]) -> tuple[Command, ...]:
    own = _words(stated, ("--rank", "--phase"))
    verify = Command(("tune", "verify", "--before", paths[0], "--after", AFTER, *own))
    bench = target.bench
    if bench is None:
        return (verify,)
    product = target.candidate.product
    problem = ["--kernel", bench.kernel, "--shape", bench.shape]
    problem += ["--dtype", bench.dtype] if bench.dtype else []
    axes = [word for axis in bench.axes for word in ("--axis", axis)]
    gpu = _gpu_words(plan, stated)
    commands = []
    if bench.screens and gpu and product is not None:
        rows = str(bench.rows(product.common_m))
        commands.append(Command(("tune", "screen", *problem, *gpu, "--m", rows, *axes)))
    rows = ",".join(str(m) for m in dict.fromkeys(bench.rows(m) for m in target.m))
    routing = ["--routing", "uniform", "--routing", "skewed"] if bench.experts is not None else []
    sweep = f"{bench.kernel}.jsonl"
    measured = ["--backend", bench.backend, "--m", rows, *axes, *routing]
    # tune run sees its GPU; one that only the user's file describes has to be named.
    measured += gpu if "--gpu-file" in stated else []
    commands.append(Command(("tune", "run", *problem, *measured, "--output", sweep)))
    commands.append(Command(("tune", "policy", sweep, *(["--where", "routing=uniform"] if routing else []))))
    return (*commands, verify)


def _gpu_words(plan: Plan, stated: Mapping[str, str]) -> list[str]:
    """Options that name the GPU for the screen; none where it does not know it."""
    gpu = plan.roofline.ceilings.gpu if plan.roofline.ceilings else None
    if gpu is None:
        return []
    try:
        return ["--gpu", device_of(None, gpu).name, *_words(stated, ("--gpu-file",))]
    except ValueError:
        return []
