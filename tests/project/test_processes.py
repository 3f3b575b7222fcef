"""Errors and traces in pools of processes."""

from __future__ import annotations

import os
import pickle

import pytest

from tests.support.places import CASES
from traceanalyzer.problems import TraceError
from traceanalyzer.read.streaming import NoTraceError
from traceanalyzer.trace import open_traces

CASE = CASES / "000_baseline.json"


@pytest.mark.parametrize("kind", [TraceError, NoTraceError])
def test_an_error_comes_back_from_another_process(kind: type[TraceError]) -> None:
    back = pickle.loads(pickle.dumps(kind("a.json", "is empty")))
    assert (type(back), back.path, back.reason, str(back)) == (kind, "a.json", "is empty", "a.json: is empty")


def test_a_child_forked_after_traces_were_opened_is_told_to_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    open_traces(CASE, cache=False)
    parent = os.getpid()
    monkeypatch.setattr("traceanalyzer.trace.os.getpid", lambda: parent + 1)
    with pytest.raises(TraceError, match="spawn"):
        open_traces(CASE, cache=False)
