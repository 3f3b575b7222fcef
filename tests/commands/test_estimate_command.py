"""``traceanalyzer estimate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.support.places import ROOT
from traceanalyzer.cli.main import cli

SCHEMA = json.loads((ROOT / "docs/schemas/estimate.json").read_text(encoding="utf-8"))
SMALL = ("--model", "llama-3.1-8b", "--gpu", "H100 SXM5", "--isl", "100", "--osl", "50")
ARTICLE = ("--model", "llama-2-70b", "--dtype", "fp8", "--kv-dtype", "fp8", "--gpu", "MI300X", "--isl", "294")
DECODE = "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["estimate", *map(str, arguments)])


def document(*arguments: object) -> Any:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def test_the_articles_command_gives_its_figures_and_explains_1997() -> None:
    more = ("--osl", 294, "--batch", 768, "--compare-gpu", "MI300A", "--measured-tokens-per-s", 2520)
    found = document(*ARTICLE, *more, "--shares", "decode=0.7,prefill=0.85")
    cut = found["shortcut"]
    assert [round(cut["decode_factor"], 3), round(cut["prefill_factor"], 3), cut["batch_kept"]] == [1.233, 1.283, 623]
    assert round(cut["tokens_per_s_kept"]) == 2044
    assert any("1,997" in note for note in cut["notes"])
    assert found["compute_bound_share"] == pytest.approx(0.73, abs=0.01)
    assert 1.2 < found["ratios"]["decode_step"] < 1.3
    assert found["second_gpu"]["gpu"] == "MI300A"
    shown = invoke(*ARTICLE, *more, "--shares", "decode=0.7,prefill=0.85").stdout
    for figure in ("1.233", "1.283", "= 623 ", "2,044", "1,997"):
        assert figure in shown


def test_an_estimate_shows_its_assumptions_and_error_range() -> None:
    found = document(*SMALL, "--batch", 4)
    assert found["tpot_range_ms"][0] < found["tpot_ms"] < found["tpot_range_ms"][1]
    assert found["ttft_range_ms"][0] < found["ttft_ms"] < found["ttft_range_ms"][1]
    assert found["tokens_per_s_range"][0] < found["tokens_per_s"] < found["tokens_per_s_range"][1]
    told = " ".join(found["assumptions"])
    for word in ("error range", "least certain", "peak bandwidth", "confidence", "chunked prefill"):
        assert word in told
    shown = invoke(*SMALL, "--batch", 4).stdout
    assert "Assumptions" in shown
    assert "error range" in shown


def test_ops_of_each_phase_add_up_to_their_kernels() -> None:
    found = document(*SMALL, "--batch", 4)
    for phase in ("decode", "prefill"):
        ops = [op for op in found["ops"] if op["phase"] == phase]
        assert sum(op["share"] for op in ops) == pytest.approx(1)
    decode = sum(op["time_us"] for op in found["ops"] if op["phase"] == "decode")
    assert decode < found["decode_step_ms"] * 1000 < decode + 2000


def test_kinds_of_layers_are_told_apart() -> None:
    found = document("--model", "gpt-oss-20b", "--gpu", "MI300X", "--batch", 8, "--isl", 2000, "--osl", 8)
    kinds = {op["kind"]: op["time_us"] for op in found["ops"] if op["op"] == "attention" and op["phase"] == "decode"}
    assert set(kinds) == {"sliding", "full"}
    assert kinds["full"] > 2 * kinds["sliding"]


def test_a_preset_gives_the_largest_batch_and_what_limits_it() -> None:
    found = document(*ARTICLE, "--osl", 294, "--slo", "mlperf-llama2-70b-server")
    assert found["batch"] == found["max_batch"]
    assert found["max_batch_limited_by"] == "tpot"
    assert found["tpot_p99_ms"] <= 200
    assert "one more exceeds the limit on TPOT" in invoke(*ARTICLE, "--osl", 294, "--slo", "tpot=200ms").stdout


def test_without_limits_the_largest_batch_is_what_memory_holds() -> None:
    found = document(*SMALL)
    assert found["max_batch"] == found["memory"]["sequences"]
    assert found["max_batch_limited_by"] == "memory"


def test_several_batches_are_one_row_each() -> None:
    found = document(*SMALL, "--batch", "1,4,16")
    assert [row["batch"] for row in found["batches"]] == [1, 4, 16]
    speeds = [row["tokens_per_s"] for row in found["batches"]]
    assert speeds == sorted(speeds)


def test_layouts_are_compared_with_a_range_over_the_link() -> None:
    arguments = ("--model", "gpt-oss-120b", "--gpu", "RTX 6000 Ada", "--isl", 220, "--osl", 50, "--batch", "1,8")
    found = document(*arguments, "--max-num-batched-tokens", 2048, "--compare-parallel", "tp=4,pp=4,ep=4,tp=1")
    parallel = found["parallel"]
    assert [one["layout"] for one in parallel["layouts"]] == ["tp=4", "pp=4", "ep=4", "tp=1"]
    assert "65.2 GB" in parallel["layouts"][3]["refused"]
    assert len(parallel["ratios"]) == 3
    assert all(one["throughput"][0] <= one["throughput"][1] for one in parallel["ratios"])
    assert len(parallel["link_gbps"]) == 5
    assert found["layout"] == "tp=4"
    single = document(*arguments, "--compare-parallel", "tp=4,pp=4", "--link-gbps", "20")
    assert single["parallel"]["link_gbps"] == [20]


def test_gpu_fit_refuses_weights_that_do_not_fit_and_says_what_does() -> None:
    arguments = ("--model", "gpt-oss-120b", "--gpu", "RTX 6000 Ada", "--isl", 50, "--osl", 10)
    refused = invoke(*arguments, "--gpu-fit")
    assert refused.exit_code == 1
    assert refused.stdout == ""
    (line,) = refused.stderr.strip().splitlines()
    assert "65.2 GB of weights" in line
    assert "tp = 2" in line
    assert invoke(*arguments, "--gpu-fit", "--tp", 2).exit_code == 0
    warned = invoke(*arguments)
    assert warned.exit_code == 0
    assert "do not fit" in warned.stderr
    assert "NOT fit" in warned.stdout


def test_a_floor_is_below_the_estimate_and_has_no_range() -> None:
    floor, usual = document(*SMALL, "--roofline"), document(*SMALL)
    assert floor["tpot_ms"] < usual["tpot_ms"]
    assert floor["tpot_range_ms"] is None
    assert any("floor" in line for line in floor["assumptions"])


def test_serving_results_calibrate_and_their_held_out_error_is_the_range(shared: Path) -> None:
    table = shared / "data/serving_results/strix_halo_tables.csv"
    arguments = ("--model", "gpt-oss-20b", "--gpu", "Radeon 8060S", "--isl", 128, "--osl", 512, "--batch", 8)
    refused = invoke(*arguments, "--calibrate-serving", table)
    assert refused.exit_code == 1
    assert "--select" in refused.stderr
    found = document(*arguments, "--calibrate-serving", table, "--select", "table=final")
    assert found["calibration"]["error"] <= 0.05
    assert found["calibration"]["held_out_error"] <= 0.10
    assert found["tpot_range_ms"][0] < 52.92 < found["tpot_range_ms"][1]
    shown = invoke(*arguments, "--calibrate-serving", table, "--select", "table=final").stdout
    assert "each load left out of the fit" in shown
    assert "not calibrated" in shown
    assert shown.count("times as slow as the defaults") == 1


def test_a_trace_calibrates_and_says_what_it_does_not_tell(shared: Path) -> None:
    arguments = ("--model", "gpt-oss-20b", "--gpu", "MI300X", "--isl", 1621, "--osl", 200, "--batch", 32)
    found = document(*arguments, "--calibrate", shared / DECODE, "--no-cache")
    told = found["calibration"]
    assert any(line.startswith("experts") and "bandwidth" in line for line in told["calibrated"])
    assert any(line.startswith("experts") and "arithmetic" in line for line in told["not_calibrated"])
    assert told["shares"]["experts"]["memory"] < 0.35
    # The trace's step took 10.74 ms.
    assert found["decode_step_ms"] == pytest.approx(10.74, rel=0.1)
    assert abs(document(*arguments)["decode_step_ms"] / 10.74 - 1) > 0.2


def test_what_was_calibrated_is_told_once(shared: Path) -> None:
    arguments = ("--model", "gpt-oss-20b", "--gpu", "MI300X", "--isl", 1621, "--osl", 200, "--batch", 32)
    shown = " ".join(invoke(*arguments, "--calibrate", shared / DECODE, "--no-cache").stdout.split())
    told = document(*arguments, "--calibrate", shared / DECODE, "--no-cache")
    for line in (*told["calibration"]["calibrated"], *told["calibration"]["not_calibrated"]):
        assert shown.count(line) == 1
        assert not any(line in one for one in told["assumptions"])
    assert any("see the calibration" in line for line in told["assumptions"])


def test_a_faster_hotspot_of_a_trace_gives_tpot_and_tokens(shared: Path) -> None:
    arguments = ("--model", "gpt-oss-20b", "--gpu", "MI300X", "--batch", 32, "--trace", shared / DECODE, "--no-cache")
    found = document(*arguments, "--to-share", "moe_down=0.6")["prediction"]
    saved = 3761.9 - 636.3 / 0.6
    assert found["tpot_before_ms"] - found["tpot_after_ms"] == pytest.approx(saved / 1000, rel=0.01)
    assert found["tokens_per_s_after"] == pytest.approx(32e3 / found["tpot_after_ms"])
    tile = document(*arguments, "--change", "moe_down=156.7:78.35")["prediction"]
    assert tile["tpot_before_ms"] - tile["tpot_after_ms"] == pytest.approx(3.7619 / 2, rel=0.01)
    for wrong in ("moe_down=2:0", "moe_down", "nothing=1:2", "moe_down=1:1e9"):
        assert invoke(*arguments, "--change", wrong).exit_code == 1
    assert invoke(*arguments).exit_code == 1
    twice = invoke(*arguments, "--to-share", "moe_down=0.6", "--change", "moe_down=2:1")
    assert "twice" in twice.stderr


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_plot_shows_where_the_bound_switches(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plot{suffix}"
    assert invoke(*SMALL, "--plot", path).exit_code == 0
    assert path.stat().st_size > 5000
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--batch", "0"),
        ("--batch", "-3"),
        ("--batch", "many"),
        ("--batch", "99999999"),
        ("--isl", "0"),
        ("--osl", "99999999999"),
        ("--dtype", "int3"),
        ("--kv-dtype", "cheese"),
        ("--slo", "soon"),
        ("--compare-parallel", "tp=4"),
        ("--shares", "decode=0.7"),
        ("--compare-gpu", "H100 SXM5", "--shares", "decode=7"),
        ("--link-gbps", "fast"),
        ("--link-gbps", "1:2"),
        ("--to-share", "moe_down=0.5"),
        ("--select", "a=b"),
        ("--plot", "plot.gif"),
        ("--gpu-memory-utilization", "0"),
        ("--gpu-memory-utilization", "nan"),
        ("--routing-skew", "inf"),
        ("--compare-gpu", "H200 SXM", "--measured-tokens-per-s", "nan"),
        ("--compare-parallel", ""),
        ("--slo", ""),
        ("--model", "no-such-model"),
        ("--gpu", "Voodoo 2"),
        ("--compare-gpu", "Voodoo 2"),
        ("--max-num-batched-tokens", "0"),
    ],
)
def test_wrong_usage_ends_with_status_2_and_one_error(arguments: tuple[str, ...]) -> None:
    result = invoke(*SMALL, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("Error:") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*SMALL, "--tp", "7"), "does not divide"),
        ((*SMALL, "--ep", "4"), "no experts"),
        (("--model", "llama-3.1-8b", "--gpu", "Radeon 8060S", "--tp", "2"), "--link-gbps"),
        ((*SMALL, "--batch", "9000"), "max-num-batched-tokens"),
        ((*SMALL, "--calibrate", "nowhere.json"), "nowhere.json"),
        ((*SMALL, "--calibrate-serving", "nowhere.json"), "nowhere.json"),
    ],
)
def test_what_cannot_be_estimated_ends_in_one_line_and_status_1(arguments: tuple[str, ...], said: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_config_that_lacks_a_key_names_it(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4}))
    result = invoke("--model", path, "--gpu", "H100 SXM5")
    assert result.exit_code == 1
    assert "hidden_size" in result.stderr


def test_attention_of_an_unknown_kind_is_refused_rather_than_guessed(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "vocab_size": 100,
        "layer_types": ["full_attention", "telepathic_attention"],
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    result = invoke("--model", path, "--gpu", "H100 SXM5")
    assert result.exit_code == 1
    assert "attention" in result.stderr


def test_more_tokens_than_the_model_has_positions_are_told() -> None:
    found = document("--model", "llama-2-70b", "--gpu", "MI300X", "--isl", 5000, "--osl", 10)
    assert any("more than the model's 4,096 positions" in line for line in found["assumptions"])


def test_tables_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    more = ("--batch", "1,4", "--compare-gpu", "H200 SXM", "--compare-parallel", "tp=2,pp=2")
    for arguments in ((*SMALL, *more), ("--model", "gpt-oss-20b", "--gpu", "MI300X", "--isl", 100, "--osl", 10)):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
        assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_a_trace_of_another_model_and_gpu_is_told(shared: Path) -> None:
    trace = shared / "traces" / "gpu" / "qwen3_8b_sglang_decode_mi300x.json.gz"
    found = document("--model", "gpt-oss-20b", "--gpu", "H100 SXM5", "--isl", 64, "--osl", 8, "--calibrate", trace)
    assert {"model_mismatch", "gpu_mismatch"} <= {warning["code"] for warning in found["warnings"]}


def test_results_that_the_model_cannot_have_given_are_told(shared: Path) -> None:
    results = shared / "cases" / "501_bench_failed_requests.json"
    found = document("--model", "llama-2-70b", "--gpu", "A100 SXM4 80GB", "--calibrate-serving", results)
    assert {"failed_requests", "calibration_far_off"} <= {warning["code"] for warning in found["warnings"]}
    (point,) = found["calibration"]["points"]
    ratio = point["tpot_ms"] / point["fitted_ms"]
    assert found["tpot_range_ms"][0] <= found["tpot_ms"] * ratio * 1.000001
