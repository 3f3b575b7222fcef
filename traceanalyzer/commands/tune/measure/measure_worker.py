"""Worker process: checks and times the candidates it is asked for. It may crash; its parent goes on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceanalyzer.workers import serve

if TYPE_CHECKING:
    from traceanalyzer.commands.tune.measure.measuring import Session


def main(module: str, device: str) -> None:
    """Answer questions with the session of a backend's module.

    A question holds ``op``: ``describe``; ``check`` or ``sample`` with ``task`` (and ``count``).
    """
    from traceanalyzer.commands.tune.measure.measuring import MeasuringTask

    opened: list[Session] = []

    def answer(question: dict[str, Any], _: bytes) -> dict[str, Any]:
        if not opened:
            opened.append(import_module(module).open_session(device))
        session = opened[0]
        if question["op"] == "describe":
            where = session.describe()
            return {"device": dict(where.device), "versions": dict(where.versions), "measured": where.measured}
        task = MeasuringTask.from_dict(question["task"])
        if question["op"] == "check":
            return {"relative_error": session.check(task)}
        return {"samples_ms": session.sample(task, question["count"])}

    serve(answer)
