"""A worker process that misbehaves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from traceanalyzer.workers import LateWorkerError, Worker, WorkerError

WORKER = """
import os, subprocess, sys, time
from traceanalyzer.workers import serve

def answer(question, payload):
    do = question["do"]
    if do == "print": print("noise on stdout")
    if do == "die": os.abort()
    if do == "exit": sys.stderr.write("out of luck\\n"); sys.stderr.flush(); os._exit(3)
    if do == "start": return {"pid": subprocess.Popen(["sleep", "60"]).pid}
    if do == "sleep": time.sleep(60)
    if do == "surrogate": raise ValueError("\\udc80")
    if do == "raise": raise ValueError("no\\nway " + "x" * 5000)
    return {"pid": os.getpid(), "bytes": len(payload)}

def main():
    serve(answer)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "misbehaving.py").write_text(WORKER)
    return Worker("misbehaving", environment={"PYTHONPATH": str(tmp_path)})


def test_one_process_answers_many_questions_whatever_it_prints(worker: Worker) -> None:
    with worker:
        first = worker.ask({"do": "nothing"}, 30)
        assert worker.ask({"do": "print"}, 30) == first
        assert worker.starts == 1


@pytest.mark.parametrize(
    ("do", "words"), [("die", "signal 6"), ("exit", r"exit status 3\): out of luck"), ("raise", "ValueError: no way")]
)
def test_a_failure_is_told_in_one_line(worker: Worker, do: str, words: str) -> None:
    with worker, pytest.raises(WorkerError, match=words) as caught:
        worker.ask({"do": do}, 30)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_new_process_answers_after_one_has_died(worker: Worker) -> None:
    with worker:
        before = worker.ask({"do": "nothing"}, 30)["pid"]
        with pytest.raises(WorkerError):
            worker.ask({"do": "die"}, 30)
        assert worker.ask({"do": "nothing"}, 30)["pid"] != before


def test_a_late_worker_is_killed(worker: Worker) -> None:
    with worker:
        worker.ask({"do": "nothing"}, 30)
        with pytest.raises(LateWorkerError, match=r"no answer within 0\.2 s"):
            worker.ask({"do": "sleep"}, 0.2)
        assert not worker.running
        assert worker.ask({"do": "nothing"}, 30)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid: int) -> bool:
    """Whether a process ends within ten seconds."""
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_what_a_worker_has_started_is_killed_with_it(worker: Worker) -> None:
    with worker:
        child = worker.ask({"do": "start"}, 30)["pid"]
        assert is_alive(child)
        with pytest.raises(LateWorkerError):
            worker.ask({"do": "sleep"}, 0.2)
        assert ends(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_worker_dies_with_a_caller_that_is_killed(worker: Worker, tmp_path: Path) -> None:
    caller = (
        "from traceanalyzer.workers import Worker\n"
        "worker = Worker('misbehaving')\n"
        "print(worker.ask({'do': 'nothing'}, 30)['pid'], flush=True)\n"
        "worker.ask({'do': 'sleep'}, 60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", caller]
    with worker, subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
    assert ends(pid)


def test_a_worker_killed_by_another_thread_answers_nobody(worker: Worker) -> None:
    with worker:
        worker.ask({"do": "nothing"}, 30)
        threading.Timer(0.1, worker.kill).start()
        with pytest.raises(WorkerError, match="signal 9"):
            worker.ask({"do": "sleep"}, 30)


def test_a_module_that_cannot_be_imported_is_told() -> None:
    with Worker("no_such_module_at_all") as worker, pytest.raises(WorkerError, match="No module named"):
        worker.ask({}, 30)


def test_bytes_travel_with_a_question_however_many(worker: Worker) -> None:
    with worker:
        assert worker.ask({"do": "nothing"}, 30, bytes(3 << 20))["bytes"] == 3 << 20
        assert worker.ask({"do": "nothing"}, 30, memoryview(b"abc"))["bytes"] == 3
        assert worker.peak_bytes > 0


def test_a_worker_whose_answers_rest_on_earlier_ones_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "misbehaving.py").write_text(WORKER)
    with Worker("misbehaving", environment={"PYTHONPATH": str(tmp_path)}, replaced=False) as worker:
        pid = worker.ask({"do": "nothing"}, 30)["pid"]
        os.kill(pid, 9)
        with pytest.raises(WorkerError, match="signal 9"):
            worker.ask({"do": "nothing"}, 30)
        assert worker.starts == 1


def test_an_error_that_no_encoding_holds_is_told(worker: Worker) -> None:
    with worker, pytest.raises(WorkerError, match=r"ValueError: \\udc80"):
        worker.ask({"do": "surrogate"}, 30)
