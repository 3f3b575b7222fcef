"""``serving show``: the table over loads, consistency checks, utilisation logs, layouts and plots."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving_results import document, error_line, result, run

Save = Callable[..., str]


def complaints(found: dict[str, Any]) -> list[str]:
    return [w["message"] for w in found["warnings"] if w["code"] == "inconsistent_result"]


def test_loads_are_rows_in_order(save: Save) -> None:
    for load in (16, 1, 4):
        save(f"r/{load}.json", result(load))
    found = run("show", str(Path(save("x.json", result())).parent / "r"))
    assert found.exit_code == 0
    rows = [line.split() for line in found.stdout.splitlines() if line[:1].isdigit()]
    assert [row[0] for row in rows] == ["1", "4", "16"]
    assert found.stdout.splitlines()[0] == "r"
    assert rows[0][-2:] == ["100.0", "%"]
    # 100 ms + 127 x 20 ms for each answer.
    assert "2.640 s" in found.stdout


def test_latency_is_derived_and_marked_where_it_was_not_measured(save: Save) -> None:
    path = save("a.json", {key: value for key, value in result().items() if "e2el" not in key})
    shown = run("show", path).stdout
    assert "~2.640 s" in shown
    assert "derived" in shown


def test_files_of_the_same_load_are_shown_apart(save: Save) -> None:
    before, after = save("before.json", result()), save("after.json", result(tpot_ms=10.0))
    found = document("show", before, after)
    assert [one["name"] for one in found["series"]] == ["before.json", "after.json"]


def test_csv_has_a_row_a_load_in_milliseconds(save: Save) -> None:
    path = save("r.jsonl", "\n".join(json.dumps(result(load)) for load in (1, 2)))
    rows = list(csv.DictReader(io.StringIO(run("show", path, "--csv").stdout)))
    assert [float(row["concurrency"]) for row in rows] == [1.0, 2.0]
    assert float(rows[0]["mean_ttft_ms"]) == pytest.approx(100.0)


def test_failed_requests_are_told(save: Save) -> None:
    found = run("show", save("a.json", result(completed=60, failed=4)))
    assert "some requests failed" in found.stderr
    assert "93.8 %" in found.stdout


def test_a_sound_result_has_no_complaint(save: Save) -> None:
    assert document("show", save("a.json", result()))["warnings"] == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"output_throughput": 700.0}, "output_throughput is 700"),
        ({"request_throughput": 5.0}, "request_throughput is 5"),
        ({"total_token_throughput": 9.0}, "total_token_throughput is 9"),
        ({"mean_e2el_ms": 1500.0}, "TTFT 100 ms + (n - 1) x TPOT 20 ms with n = 128 gives 2,640 ms"),
        ({"mean_e2el_ms": 2900.0}, "Little's law"),
        ({"median_ttft_ms": 300.0}, "median_ttft_ms 300 is above p99_ttft_ms 200"),
        ({"mean_tpot_ms": 0.0}, "not streamed"),
        ({"completed": 70}, "70 completed and 0 failed requests do not make 64 prompts"),
        ({"output_lens": [128] * 63}, "the output lengths add up to 8,064"),
        ({"ttfts": [0.2] * 64}, "the requests' own mean is 200"),
    ],
)
def test_figures_that_do_not_fit_are_told(save: Save, changes: dict[str, Any], told: str) -> None:
    found = complaints(document("show", save("a.json", result(**changes))))
    assert any(told in message for message in found), found


def test_rounding_is_no_contradiction(save: Save) -> None:
    # 32.30 tokens/s of 512 tokens are 0.0631 requests/s, printed as 0.06.
    heading = "concurrency,rps,mean_latency_s,output_tokens_per_s,mean_ttft_s,mean_tpot_s\n"
    assert complaints(document("show", save("a.csv", f"{heading}1,0.06,15.851,32.30,0.116,0.031\n"))) == []
    assert complaints(document("show", save("b.csv", f"{heading}1,0.06,25.851,32.30,0.116,0.031\n"))) != []


NVIDIA = """\
timestamp, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W]
2026/01/01 00:00:00.000, 0, 90 %, 40 %, 40000 MiB, 50000 MiB, 250.0 W
2026/01/01 00:00:00.010, 1, 70 %, 30 %, 10000 MiB, 50000 MiB, [N/A]
2026/01/01 00:00:01.000, 0, 100 %, 50 %, 42000 MiB, 50000 MiB, 270.0 W
"""
DMON = """\
# gpu    pwr     sm    mem     fb  rxpci  txpci
# Idx      W      %      %     MB   MB/s   MB/s
    0     60     90     40   4000   1200    800
    1      -     80     40   4000   1000    600
# gpu    pwr     sm    mem     fb  rxpci  txpci
# Idx      W      %      %     MB   MB/s   MB/s
    0     62    100     40   4200   1400   1000
    0     62    1
"""
AMD = """\
timestamp,gpu,gfx_clk,gfx,mem,vram_used,vram_free,vram_total,vram_percent,pcie_bw
1,0,2100,90,40,1000,3000,4000,25.0,800
2,0,2100,N/A,N/A,1200,2800,4000,30.0,N/A
"""
ROCM = "device,GPU use (%),GPU Memory Allocated (VRAM%),Average Graphics Package Power (W)\ncard0,30,20,100.0\n"
DCGM = """\
#Entity   GPUTL  MCUTL  FBUSD  PCITX       PCIRX
ID
GPU 0     45     20     1000   1000000000  500000000
GPU 0     55     N/A    1000   N/A         700000000
"""
DCGM_CSV = "timestamp,gpu,DCGM_FI_PROF_GR_ENGINE_ACTIVE,DCGM_FI_PROF_PCIE_RX_BYTES\n1,0,0.5,2000000\n2,0,0.7,4000000\n"


@pytest.mark.parametrize(
    ("log", "first"),
    [
        (
            NVIDIA,
            {"gpu": "0", "samples": 2, "gpu_percent": 95.0, "memory_used_mib": 41000.0, "memory_used_percent": 82.0},
        ),
        (
            DMON,
            {
                "gpu": "0",
                "samples": 2,
                "gpu_percent": 95.0,
                "pcie_rx_mb_s": 1300.0,
                "pcie_tx_mb_s": 900.0,
                "power_w": 61,
            },
        ),
        (AMD, {"gpu": "0", "gpu_percent": 90.0, "memory_used_percent": 27.5, "pcie_both_mb_s": 100.0}),
        (ROCM, {"gpu": "card0", "gpu_percent": 30.0, "memory_used_percent": 20.0, "power_w": 100.0}),
        (DCGM, {"gpu": "0", "samples": 2, "gpu_percent": 50.0, "pcie_rx_mb_s": 600.0, "pcie_tx_mb_s": 1000.0}),
        (DCGM_CSV, {"gpu": "0", "gpu_percent": 60.0, "pcie_rx_mb_s": 3.0}),
    ],
)
def test_utilisation_logs_are_averaged_per_gpu(save: Save, log: str, first: dict[str, Any]) -> None:
    path = save("a.json", result())
    entry = document("show", path, "--utilisation", save("log.csv", log))["utilisation"][0]
    for key, value in first.items():
        assert entry[key] == (value if isinstance(value, str) else pytest.approx(value)), key


def test_utilisation_stands_beside_both_sides(save: Save) -> None:
    path = save("a.json", result())
    logs = ("--utilisation", f"before={save('n.csv', NVIDIA)}", "--utilisation", f"after={save('d.csv', DMON)}")
    found = document("compare", path, path, *logs)
    assert [(row["log"], row["gpu"]) for row in found["utilisation"]] == [
        ("before", "0"),
        ("before", "1"),
        ("after", "0"),
        ("after", "1"),
    ]
    table = run("compare", path, path, *logs).stdout
    assert "PCIe rx MB/s" in table
    assert run("compare", path, path, "--utilisation", "tp=x").exit_code == 2


def test_a_log_written_by_powershell_or_compressed_is_read(tmp_path: Path, save: Save) -> None:
    log = "index, utilization.gpu [%]\n0, 50 %\n0, 70 %\n"
    plain, packed = tmp_path / "gpu.csv", tmp_path / "gpu.csv.gz"
    plain.write_text(log, encoding="utf-16")
    packed.write_bytes(gzip.compress(log.encode()))
    path = save("result.json", result())
    found = document("show", path, "--utilisation", str(plain), "--utilisation", str(packed))
    assert [one["gpu_percent"] for one in found["utilisation"]] == [60.0, 60.0]


def test_layouts_are_called_by_their_names_in_what_is_told(save: Save) -> None:
    paths = {"tp": save("tp.json", result(failed=4, completed=60)), "pp": save("pp.json", result(request_rate=8.0))}
    found = document("compare", "--layouts", *(f"{name}={path}" for name, path in paths.items()))
    told = " | ".join(warning["message"] for warning in found["warnings"])
    assert "tp: 4 of 64 requests failed" in told
    assert "request_rate differs (inf tp, 8 pp)" in told
    assert "before" not in told


def test_a_log_without_known_columns_is_one_line(save: Save) -> None:
    path = save("a.json", result())
    assert "nvidia-smi" in error_line(run("show", path, "--utilisation", save("log.csv", "a,b\n1,2\n")))


@pytest.fixture
def layouts(save: Save) -> tuple[str, ...]:
    """TP is 1.5 to 2 times as fast as PP; EP lacks the load 1."""
    speeds = {"pp": {1: 30.0, 4: 40.0, 16: 60.0}, "tp": {1: 15.0, 4: 25.0, 16: 40.0}, "ep": {4: 20.0, 16: 50.0}}
    for name, by_load in speeds.items():
        for load, tpot in by_load.items():
            save(f"{name}/c{load}.json", result(load, tpot_ms=tpot, ttft_ms=10 * tpot, layout=name))
    folder = Path(save("x.json", result())).parent
    return tuple(f"{name}={folder / name}" for name in speeds)


def test_layouts_are_compared_by_ranges_over_loads(layouts: tuple[str, ...]) -> None:
    found = document("compare", "--layouts", *layouts)
    assert found["schema"] == "traceanalyzer/serving-layouts/1"
    ratios = {(r["reference"], r["layout"], r["metric"]): r for r in found["ratios"]}
    speed = ratios["pp", "tp", "output_throughput"]
    assert (speed["ratio_low"], speed["ratio_high"]) == (pytest.approx(1.5), pytest.approx(2.0))
    latency = ratios["pp", "tp", "mean_ttft_ms"]
    assert (latency["ratio_low"], latency["ratio_high"]) == (pytest.approx(0.5), pytest.approx(2 / 3))
    assert ratios["pp", "ep", "output_throughput"]["loads"] == 2
    assert {(best["concurrency"], best["layout"]) for best in found["best"]} == {(1.0, "tp"), (4.0, "ep"), (16.0, "tp")}
    (lone,) = [
        w["message"] for w in found["warnings"] if w["code"] == "unpaired" and w["message"].startswith("pp and ep")
    ]
    assert "pp: 1 concurrent" in lone
    assert found["comparable"] is True


def test_layouts_are_shown_as_factors_and_percent(layouts: tuple[str, ...]) -> None:
    shown = run("compare", "--layouts", *layouts, "--reference", "pp").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("tp over pp")]
    assert "x 1.50 to 2.00" in line
    assert "-50 to -33 %" in line
    assert "ep over tp" not in shown
    rows = list(csv.DictReader(io.StringIO(run("compare", "--layouts", *layouts, "--csv").stdout)))
    assert len({(row["reference"], row["layout"]) for row in rows}) == 3


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_is_drawn_whole(layouts: tuple[str, ...], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot.{suffix}"
    assert run("compare", "--layouts", *layouts, "--plot", str(path)).exit_code == 0
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert not list(tmp_path.glob(".plot*"))


def test_curves_hold_tokens_per_second_over_concurrency(save: Save) -> None:
    from traceanalyzer.commands.serving.plot import curves
    from traceanalyzer.serving.grouping import group
    from traceanalyzer.serving.read import read

    lines = [result(load, tpot_ms=tpot) for load in (8, 1) for tpot in (10.0, 20.0)]
    (curve,), label = curves({"all": group(read(save("r.jsonl", "\n".join(map(json.dumps, lines)))).results)})
    assert label == "concurrent requests"
    assert curve.x == (1.0, 8.0)
    assert curve.y[1] == pytest.approx((lines[0]["output_throughput"] + lines[1]["output_throughput"]) / 2)
    assert curve.half_widths[0] > 0


def test_names_in_any_script_can_be_drawn(save: Save, tmp_path: Path) -> None:
    lines = [json.dumps(result(load, label=label)) for label in ("$x^$ 並列", "b") for load in (1, 2)]
    path = tmp_path / "plot.png"
    found = run("show", save("r.jsonl", "\n".join(lines)), "--plot", str(path))
    assert found.exit_code == 0, found.output
    assert path.exists()


def test_nothing_to_draw_is_one_line(save: Save, tmp_path: Path) -> None:
    path = save("a.json", {"avg_latency": 0.2})
    assert "nothing to draw" in error_line(run("show", path, "--plot", str(tmp_path / "p.png")))
