"""Sweeps of every kind become points; what cannot be used is counted or refused with a reason."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.places import CASES, ROOT
from traceanalyzer.commands.tune.formats import NAMES, read_sweep
from traceanalyzer.commands.tune.formats.sweep import Sweep, write_sweep
from traceanalyzer.commands.tune.policy.compute import make_policy
from traceanalyzer.problems import TraceError

SEED = ROOT / "docs" / "data" / "strix_halo_sweep.log"


def read(tmp_path: Path, text: str | bytes, name: str = "sweep", **options: Any) -> Sweep:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_sweep(path, **options)


def counts(sweep: Sweep) -> dict[str, int | None]:
    return {warning.code: warning.count for warning in sweep.warnings}


def test_a_hand_written_log_is_read_whole() -> None:
    sweep = read_sweep(SEED)
    assert (sweep.format, len(sweep.points), sweep.warnings) == ("log", 48, ())
    first = sweep.points[0]
    assert (first.m, first.concurrency, first.median_ms) == (None, 1, pytest.approx(10.100704))
    assert first.known_config == {"block_m": 16, "block_n": 32, "block_k": 128, "split_k": 1}
    assert first.config["num_warps"] is None


def test_rows_follow_from_concurrency_and_top_k() -> None:
    assert {p.m for p in read_sweep(SEED, top_k=4).points} == {4, 8, 12, 16, 20, 24, 28, 32}


def test_a_log_in_other_units_with_more_parameters(tmp_path: Path) -> None:
    text = "m=8 bm=16 bn=32 bk=64 nw=4 ns=3 waves=2 median=12.5 us samples=[12.0, 12.5, 13.0]\n"
    (point,) = read(tmp_path, text).points
    assert point.m == 8
    assert point.samples_ms == pytest.approx((0.012, 0.0125, 0.013))
    assert point.known_config == {
        "block_m": 16,
        "block_n": 32,
        "block_k": 64,
        "num_warps": 4,
        "num_stages": 3,
        "waves": 2,
    }


def test_lines_that_cannot_be_read_are_counted_with_the_first_place(tmp_path: Path) -> None:
    good = "conc=1 bm=16 bn=32 bk=128 sk=1 median=10.0 ms samples=[10.0]"
    lines = [
        "$ python sweep.py",
        good,
        "Traceback (most recent call last)",
        "conc=2 bm=16 bn=32 bk=128 sk=1 median=10.0 ms samples=[10.",
        "conc=x bm=16 bn=32 bk=128 sk=1 median=10.0 ms samples=[10.0]",
        good,
        "conc=1 bm=32 bn=32 bk=128 sk=1 median=nan ms samples=[nan, 11.0]",
        "conc=1 bm=64 bn=32 bk=128 sk=1 median=nan ms samples=[nan]",
        "conc=1 bm=16 bn=64 bk=128 sk=1 FAILED: out of shared memory",
        good.replace("[10.0]", "[10.5]"),
        "BEST 1 {'bm': 16}",
    ]
    sweep = read(tmp_path, "\n".join(lines))
    assert counts(sweep) == {
        "malformed_points": 3,
        "unusable_samples": 2,
        "repeated_points": 1,
        "pooled_points": 1,
        "inconsistent_median": 1,
    }
    assert next(w.line for w in sweep.warnings if w.code == "malformed_points") == 3
    by_tile = {(p.config["block_m"], p.config["block_n"]): p for p in sweep.points}
    assert by_tile[16, 32].samples_ms == (10.0, 10.5)
    assert by_tile[32, 32].samples_ms == (11.0,)
    assert by_tile[64, 32].samples_ms == ()
    assert by_tile[64, 32].reason is not None
    assert "out of shared memory" in str(by_tile[16, 64].reason)


def test_tritons_autotuning_results(tmp_path: Path) -> None:
    timings = [
        [{"kwargs": {"BLOCK_M": 16, "GROUP_M": 8}, "num_warps": 4, "num_stages": 3, "maxnreg": None}, [0.5, 0.4, 0.6]],
        [{"kwargs": {"BLOCK_M": 32, "GROUP_SIZE_M": 8}, "num_warps": 8, "num_stages": 3}, [float("inf")] * 3],
        [{"kwargs": {"BLOCK_M": 64, "BLOCK_N": 64}, "num_warps": 8, "num_stages": 2}, 0.25],
        ["broken"],
    ]  # fmt: skip
    text = json.dumps({"key": [128, 4096, "torch.bfloat16"], "configs_timings": timings})
    sweep = read(tmp_path, text, "_my_kernel.autotune.json")
    assert sweep.format == "triton-autotune"
    assert [p.samples_ms for p in sweep.points] == [(0.5,), (), (0.25,)]
    assert sweep.points[0].config == {"block_m": 16, "group_m": 8, "num_warps": 4, "num_stages": 3}
    assert sweep.points[0].kernel == "_my_kernel"
    assert sweep.points[0].shape == {"key_0": 128, "key_1": 4096, "key_2": "torch.bfloat16"}
    assert "could not run" in str(sweep.points[1].reason)
    assert counts(sweep) == {"malformed_points": 1}


def test_a_vllm_moe_file_is_configurations_without_timings() -> None:
    (path,) = (CASES / "510_moe_cfg").glob("E=*.json")
    sweep = read_sweep(path, top_k=8)
    assert [p.concurrency for p in sweep.points] == [1, 2, 4, 8, 16, 64, 256, 1024]
    assert [p.m for p in sweep.points][:3] == [8, 16, 32]
    point = sweep.points[0]
    assert (point.samples_ms, point.measured, point.versions) == ((), False, {"triton": "3.4.0"})
    assert point.shape == {"experts": 128, "n": 384, "dtype": "fp8_w8a8", "block_shape": "128,128", "top_k": 8}
    assert point.device == {"name": "NVIDIA H100 80GB HBM3"}
    assert point.config["block_k"] == 128
    assert counts(read_sweep(path)) == {"rows_are_tokens": 1}


def test_aiters_dense_table(tmp_path: Path) -> None:
    text = (
        "gfx,cu_num,M,N,K,kernelId,splitK,us,kernelName,tflops,bw,errRatio\n"
        "gfx942,304,16,1280,8192,42,0,10.0,some_kernel,1,1,0.0\n"
        "gfx942,304,16,1280,8192,43,0,nan,other_kernel,1,1,0.0\n"
        "gfx942,304,x,1280,8192,43,0,12,other_kernel,1,1,0.0\n"
        "gfx942,304,16\n"
    )
    sweep = read(tmp_path, text, "a8w8_tuned_gemm.csv")
    assert sweep.format == "aiter"
    first, second = sweep.points
    assert (first.m, first.median_ms, first.device["target"]) == (16, pytest.approx(0.01), "gfx942")
    assert first.config == {"kernelId": 42, "splitK": 0, "kernelName": "some_kernel"}
    assert second.reason is not None
    assert counts(sweep) == {"unusable_samples": 1, "malformed_points": 2}


def test_aiters_moe_table_counts_rows(tmp_path: Path) -> None:
    text = (
        "cu_num,token,model_dim,inter_dim,expert,topk,act_type,dtype,q_dtype_a,q_dtype_w,q_type,use_g1u1,"
        "doweight_stage1,block_m,ksplit,us1,kernelName1,err1,us2,kernelName2,err2,us,run_1stage,tflops,bw\n"
        "304,16,7168,256,256,8,Silu,bf16,fp8,fp8,per_Token,1,0,64,0,20,a,0,22,b,0,42.0,0,1,1\n"
    )
    (point,) = read(tmp_path, text).points
    assert (point.m, point.concurrency, point.median_ms) == (128, 16, pytest.approx(0.042))
    assert point.config["block_m"] == 64
    assert point.shape["experts"] == 256


def test_an_inductor_table(tmp_path: Path) -> None:
    text = (
        "source,gpu,dtype,M,N,K,bm,bn,bk,stages,warps,group_m,ms\ndocs,H100,bf16,8,3072,2048,16,32,128,5,2,8,0.0130\n"
    )
    (point,) = read(tmp_path, text).points
    assert (point.m, point.median_ms) == (8, pytest.approx(0.013))
    assert point.config == {"block_m": 16, "block_n": 32, "block_k": 128, "group_m": 8, "num_warps": 2, "num_stages": 5}


CACHE = {
    "device_name": "Some GPU",
    "kernel_name": "conv",
    "problem_size": [4096, 4096],
    "tune_params_keys": ["bx", "by"],
    "tune_params": {"bx": [16, 32], "by": [1, 2]},
    "objective": "time",
    "cache": {
        "16,1": {"bx": 16, "by": 1, "time": 2.0, "times": [1.9, 2.0, 2.1], "GFLOP/s": 3.0},
        "16,2": {"bx": 16, "by": 2, "time": "CompilationFailedConfig", "times": []},
        "32,1": {"bx": 32, "by": 1, "time": 1e20},
        "32,2": {"bx": 32, "by": 2, "time": 1.5},
    },
}


def assert_cache(sweep: Sweep) -> None:
    assert sweep.format == "kernel-tuner"
    assert [p.samples_ms for p in sweep.points] == [(1.9, 2.0, 2.1), (), (), (1.5,)]
    assert sweep.points[0].config == {"bx": 16, "by": 1}
    assert sweep.points[1].reason == "CompilationFailedConfig"
    assert sweep.points[2].reason is not None


def test_a_kernel_tuner_cache_plain_or_compressed(tmp_path: Path) -> None:
    assert_cache(read(tmp_path, json.dumps(CACHE)))
    assert_cache(read(tmp_path, gzip.compress(json.dumps(CACHE).encode()), "cache.json.gz"))


@pytest.mark.parametrize("cut", ["}}", "}}\n", "comma", "torn entry"])
def test_a_cache_that_was_left_open_is_read(tmp_path: Path, cut: str) -> None:
    text = json.dumps(CACHE, indent=0)
    body = text[: text.rstrip().rfind("}", 0, text.rstrip().rfind("}"))].rstrip()
    endings = {"comma": body + ",", "torn entry": body + ',\n"64,1": {"bx": 64, "b'}
    sweep = read(tmp_path, endings.get(cut, body))
    assert_cache(sweep)
    assert counts(sweep) == {"unfinished_file": 1}


def test_kernel_tuner_results(tmp_path: Path) -> None:
    def entry(**changes: Any) -> dict[str, Any]:
        base = {"configuration": {"bx": 1}, "invalidity": "correct", "times": {"runtimes": [1.0, 2.0, 3.0]}}
        return {**base, "measurements": [{"name": "time", "value": 2.0, "unit": "ms"}], **changes}

    entries = [
        entry(),
        entry(configuration={"bx": 2}, invalidity="compile", measurements=[]),
        entry(configuration={"bx": 3}, times={}, measurements=[{"name": "time", "value": 2.0, "unit": "s"}]),
        entry(configuration={"bx": 4}, times={}, measurements=[{"name": "score", "value": 2.0}]),
        {"nothing": 1},
    ]
    sweep = read(tmp_path, json.dumps({"results": entries, "schema_version": "1.0.0"}))
    assert [p.samples_ms for p in sweep.points] == [(1.0, 2.0, 3.0), (), (2000.0,)]
    assert sweep.points[1].reason == "compile"
    assert counts(sweep) == {"malformed_points": 2}


def test_the_recorded_hub_sweep(shared: Path) -> None:
    sweep = read_sweep(shared / "data" / "tuner" / "clblast_gemm_rtx3090.json.gz")
    assert (len(sweep.points), sweep.warnings) == (17956, ())
    assert {len(p.samples_ms) for p in sweep.points} == {32}


@pytest.mark.parametrize("source", [SEED, *(CASES / "510_moe_cfg").glob("E=*.json")], ids=["log", "vllm"])
def test_every_format_becomes_a_sweep_file_and_comes_back_the_same(tmp_path: Path, source: Path) -> None:
    sweep = read_sweep(source, top_k=4)
    write_sweep(tmp_path / "sweep.jsonl", sweep.points)
    again = read_sweep(tmp_path / "sweep.jsonl")
    assert again.format == "traceanalyzer"
    assert again.points == sweep.points


def test_pooled_rounds_survive_the_way_through_a_file(tmp_path: Path) -> None:
    line = "conc=1 bm=16 bn=32 bk=128 sk=1 median=10.0 ms samples=[10.0]"
    sweep = read(tmp_path, line + "\n" + line.replace("10.0]", "10.2]"))
    write_sweep(tmp_path / "sweep.jsonl", sweep.points)
    assert read_sweep(tmp_path / "sweep.jsonl").points[0].samples_ms == (10.0, 10.2)


def test_torn_and_foreign_lines_of_a_sweep_file_are_counted(tmp_path: Path) -> None:
    write_sweep(tmp_path / "a", read_sweep(SEED, 4).points[:3])
    text = (tmp_path / "a").read_text()
    nan = text.splitlines()[0].replace("10.100704000000007", "NaN")
    sweep = read(tmp_path, text + nan + "\n" + '{"not": "a point"}\n' + text[:50])
    assert len(sweep.points) == 3
    assert sum(w.count or 0 for w in sweep.warnings) == 3


def test_a_sweep_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="traceanalyzer/sweep/9"):
        read(tmp_path, '{"schema": "traceanalyzer/sweep/9", "shape": {}, "config": {}}')


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\x1f\x8b broken", "cannot be read"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"hello world\n", "not a sweep of a known kind"),
        (b'{"traceEvents": []}', "not a sweep of a known kind"),
        (b"[1, 2, 3]", "not a sweep of a known kind"),
        (b'{"configs_timings": []}', "no usable measurement"),
        (b'{"configs_timings": 7}', "not a list"),
        (b'{"cache": 3, "tune_params_keys": []}', "not an object"),
        (b"M,N,K,bm,bn,bk,ms\n1,2\n", "no usable measurement"),
        (b"conc=0 bm=1 bn=1 bk=1 median=1 ms samples=[1.0]", "no usable measurement"),
    ],
)
def test_what_is_no_sweep_is_refused_with_a_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        read(tmp_path, data)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read_sweep(tmp_path / "nothing")


def test_a_format_can_be_named(tmp_path: Path) -> None:
    assert len(set(NAMES)) == len(NAMES)
    text = "M,N,K,bm,bn,bk,ms\n8,64,64,16,16,16,1.0\n"
    assert read(tmp_path, text, format_name="inductor-csv").format == "inductor-csv"
    with pytest.raises(TraceError, match="no usable measurement"):
        read(tmp_path, text, format_name="log")


@pytest.mark.parametrize(
    "change",
    [
        {"shape": {"m": 0}},
        {"shape": {"m": "4"}},
        {"shape": {"m": 4, "n": [1]}},
        {"config": {"block_m": {}}},
        {"concurrency": -1},
        {"device": "GPU"},
        {"samples_ms": [1.0, -1.0]},
        {"samples_ms": "fast"},
        {"samples_ms": []},
    ],
)
def test_a_line_with_impossible_values_is_counted(tmp_path: Path, change: dict[str, Any]) -> None:
    write_sweep(tmp_path / "a", read_sweep(SEED, 4).points[:1])
    good = (tmp_path / "a").read_text()
    sweep = read(tmp_path, good + json.dumps({**json.loads(good), **change}) + "\n")
    assert len(sweep.points) == 1
    assert [w.count for w in sweep.warnings] == [1]


def sources() -> list[bytes]:
    moe = next((CASES / "510_moe_cfg").glob("E=*.json")).read_bytes()
    inductor = b"M,N,K,bm,bn,bk,ms\n8,64,64,16,16,16,1.0\n8,64,64,32,16,16,1.5\n"
    table = b"cu_num,M,N,K,kernelId,splitK,us,kernelName\n304,16,64,64,1,0,3.0,a\n"
    triton = b'{"key": [1], "configs_timings": [[{"kwargs": {"BLOCK_M": 16}, "num_warps": 4}, [0.5, 0.4, 0.6]]]}'
    return [SEED.read_bytes()[:900], moe, inductor, table, triton, json.dumps(CACHE).encode()]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_are_read_in_part_or_refused_never_crash(tmp_path: Path, data: st.DataObject) -> None:
    source = bytearray(data.draw(st.sampled_from(sources())))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(source) - 1))
        length = data.draw(st.integers(0, 12))
        source[place : place + length] = data.draw(
            st.sampled_from([b"", b"nan", b"-1", b"[", b'"', b"{}", b"1e999", b"\n", b",", b"null"])
        )
        if not source:
            break
    path = tmp_path / "damaged"
    path.write_bytes(bytes(source))
    with suppress(TraceError):
        sweep = read_sweep(path)
        write_sweep(tmp_path / "again", sweep.points)
        make_policy(sweep)
