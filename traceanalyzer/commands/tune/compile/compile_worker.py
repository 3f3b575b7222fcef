"""Worker process: compiles the candidates it is asked for, with a cache on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from traceanalyzer.workers import serve


def main(cache: str) -> None:
    """Answer compile questions; ``cache`` is a directory, or empty for none."""
    # Triton fuses multiply-adds by default up to 3.9 and warns that it will not; servers run with fusion.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    serve(lambda question, _: answer(question, Path(cache) if cache else None))


def answer(question: dict[str, Any], cache: Path | None) -> dict[str, Any]:
    """Compile one candidate, or find it in the cache.

    Args:
        question: ``kernel``, ``problem``, ``config`` and ``target``.
        cache: where facts are kept, one file per candidate.

    Raises:
        Exception: whatever the compiler raises.
    """
    from traceanalyzer.commands.tune.compile.compilation import compile_launch, launch_key
    from traceanalyzer.kernels import find_kernel
    from traceanalyzer.kernels.problem import Config, Problem
    from traceanalyzer.kernels.target import find_target

    spec = find_kernel(question["kernel"])
    target = find_target(question["target"])
    case = spec.compile_case(Problem.from_dict(question["problem"]), target)
    launch = spec.prepare(case, Config.from_dict(question["config"])).launches[0]
    path = cache / f"{launch_key(launch, target)}.json" if cache else None
    if path is not None and (kept := _kept(path)) is not None:
        return {"facts": kept, "cached": True}
    facts = compile_launch(launch, target).to_dict()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(facts))
        temporary.replace(path)
    return {"facts": facts, "cached": False}


def _kept(path: Path) -> dict[str, Any] | None:
    """Return the facts of a cache file; ``None`` where it is missing or damaged."""
    from traceanalyzer.commands.tune.compile.compilation import CompileFacts

    try:
        return CompileFacts.from_dict(json.loads(path.read_text(encoding="utf-8"))).to_dict()
    except (OSError, ValueError, TypeError, KeyError):
        return None
