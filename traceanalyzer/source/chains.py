"""What runs on the host around the launch of a kernel: ops, modules, frames of Python."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceanalyzer.nesting import around, nearest, nesting
from traceanalyzer.source.frame_text import frame_of, is_models, module_class
from traceanalyzer.trace import Trace

CHAIN_TEXTS = ("op", "line", "model_line", "modules")
"""What is known of a launch: name of the innermost op; text of the innermost Python frame that is not plumbing, and of
the innermost one of a model's code; classes of the modules around it, outer to inner, joined by ``/``."""

CHAIN_COLUMNS = (*CHAIN_TEXTS, "compiled")
"""And whether a compiler wrote the code that launched it, whose lines say nothing."""

CHAIN_SCHEMA: dict[str, pl.DataType] = {**dict.fromkeys(CHAIN_TEXTS, pl.String()), "compiled": pl.Boolean()}

NOTHING = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in CHAIN_SCHEMA.items()]


def chains(trace: Trace, launches: pl.DataFrame) -> pl.DataFrame:
    """Add CHAIN_COLUMNS to launches.

    Only what runs on the launching thread counts. The work is one sweep over each thread's events.

    Args:
        trace: where the host events are.
        launches: with pid, tid (as in the trace) and launched_ns.
    """
    parts = []
    for (pid, tid), own in launches.group_by("pid", "tid", maintain_order=True):
        events = _host_events(trace, pid, tid, own)
        known = NOTHING if events.is_empty() else _Thread.of(events).at(own["launched_ns"].to_numpy())
        parts.append(own.with_columns(known))
    return pl.concat(parts) if parts else launches.with_columns(NOTHING)


def _host_events(trace: Trace, pid: object, tid: object, launches: pl.DataFrame) -> pl.DataFrame:
    """Return ops and frames of a thread that overlap its launches, in order of start, outer ones first."""
    first, last = launches["launched_ns"].min(), launches["launched_ns"].max()
    return (
        trace.events_of("cpu_op", "python_function")
        .filter(
            pl.col("pid") == pid,
            pl.col("tid") == tid,
            pl.col("start_ns") <= last,
            pl.col("start_ns") + pl.col("dur_ns") >= first,
        )
        .select("cat", "name", "start_ns", "dur_ns", "index")
        .collect()
        .sort("start_ns", -pl.col("dur_ns"), "index")
    )


@dataclass(frozen=True, eq=False)
class _Thread:
    """A thread's host events, [events] each, and the texts that their names are, [names]."""

    starts: np.ndarray
    ends: np.ndarray
    parents: np.ndarray
    name: np.ndarray
    texts: pl.Series
    is_op: np.ndarray
    tells: np.ndarray
    compiled: np.ndarray
    models: np.ndarray
    module: np.ndarray
    classes: list[str | None]

    @classmethod
    def of(cls, events: pl.DataFrame) -> _Thread:
        starts = events["start_ns"].to_numpy()
        parents, ends = nesting(starts, (events["start_ns"] + events["dur_ns"]).to_numpy())
        # Names are read once per distinct text: a recording with stacks repeats few of them very often.
        texts = events["name"].cast(pl.String).fill_null("").unique(maintain_order=True)
        codes = pl.DataFrame({"name": texts, "code": np.arange(len(texts), dtype=np.int64)})
        name = (
            events.select(pl.col("name").cast(pl.String).fill_null(""))
            .join(codes, on="name", how="left", maintain_order="left")["code"]
            .to_numpy()
        )
        is_op = (events["cat"].cast(pl.String) == "cpu_op").fill_null(False).to_numpy()
        frames = [frame_of(text) for text in texts]
        classes = [module_class(text) for text in texts]
        tells, compiled, models, module = (
            np.array(flags, dtype=np.bool_)[name] & ~is_op
            for flags in (
                [frame is not None and not frame.compiled for frame in frames],
                [frame is not None and frame.compiled for frame in frames],
                [frame is not None and is_models(frame) for frame in frames],
                [one is not None for one in classes],
            )
        )
        return cls(starts, ends, parents, name, texts, is_op, tells, compiled, models, module, classes)

    def at(self, moments: np.ndarray) -> list[pl.Series]:
        """Return CHAIN_COLUMNS at moments, in ns."""
        inner = around(self.starts, self.ends, self.parents, moments)
        op, line, compiled, model, module = (
            nearest(self.parents, wanted, inner)
            for wanted in (self.is_op, self.tells, self.compiled, self.models, self.module)
        )
        paths = {one: self._path(one) for one in np.unique(module[module >= 0]).tolist()}
        return [
            self._text(op).alias("op"),
            # Frames nest: the inner one of two starts later, and has the larger number.
            self._text(line).alias("line"),
            self._text(model).alias("model_line"),
            pl.Series("modules", [paths.get(one) for one in module.tolist()], dtype=pl.String),
            pl.Series("compiled", compiled > line),
        ]

    def _text(self, events: np.ndarray) -> pl.Series:
        known = np.where(events >= 0, self.name[np.maximum(events, 0)] if len(self.name) else -1, -1)
        return self.texts.gather(pl.Series(known).replace(-1, None))

    def _path(self, module: int) -> str:
        """The classes of a module and those around it, outer to inner."""
        path = []
        while module >= 0:
            path.append(self.classes[self.name[module]] or "")
            outside = np.array([self.parents[module]])
            module = int(nearest(self.parents, self.module, outside)[0])
        return "/".join(reversed(path))
