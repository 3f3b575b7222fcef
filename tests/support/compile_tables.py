"""Two recorded tables of measured tiles, and the compile facts of their candidates.

The facts (tests/data/compile_facts.jsonl) were compiled with Triton 3.9 from the kernels of this package; a slow test
compiles them again. ``python -m tests.support.compile_tables`` rewrites the file.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.support.places import DATA, ROOT
from traceanalyzer.commands.tune.compile.candidate_order import ordered, score
from traceanalyzer.commands.tune.compile.compilation import CompileFacts
from traceanalyzer.commands.tune.compile.device import device_of
from traceanalyzer.commands.tune.compile.screen import Compiling, compile_all
from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.problem import Config, Problem
from traceanalyzer.kernels.target import find_target

FACTS = DATA / "compile_facts.jsonl"
STRIX, H100 = "Radeon 8060S", "H100 SXM5"

Table = dict[Problem, dict[Config, float]]
"""Problem -> candidate -> measured milliseconds."""

Facts = dict[tuple[str, Config, bool], CompileFacts]
"""(target, candidate, whether rows are a multiple of 16) -> facts; further rows compile to the same code."""


def strix_table(shared: Path) -> Table:
    """The sweep of gpt-oss-20b's gate_up on Strix Halo (shapes as vLLM pads them on ROCm).

    The log does not say num_warps; triton_kernels 3.5.0 takes 2 for at most 16 rows and 8 above.
    """
    table: Table = {}
    for line in (shared / "data" / "tuner" / "strix_halo_sweep.log").read_text().splitlines():
        found = re.match(r"conc=(\d+) bm=(\d+) bn=(\d+) bk=(\d+) sk=(\d+) .*samples=\[([\d.]+)", line)
        if found:
            concurrency, bm, bn, bk, sk = (int(group) for group in found.groups()[:5])
            m = 4 * concurrency
            warps = 2 if m <= 16 else 8
            config = Config(bm, bn, bk, sk, group_m=4, num_warps=warps, num_stages=2, matrix_instr_nonkdim=16)
            problem = Problem(m, 5888, 2944, experts=32, top_k=4)
            table.setdefault(problem, {})[config] = float(found.group(6))
    return table


def dense_table(shared: Path) -> Table:
    """Published timings of dense products by torch.compile's autotuner, probably on H100: the best 9 of each table."""
    table: Table = {}
    with (shared / "data" / "tuner" / "inductor_autotune.csv").open() as file:
        for row in csv.DictReader(file):
            problem = Problem(int(row["M"]), int(row["N"]), int(row["K"]), row["dtype"])
            blocks = (int(row["bm"]), int(row["bn"]), int(row["bk"]))
            config = Config(
                *blocks, group_m=int(row["group_m"]), num_warps=int(row["warps"]), num_stages=int(row["stages"])
            )
            table.setdefault(problem, {})[config] = float(row["ms"])
    return table


def key_of(target: str, problem: Problem, config: Config) -> tuple[str, Config, bool]:
    """Return under which key a candidate's facts are kept."""
    return target, config, problem.m % 16 == 0


def read_facts() -> Facts:
    """Read the stored facts."""
    found: Facts = {}
    for line in FACTS.read_text().splitlines():
        entry = json.loads(line)
        config = Config.from_dict(entry["config"])
        found[entry["target"], config, entry["even"]] = msgspec.convert(entry["facts"], CompileFacts)
    return found


def compile_facts(kernel: str, target: str, table: Table) -> Facts:
    """Compile every candidate of a table, each kind of rows once."""
    found: Facts = {}
    for problem, measured in table.items():
        missing = [config for config in measured if key_of(target, problem, config) not in found]
        compiled = compile_all(kernel, problem, find_target(target), missing, Compiling(2, 300, None))
        for config, facts in compiled.items():
            assert isinstance(facts, CompileFacts), facts
            found[key_of(target, problem, config)] = facts
    return found


def regret(order: Sequence[Config], measured: Mapping[Config, float], first: int) -> float:
    """Return the best measured time among the ``first`` of an order over the best of all (1: nothing is lost).

    Raises:
        ValueError: none of the candidates was measured.
    """
    tried = [measured[config] for config in order if config in measured][:first]
    if not tried:
        raise ValueError("none of the ranked candidates was measured")
    return min(tried) / min(measured.values())


def regrets(kernel: str, gpu: str, table: Table, facts: Facts, first: int) -> list[float]:
    """Return the regret of the screen's first candidates on every problem of a table."""
    spec, device = find_kernel(kernel), device_of(gpu=gpu)
    lost = []
    for problem, measured in table.items():
        scores = {
            config: score(
                problem,
                config,
                facts[key_of(device.target.name, problem, config)],
                spec.traffic(problem, config),
                device,
            )
            for config in measured
        }
        lost.append(regret(ordered(scores), measured, first))
    return lost


def lines_of(facts: Facts) -> Iterable[str]:
    """Return facts as lines of the data file."""
    for (target, config, even), fact in facts.items():
        entry: dict[str, Any] = {
            "target": target,
            "even": even,
            "config": config.to_dict(),
            "facts": msgspec.to_builtins(fact),
        }
        yield json.dumps(entry) + "\n"


if __name__ == "__main__":
    folder = ROOT.parent / "shared"
    compiled = compile_facts("moe_gate_up", "gfx1151", strix_table(folder))
    compiled |= compile_facts("dense", "sm_90", dense_table(folder))
    FACTS.write_text("".join(lines_of(compiled)))
