"""``serving compare``: directions, verdicts, noise, fairness, missing figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import CASES
from tests.support.serving_results import document, error_line, result, run

Save = Callable[..., str]
EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))["cases"]
PAIRS = [name for name, case in EXPECTED.items() if name[0:2] == "50" and isinstance(case["path"], list)]


def by_metric(found: dict[str, Any], concurrency: float | None = None) -> dict[str, dict[str, Any]]:
    rows = [row for row in found["metrics"] if concurrency is None or row["concurrency"] == concurrency]
    assert len({row["metric"] for row in rows}) == len(rows)
    return {row["metric"]: row for row in rows}


def codes(found: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in found["warnings"]}


def case(name: str) -> tuple[str, str]:
    before, after = (str(CASES / path) for path in EXPECTED[name]["path"])
    return before, after


@pytest.mark.parametrize("name", PAIRS)
def test_changes_of_the_cases_are_right(name: str) -> None:
    found = document("compare", *case(name))
    assert found["schema"] == "traceanalyzer/serving/1"
    rows = by_metric(found)
    for metric, percent in EXPECTED[name]["values"].get("changes_percent", {}).items():
        assert rows[metric]["change_percent"] == (None if percent is None else pytest.approx(percent))
    for message in EXPECTED[name].get("messages", []):
        assert any(hint in json.dumps(found["warnings"]) for hint in message["mention_any"])


def test_each_metric_has_its_own_direction() -> None:
    rows = by_metric(document("compare", *case("500_bench_pair")))
    verdicts = {metric: (row["direction"], row["verdict"]) for metric, row in rows.items()}
    assert verdicts["mean_ttft_ms"] == ("lower", "worse")
    assert verdicts["median_tpot_ms"] == ("lower", "better")
    assert verdicts["output_throughput"] == ("higher", "better")
    assert verdicts["duration"] == ("lower", "better")
    assert verdicts["p99_ttft_ms"] == ("lower", "same")


def test_a_fair_pair_has_no_warning() -> None:
    found = document("compare", *case("500_bench_pair"))
    assert found["comparable"] is True
    assert found["differing_settings"] == []
    assert found["warnings"] == []
    assert "single run" in found["method"]


def test_failed_requests_take_the_verdicts_away() -> None:
    found = document("compare", *case("501_bench_failed_requests"))
    assert found["comparable"] is False
    assert {row["verdict"] for row in found["metrics"]} == {None}
    (failed,) = [warning for warning in found["warnings"] if warning["code"] == "failed_requests"]
    assert failed["count"] == 188
    assert all(part in failed["message"] for part in ("188 of 200", "12 completed", "not comparable"))
    table = run("compare", *case("501_bench_failed_requests"))
    assert "better" not in table.stdout
    assert "188 of 200" in table.stderr


def test_nan_and_missing_are_null_and_shown_as_not_available() -> None:
    rows = by_metric(document("compare", *case("503_bench_old_schema")))
    assert (rows["p99_itl_ms"]["before"], rows["p99_itl_ms"]["after"]) == (None, 60.0)
    assert rows["p99_itl_ms"]["verdict"] is None
    table = run("compare", *case("503_bench_old_schema")).stdout
    (line,) = [line for line in table.splitlines() if line.startswith("p99_itl_ms")]
    assert line.split()[1:] == ["n/a", "60.00", "n/a", "n/a"]
    assert "nan" not in table.lower()


def test_old_goodput_key_is_understood(save: Save) -> None:
    old = {key: value for key, value in result().items() if key != "request_goodput"}
    before = save("old.json", {**old, "request_goodput:": 2.0})
    rows = by_metric(document("compare", before, save("new.json", result(request_goodput=3.0))))
    assert rows["request_goodput"]["change_percent"] == pytest.approx(50.0)


def test_repeated_runs_give_an_interval_that_decides(save: Save) -> None:
    for side, speeds in (("before", (20.0, 20.6, 19.4)), ("after", (20.3, 19.7, 20.2))):
        for number, tpot in enumerate(speeds):
            save(f"{side}/BENCH--max_concurrency=8/run={number}.json", result(tpot_ms=tpot, ttft_ms=100 + number))
    folder = Path(save("x.json", result())).parent
    found = document("compare", str(folder / "before"), str(folder / "after"))
    row = by_metric(found)["mean_tpot_ms"]
    # Welch: s = 0.6 and 0.3214 of 3 runs, se = 0.3930, 3.06 degrees of freedom taken as 3, t = 3.1824.
    assert (row["before"], row["after"]) == (pytest.approx(20.0), pytest.approx(20.0666667))
    assert row["change_percent_high"] - row["change_percent"] == pytest.approx(3.18245 * 0.392995 / 20 * 100, rel=1e-3)
    assert row["verdict"] == "same"
    assert row["runs_before"] == row["runs_after"] == 3
    assert row["half_width_before"] == pytest.approx(4.30265 * 0.6 / 3**0.5, rel=1e-4)
    assert "95%" in found["method"]


def test_a_change_beyond_the_noise_is_judged(save: Save) -> None:
    before = save("before.jsonl", "\n".join(json.dumps(result(tpot_ms=t)) for t in (20.0, 20.1, 19.9)))
    after = save("after.jsonl", "\n".join(json.dumps(result(tpot_ms=t)) for t in (18.0, 18.1, 17.9)))
    row = by_metric(document("compare", before, after))["mean_tpot_ms"]
    assert row["verdict"] == "better"
    assert row["change_percent_high"] < 0


def test_one_repeated_side_lends_its_scatter_to_the_other(save: Save) -> None:
    before = save("before.jsonl", "\n".join(json.dumps(result(tpot_ms=t)) for t in (20.0, 22.0, 18.0)))
    found = document("compare", before, save("after.json", result(tpot_ms=19.0)))
    row = by_metric(found)["mean_tpot_ms"]
    assert row["verdict"] == "same"
    assert row["change_percent_high"] - row["change_percent"] == pytest.approx(4.30265 * 2 * (4 / 3) ** 0.5 / 20 * 100)
    assert "single run is assumed to vary" in found["method"]


@pytest.mark.parametrize(
    "change", [{"request_rate": 4.0}, {"burstiness": 0.5}, {"random_input_len": 64}, {"dataset_name": "sharegpt"}]
)
def test_a_different_workload_is_not_comparable(save: Save, change: dict[str, Any]) -> None:
    same = {"random_input_len": 512, "dataset_name": "random"}
    before = save("before.json", result(**same))
    found = document("compare", before, save("after.json", result(**{**same, **change})))
    assert found["comparable"] is False
    assert [d["setting"] for d in found["differing_settings"]] == list(change)
    assert "different_workload" in codes(found)
    assert all(row["verdict"] is None for row in found["metrics"])


def test_settings_that_do_not_change_the_work_are_listed_only(save: Save) -> None:
    before = save("before.json", result(label="a", tp="1", date="20250101-000000"))
    found = document("compare", before, save("after.json", result(label="b", tp="2", model_id="example/model-8b-fp8")))
    assert found["comparable"] is True
    assert found["differing_settings"] == [
        {"setting": "model_id", "before": "example/model-8b", "after": "example/model-8b-fp8"},
        {"setting": "tp", "before": 1.0, "after": 2.0},
    ]


def test_a_setting_written_as_text_equals_the_number(save: Save) -> None:
    before = save("before.json", result(max_num_seqs="32"))
    found = document("compare", before, save("after.json", result(max_num_seqs=32)))
    assert found["differing_settings"] == []


def test_other_numbers_of_prompts_make_the_duration_no_metric(save: Save) -> None:
    after = result(num_prompts=32, completed=32, duration=result()["duration"] / 2)
    after |= {key: result()[key] / 2 for key in ("total_input_tokens", "total_output_tokens")}
    found = document("compare", save("before.json", result()), save("after.json", after))
    rows = by_metric(found)
    assert rows["duration"]["verdict"] is None
    assert rows["mean_ttft_ms"]["verdict"] == "same"
    assert [d["setting"] for d in found["differing_settings"]] == ["num_prompts"]


def test_answers_of_other_length_are_not_comparable(save: Save) -> None:
    shorter = result(total_output_tokens=result()["total_output_tokens"] * 0.8)
    found = document("compare", save("before.json", result()), save("after.json", shorter))
    assert found["comparable"] is False
    assert any("mean output length differs" in warning["message"] for warning in found["warnings"])


def test_loads_are_paired_and_lone_ones_told(save: Save) -> None:
    for side, loads, tpot in (("before", (1, 4, 16), 20.0), ("after", (4, 16, 32), 10.0)):
        for load in loads:
            save(f"{side}/c{load}.json", result(load, tpot_ms=tpot))
    folder = Path(save("x.json", result())).parent
    found = document("compare", str(folder / "before"), str(folder / "after"))
    assert {row["concurrency"] for row in found["metrics"]} == {4.0, 16.0}
    assert by_metric(found, 4.0)["mean_tpot_ms"]["change_percent"] == pytest.approx(-50.0)
    (lone,) = [warning for warning in found["warnings"] if warning["code"] == "unpaired"]
    assert "before: 1 concurrent" in lone["message"]
    assert "after: 32 concurrent" in lone["message"]
    table = run("compare", str(folder / "before"), str(folder / "after")).stdout
    assert "16 concurrent" in table
    assert "-50.0 % better" in table


def test_request_rates_are_paired(save: Save) -> None:
    def sweep(tpot: float) -> str:
        return "\n".join(json.dumps(result(tpot_ms=tpot, request_rate=rate, max_concurrency=None)) for rate in (1, 2))

    found = document("compare", save("before.jsonl", sweep(20)), save("after.jsonl", sweep(10)))
    assert {row["request_rate"] for row in found["metrics"]} == {1.0, 2.0}
    assert found["comparable"] is True


def test_files_patterns_and_lists_make_a_side(save: Save) -> None:
    for number, tpot in enumerate((20.0, 20.2)):
        save(f"a{number}.json", result(tpot_ms=tpot))
    folder = Path(save("b.json", result(tpot_ms=10.0))).parent
    listed = f"{folder / 'a0.json'},{folder / 'a1.json'}"
    for side in (str(folder / "a*.json"), listed):
        row = by_metric(document("compare", side, str(folder / "b.json")))["mean_tpot_ms"]
        assert row["runs_before"] == 2
        assert row["before"] == pytest.approx(20.1)


def test_a_side_that_mixes_configurations_wants_a_choice(save: Save) -> None:
    table = "config,concurrency,output_tokens_per_s\nold,1,10.0\nold,2,18.0\nnew,1,15.0\nnew,2,30.0\n"
    path = save("table.csv", table)
    both = ("compare", path, path, "--select-before", "config=old")
    found = document(*both, "--select-after", "config=new")
    assert [row["change_percent"] for row in found["metrics"]] == [pytest.approx(50.0), pytest.approx(66.6666667)]
    other = save("other.csv", table.replace("old", "third").replace("new", "fourth"))
    assert "--select-before config=VALUE" in error_line(run("compare", path, other))
    assert "config is one of new, old" in error_line(run("compare", path, path, "--select-before", "config=no"))


def test_a_setting_that_both_sides_vary_pairs_their_runs(save: Save) -> None:
    def sweep(tpot: float) -> str:
        return "\n".join(json.dumps(result(tpot_ms=tpot, random_input_len=length)) for length in (64, 512))

    found = document("compare", save("before.jsonl", sweep(20)), save("after.jsonl", sweep(10)))
    assert {row["where"]["random_input_len"] for row in found["metrics"]} == {64.0, 512.0}
    assert found["comparable"] is True


def test_a_change_within_the_rounding_of_text_is_none(save: Save) -> None:
    before = save("before.csv", "concurrency,rps,mean_tpot_s\n2,0.10,0.038\n")
    rows = by_metric(document("compare", before, save("after.csv", "concurrency,rps,mean_tpot_s\n2,0.13,0.037\n")))
    assert rows["mean_tpot_ms"]["verdict"] == "same"
    assert rows["request_throughput"]["verdict"] == "better"


def test_different_benchmarks_are_refused(save: Save) -> None:
    latency = save("latency.json", {"avg_latency": 0.2, "latencies": [0.2], "percentiles": {"50": 0.2}})
    assert "different benchmarks" in error_line(run("compare", latency, save("serve.json", result())))


def test_no_common_load_is_refused(save: Save) -> None:
    before = save("before.jsonl", "\n".join(json.dumps(result(n)) for n in (1, 2)))
    line = error_line(run("compare", before, save("after.jsonl", "\n".join(json.dumps(result(n)) for n in (4, 8)))))
    assert "no load in common" in line


def test_csv_has_every_metric() -> None:
    found = run("compare", *case("500_bench_pair"), "--csv")
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(found.stdout))}
    assert float(rows["duration"]["change_percent"]) == pytest.approx(-20.0)
    assert rows["duration"]["verdict"] == "better"


@pytest.mark.parametrize(
    "arguments",
    [
        ("one.json",),
        ("a", "b", "c"),
        ("a", "b", "--json", "--csv"),
        ("a", "b", "--reference", "a"),
        ("a", "b", "--plot", "p.gif"),
        ("--layouts", "tp=a"),
        ("--layouts", "tp=a", "b"),
        ("--layouts", "tp=a", "tp=b"),
        ("--layouts", "tp=a", "pp=b", "--reference", "ep"),
    ],
)
def test_wrong_usage_is_status_2(arguments: tuple[str, ...]) -> None:
    found = run("compare", *arguments)
    assert found.exit_code == 2
    assert found.stdout == ""
