"""Every kind of result file, also damaged ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.places import SERVING
from tests.support.serving_results import document, error_line, result, run
from traceanalyzer.problems import TraceError
from traceanalyzer.serving.read import read
from traceanalyzer.serving.records import half_unit
from traceanalyzer.serving.serving_result import ServingResult

Save = Callable[..., str]

VLLM_OLD = """\
Traffic request rate: inf
Burstiness factor: 1.0 (Poisson process)
Maximum request concurrency: 16
100%|##########| 64/64 [00:20<00:00,  3.1it/s]
============ Serving Benchmark Result ============
Successful requests:                     64
Benchmark duration (s):                  20.00
Total input tokens:                      6400
Total generated tokens:                  3200
Request throughput (req/s):              3.20
Output token throughput (tok/s):         160.00
Total Token throughput (tok/s):          480.00
---------------Time to First Token----------------
Mean TTFT (ms):                          120.50
Median TTFT (ms):                        110.00
P99 TTFT (ms):                           250.25
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          90.10
Median TPOT (ms):                        90.00
P99 TPOT (ms):                           99.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           nan
==================================================
"""
VLLM_NEW = """\
\x1b[32mbench-1  | \x1b[0m============ Serving Benchmark Result ============
bench-1  | Successful requests:                     60
bench-1  | Failed requests:                         4
bench-1  | Maximum request concurrency:             16
bench-1  | Request rate configured (RPS):           5.00
bench-1  | Benchmark duration (s):                  20.00
bench-1  | Request throughput (req/s):              3.00
bench-1  | Peak output token throughput (tok/s):    200.00
bench-1  | Peak concurrent requests:                18.00
bench-1  | Mean E2EL (ms):                          4000.00
bench-1  | P99.9 E2EL (ms):                         5000.00
bench-1  | ==================================================
"""
SGLANG = """\
# request rate: 8
============ Serving Benchmark Result ============
Backend:                                 sglang-oai
Traffic request rate:                    8.0
Max request concurrency:                 not set
Successful requests:                     100
Benchmark duration (s):                  10.00
Total generated tokens:                  5000
Total generated tokens (retokenized):    4990
Request throughput (req/s):              10.00
Input token throughput (tok/s):          900.00
Output token throughput (tok/s):         500.00
Concurrency:                             7.50
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   750.00
Median E2E Latency (ms):                 740.00
---------------Time to First Token----------------
Mean TTFT (ms):                          50.00
==================================================

# request rate: 16
============ Serving Benchmark Result ============
Traffic request rate:                    16.0
Successful requests:                     100
Output token throughput (tok/s):         600.00
"""


def only(path: str) -> ServingResult:
    (found,) = read(path).results
    return found


def test_the_printed_table_of_vllm_is_read_in_its_old_wording(save: Save) -> None:
    found = only(save("log.txt", VLLM_OLD))
    assert found.load == (16.0, None)
    assert found.settings == {"request_rate": "inf", "burstiness": 1.0, "max_concurrency": 16.0}
    assert (found.completed, found.failed, found.input_tokens, found.output_tokens) == (64, None, 6400.0, 3200.0)
    assert found.metrics["total_token_throughput"] == 480.0
    assert found.metrics["p99_ttft_ms"] == 250.25
    assert found.resolution["p99_ttft_ms"] == pytest.approx(0.005)
    assert "mean_itl_ms" not in found.metrics


def test_the_printed_table_of_vllm_is_read_in_its_new_wording(save: Save) -> None:
    found = only(save("compose.log", VLLM_NEW))
    assert found.load == (16.0, 5.0)
    assert (found.prompts, found.completed, found.failed) == (64, 60, 4)
    assert found.metrics["max_output_tokens_per_s"] == 200.0
    assert found.metrics["p99.9_e2el_ms"] == 5000.0
    assert "max_concurrent_requests" not in found.metrics


def test_the_printed_table_of_sglang_is_read_with_several_results(save: Save) -> None:
    first, second = read(save("sglang.md", SGLANG)).results
    assert first.settings == {"backend": "sglang-oai", "request_rate": 8.0, "max_concurrency": "unlimited"}
    assert first.metrics["mean_e2el_ms"] == 750.0
    assert first.metrics["input_throughput"] == 900.0
    assert first.output_tokens == 5000.0
    assert (first.place, second.place) == ("line 2", "line 22")
    assert second.load == (None, 16.0)
    assert second.metrics == {"output_throughput": 600.0}


def test_sglangs_json_lines_have_the_same_keys_as_vllms(save: Save) -> None:
    line = {
        "backend": "sglang",
        "request_rate": float("inf"),
        "max_concurrency": None,
        "completed": 10,
        "total_output_tokens_retokenized": 9,
        "mean_e2e_latency_ms": 5.0,
        "output_throughput": 3.0,
        "total_throughput": 9.0,
        "concurrency": 7.5,
        "accept_length": 2.5,
        "server_info": {"tp_size": 8},
    }
    found = only(save("sglang.jsonl", json.dumps(line)))
    assert found.metrics == {
        "mean_e2el_ms": 5.0,
        "output_throughput": 3.0,
        "total_token_throughput": 9.0,
        "accept_length": 2.5,
    }
    assert found.settings == {"backend": "sglang", "request_rate": "inf", "max_concurrency": "unlimited"}


def test_a_broken_line_is_told_and_the_others_are_read(save: Save) -> None:
    text = f"{json.dumps(result(1))}\n{json.dumps(result(2))[:100]}\n\n{json.dumps(result(4))}\n"
    found = read(save("results.jsonl", text))
    assert [run_.load.concurrency for run_ in found.results] == [1.0, 4.0]
    assert [(w.code, w.line) for w in found.warnings] == [("bad_line", 2)]


def test_end_to_end_latency_is_calculated_from_the_requests(save: Save) -> None:
    stated = {key: value for key, value in result().items() if "e2el" not in key}
    found = only(save("serve.json", {**stated, "latencies": [1.0, 2.0, 3.0, 6.0]}))
    assert found.metrics["mean_e2el_ms"] == pytest.approx(3000.0)
    assert found.metrics["p99_e2el_ms"] == pytest.approx(3000 + 0.97 * 3000)
    assert "mean_e2el_ms" in found.derived
    failed = only(save("failed.json", {**stated, "failed": 1, "latencies": [1.0, 0.0]}))
    assert "mean_e2el_ms" not in failed.metrics


def test_failures_are_counted_from_what_there_is(save: Save) -> None:
    old = {key: value for key, value in result().items() if key != "failed"}
    assert only(save("a.json", {**old, "completed": 60})).failed == 4
    assert only(save("b.json", {**old, "errors": ["", "timed out", "timed out"]})).failed == 2


def test_offline_benchmarks_keep_their_keys(save: Save) -> None:
    latency = only(save("latency.json", {"avg_latency": 0.25, "latencies": [0.25], "percentiles": {"99": 0.3}}))
    assert (latency.kind, latency.metrics) == ("latency", {"avg_latency": 0.25, "p99_latency": 0.3})
    speeds = {"elapsed_time": 2.0, "num_requests": 8, "requests_per_second": 4.0, "tokens_per_second": 400.0}
    throughput = only(save("throughput.json", {"model_id": "m", **speeds}))
    assert (throughput.kind, throughput.completed) == ("throughput", 8)
    assert set(throughput.metrics) == {"elapsed_time", "requests_per_second", "tokens_per_second"}


def test_a_sweep_counts_each_run_once_and_tells_failures(save: Save) -> None:
    for load in (1, 8):
        for number in range(2):
            save(f"exp/BENCH--max_concurrency={load}/run={number}.json", result(load, run_number=number))
        save(f"exp/BENCH--max_concurrency={load}/summary.json", [result(load)] * 2)
    save("exp/BENCH--max_concurrency=1/warmup.json", result(1))
    save("exp/BENCH--max_concurrency=8/run=2.failure.json", {"error_type": "TimeoutError", "error": "too slow"})
    save("exp/summary.csv", "max_concurrency,output_throughput\n1,5\n")
    save("exp/notes.txt", "nothing here")
    folder = str(Path(save("x.json", result())).parent / "exp")
    found = read(folder)
    assert [run_.load.concurrency for run_ in found.results] == [1.0, 1.0, 8.0, 8.0]
    assert {w.code for w in found.warnings} == {"failed_run", "no_result"}
    assert any("TimeoutError: too slow" in w.message for w in found.warnings)
    (series,) = document("show", folder)["series"]
    assert [(row["concurrency"], row["runs"]) for row in series["results"]] == [(1.0, 2), (8.0, 2)]


def test_the_summaries_of_a_sweep_stand_for_lost_runs(save: Save) -> None:
    summary = save("summary.json", [result(1), result(8)])
    assert [run_.load.concurrency for run_ in read(summary).results] == [1.0, 8.0]
    rows = "\n".join(f"{n},{load},{100.0 * load},nan,64,0" for n, load in enumerate((1, 8)))
    table = save("summary.csv", f",max_concurrency,output_throughput,p99_itl_ms,completed,failed\n{rows}\n")
    found = read(table).results
    assert [(run_.load.concurrency, run_.metrics, run_.failed) for run_ in found] == [
        (1.0, {"output_throughput": 100.0}, 0),
        (8.0, {"output_throughput": 800.0}, 0),
    ]


@pytest.mark.parametrize(
    "table",
    [
        "concurrency,rps,mean_latency_s,output_tokens_per_s,p99_tpot_s\n8,0.29,27.591,148.31,0.054\n",
        "concurrency;rps;mean_latency_s;output_tokens_per_s;p99_tpot_s\n8;0,29;27,591;148,31;0,054\n",
        "concurrency\trps\tmean_latency_s\toutput_tokens_per_s\tp99_tpot_s\n8\t0.29\t27.591\t148.31\t0.054\n",
        "before\n\n| Conc. | RPS | Avg Lat.(s) | Gen. toks/s | P99 TPOT(s) |\n|---|---|---|---|---|\n"
        "| 8 | 0.29 | 27.591 | 148.31 | 0.054 |\n\nafter\n",
    ],
)
def test_tables_are_read_by_their_headings(save: Save, table: str) -> None:
    found = only(save("table.txt", table))
    assert found.load.concurrency == 8.0
    assert found.metrics == {
        "request_throughput": 0.29,
        "mean_e2el_ms": pytest.approx(27591),
        "output_throughput": 148.31,
        "p99_tpot_ms": pytest.approx(54),
    }
    assert found.resolution["p99_tpot_ms"] == pytest.approx(0.5)


def test_a_success_rate_tells_failures(save: Save) -> None:
    table = "| Conc. | RPS | Success Rate |\n|--|--|--|\n| 1 | 0.5 | 100.0% |\n| 2 | 0.9 | 97.5% |\n"
    good, bad = read(save("table.md", table)).results
    assert (good.failed, good.success) == (0, 1.0)
    assert (bad.failed, bad.completed, bad.success) == (None, None, 0.975), "a share counts nothing"
    after = save("after.md", table.replace("97.5", "100.0"))
    found = document("compare", str(Path(after).with_name("table.md")), after)
    (told,) = [w["message"] for w in found["warnings"] if w["code"] == "failed_requests"]
    assert "2.5% of the requests failed" in told


def test_a_success_rate_without_counts_contradicts_nothing(save: Save) -> None:
    heading = "concurrency,rps,output_tokens_per_s,total_output_tokens,duration_s,success_rate"
    path = save("table.csv", f"{heading}\n8,2.0,200,12000,60,97.5%\n")
    found = document("show", path)
    assert [warning["code"] for warning in found["warnings"]] == ["failed_requests"]
    assert run("show", path).stdout.count("97.5 %") == 1
    (one,) = found["series"][0]["results"]
    assert (one["completed"], one["failed"]) == (None, None)


def test_a_success_rate_with_the_number_of_requests_counts_the_failed(save: Save) -> None:
    found = only(save("table.csv", "concurrency,rps,requests,success_rate\n8,2.0,200,0.975\n"))
    assert (found.prompts, found.completed, found.failed) == (200, 195, 5)


def test_several_tables_of_an_article_are_told_apart(save: Save) -> None:
    one = "| Conc. | RPS |\n|--|--|\n| 1 | {} |\n| 2 | {} |\n"
    path = save("article.md", f"{one.format(0.5, 0.8)}\ntext\n\n{one.format(0.6, 0.9)}")
    assert [run_.settings["table"] for run_ in read(path).results] == [1.0, 1.0, 2.0, 2.0]
    found = document("compare", path, path, "--select-before", "table=1", "--select-after", "table=2")
    assert [row["change_percent"] for row in found["metrics"]] == [pytest.approx(20.0), pytest.approx(12.5)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(VLLM_OLD, encoding=encoding)
    assert only(str(path)).metrics["mean_tpot_ms"] == 90.1


def test_a_compressed_result_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json.gz"
    path.write_bytes(gzip.compress(json.dumps(result()).encode()))
    assert only(str(path)).load.concurrency == 8.0
    whole = path.read_bytes()
    for damaged in (whole[:60], whole[:40] + b"\xff\xff\xff\xff" + whole[44:]):
        path.write_bytes(damaged)
        assert "cannot be read" in error_line(run("show", str(path)))


def test_a_list_longer_than_any_file_name_is_read(save: Save, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = [f"a-run-with-a-long-name-{number:02}.json" for number in range(20)]
    for name in names:
        save(name, result())
    monkeypatch.chdir(tmp_path)
    assert len(read(",".join(names)).results) == 20


def test_what_a_run_printed_does_not_count_beside_what_it_saved(save: Save) -> None:
    figures = {"duration": 20.0, "request_throughput": 3.2001, "output_throughput": 160.002, "mean_ttft_ms": 120.4999}
    more = {"median_ttft_ms": 110.0, "p99_ttft_ms": 250.25, "total_token_throughput": 480.0, "mean_tpot_ms": 90.1}
    saved = save("r/run.json", {"max_concurrency": 16, "median_tpot_ms": 90.0, "p99_tpot_ms": 99.0, **figures, **more})
    save("r/run.log", VLLM_OLD)
    found = read(str(Path(saved).parent))
    assert [run_.source for run_ in found.results] == [saved]
    assert "printed_copy" in {w.code for w in found.warnings}
    save("r/run.log", VLLM_OLD.replace("120.50", "121.50"))
    assert len(read(str(Path(saved).parent)).results) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "{"),
        ("a.json", {"traceEvents": []}),
        ("a.json", [1, 2]),
        ("a.csv", "x,y\n1,2\n"),
        ("a.txt", ""),
        ("a.json", '{"output_throughput": NaN}' * 2),
    ],
)
def test_files_without_a_result_are_one_line(save: Save, name: str, content: Any) -> None:
    path = save(name, content)
    assert path in error_line(run("show", path))


def test_paths_that_match_nothing_are_one_line(tmp_path: Path) -> None:
    assert "does not exist" in error_line(run("show", str(tmp_path / "no.json")))
    assert "no file matches" in error_line(run("show", str(tmp_path / "*.json")))
    assert "holds no serving result" in error_line(run("show", str(tmp_path)))


@pytest.mark.parametrize(("text", "half"), [("0.06", 0.005), ("12", 0.5), ("1.0", 0.05), ("0.123456789", 0.0)])
def test_rounding_is_read_from_the_digits(text: str, half: float) -> None:
    assert half_unit(text) == pytest.approx(half)


@pytest.mark.parametrize("name", ["serve.json", "serve_detailed.json", "latency.json", "throughput.json"])
def test_real_results_are_read_without_a_complaint(name: str) -> None:
    found = run("show", str(SERVING / name))
    assert found.exit_code == 0
    assert found.stderr == ""


def test_the_tables_of_the_article_are_read_and_fit_together() -> None:
    path = str(SERVING / "strix_halo_tables.csv")
    found = document("show", path)
    assert [(one["name"], len(one["results"])) for one in found["series"]] == [
        ("table = final", 10),
        ("table = first_attempt", 10),
    ]
    assert found["warnings"] == []


def test_a_table_may_mix_a_benchmarks_own_headings_with_others(save: Save) -> None:
    text = "\ufeffconcurrency;rps;Avg TTFT(s);mean_tpot_ms;Gen. toks/s\r\n1;0,06;0,116;31;1.032,30\r\n"
    (found,) = read(save("table.csv", text)).results
    assert found.load.concurrency == 1
    assert found.metrics == pytest.approx(
        {"request_throughput": 0.06, "mean_ttft_ms": 116.0, "mean_tpot_ms": 31.0, "output_throughput": 1032.3}
    )
    assert set(found.settings) == {"max_concurrency"}


@pytest.mark.parametrize(
    ("cells", "value"), [('1,"1,234.5"', 1234.5), ('1,"2,400"', 2400.0), ('"0,5","2,400"', 2.4), ('1,"0,123"', 0.123)]
)
def test_grouped_digits_are_told_from_decimal_commas(save: Save, cells: str, value: float) -> None:
    (found,) = read(save("table.csv", f"rps,tokens/s\n{cells}\n")).results
    assert found.metrics["output_throughput"] == pytest.approx(value)


@pytest.mark.parametrize("heading", ["p99_latency_ms", "p99_e2e_ms", "p99_e2e_latency_ms", "P99 latency (ms)"])
def test_latency_is_end_to_end_however_it_is_spelled(save: Save, heading: str) -> None:
    (found,) = read(save("table.csv", f"concurrency,{heading}\n2,2100\n")).results
    assert found.metrics == {"p99_e2el_ms": 2100.0}


def test_counts_of_a_table_are_no_settings(save: Save) -> None:
    (found,) = read(save("table.csv", "concurrency,rps,num_prompts,completed\n2,1.5,64,60\n")).results
    assert (found.prompts, found.completed, found.failed) == (64, 60, 4)
    assert set(found.settings) == {"max_concurrency"}


def test_two_columns_of_one_name_are_refused_where_they_differ(save: Save) -> None:
    path = save("twice.csv", "concurrency,output_tokens_per_s,output_tokens_per_s\n1,100,100\n2,200,300\n")
    with pytest.raises(TraceError, match="two columns 'output_tokens_per_s'"):
        read(path)
    same = save("same.csv", "concurrency,output_tokens_per_s,output_tokens_per_s\n1,100,100\n2,200,200\n")
    assert [one.metrics["output_throughput"] for one in read(same).results] == [100, 200]
