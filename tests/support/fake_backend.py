"""A backend without a GPU: times follow a formula, and some tiles misbehave on purpose.

block_n: 16 takes 1.0 ms, 32 takes 1.2, 64 takes 1.005 (a tie), 128 takes 3.0. block_k = 256 computes something wrong,
num_stages = 7 kills the process, num_stages = 8 hangs, num_stages = 9 raises while timed. Every call drifts by 1 %.
FAKE_START_S makes it slow to open; where the file FAKE_ONCE is there, it does not open again.
"""

from __future__ import annotations

import os
import random
import time

from traceanalyzer.commands.tune.measure.measuring import Description, MeasuringTask, Session, WrongResultError

MS = {16: 1.0, 32: 1.2, 64: 1.005, 128: 3.0}
DRIFT = 1.01


class FakeSession:
    def __init__(self) -> None:
        self._calls = 0
        self._checked: set[MeasuringTask] = set()
        self._log = os.environ.get("FAKE_LOG")

    def describe(self) -> Description:
        return Description({"name": "Fake GPU", "target": "sm_90"}, {"fake": "1"}, measured=True)

    def check(self, task: MeasuringTask) -> float:
        self._note("check", task)
        if task.config.num_stages == 7:
            os._exit(139)
        if task.config.num_stages == 8:
            time.sleep(60)
        if task.config.block_k == 256:
            raise WrongResultError("wrong result: relative error 0.5, permitted 0.02")
        return 1e-4

    def sample(self, task: MeasuringTask, count: int) -> list[float]:
        self._note("sample", task)
        if task.config.num_stages == 9:
            raise RuntimeError("an illegal memory access was encountered")
        self._calls += 1
        base = MS[task.config.block_n] * (1 + task.problem.m / 1000) * DRIFT**self._calls
        noise = random.Random(f"{task} {self._calls}")
        return [base * (1 + 0.002 * noise.random()) for _ in range(count)]

    def _note(self, what: str, task: MeasuringTask) -> None:
        if self._log:
            with open(self._log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{what} {task.problem.m} {task.routing} {task.config.label}\n")


def open_session(device: str) -> Session:
    if device != "gpu":
        raise RuntimeError("the fake runs on a fake GPU only")
    time.sleep(float(os.environ.get("FAKE_START_S", "0")))
    if once := os.environ.get("FAKE_ONCE"):
        with open(once, "x", encoding="utf-8"):  # noqa: PTH123
            pass
    print("a library that prints does not disturb the answers")  # noqa: T201
    return FakeSession()
