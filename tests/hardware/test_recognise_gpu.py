"""The GPU of a trace, by its name or by its size."""

from __future__ import annotations

from typing import Any

import pytest

from traceanalyzer.hardware import known_gpus, recognise

MI300X = {"id": 2, "name": "", "totalGlobalMem": 206141652992, "computeMajor": 9, "computeMinor": 4,
          "warpSize": 64, "numSms": 304}  # fmt: skip
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85045084160, "computeMajor": 9,
        "computeMinor": 0, "warpSize": 32, "numSms": 132}  # fmt: skip


def test_a_device_without_a_name_is_told_by_its_size() -> None:
    found = recognise([MI300X], 2)
    assert (found.name, found.source) == ("MI300X", "fingerprint")


@pytest.mark.parametrize("name", ["AMD Radeon Graphics", "AMD Instinct", " "])
def test_a_generic_name_is_as_good_as_none(name: str) -> None:
    assert recognise([{**MI300X, "name": name}], 2).gpu is not None


def test_a_name_that_drivers_write_is_found() -> None:
    found = recognise([H100], 0)
    assert found.source == "trace"
    assert found.gpu is not None
    assert found.gpu.name == "H100 SXM5"


def test_a_longer_name_counts_only_if_the_size_agrees() -> None:
    virtual = recognise([{**MI300X, "name": "AMD Instinct MI300X VF"}], 2)
    assert virtual.gpu is not None
    assert virtual.name == "AMD Instinct MI300X VF"
    part = {**MI300X, "name": "AMD Instinct MI300X VF", "numSms": 38, "totalGlobalMem": 25_000_000_000}
    assert recognise([part], 2).gpu is None


def test_a_slice_of_a_gpu_is_not_taken_for_the_whole() -> None:
    assert recognise([{**H100, "name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "numSms": 60}], 0).gpu is None


def test_gpus_that_differ_in_memory_only_are_told_apart() -> None:
    found = recognise([{**MI300X, "totalGlobalMem": 274_000_000_000}], 2)
    assert found.name == "MI325X"


def test_work_group_processors_of_rdna_count_double() -> None:
    properties = {"id": 0, "name": "AMD Radeon Graphics", "totalGlobalMem": 137_000_000_000, "computeMajor": 11,
                  "computeMinor": 5, "warpSize": 32, "numSms": 20}  # fmt: skip
    found = recognise([properties], 0).gpu
    assert found is not None
    assert found.target == "gfx1151"


def test_one_gcd_of_an_mi250x_is_what_a_trace_shows() -> None:
    properties = {**MI300X, "name": "AMD Instinct MI250X", "numSms": 110, "totalGlobalMem": 68_702_699_520,
                  "computeMinor": 0}  # fmt: skip
    found = recognise([properties], 2).gpu
    assert found is not None
    assert found.peak_tflops["bf16"] == pytest.approx(383 / 2)


@pytest.mark.parametrize(
    ("properties", "device"),
    [
        ([], 0),
        ([MI300X], None),
        ([{**MI300X, "numSms": 100}], 2),
        ([{**MI300X, "numSms": None, "totalGlobalMem": "big"}], 2),
        ([H100, MI300X], 7),
        (["text"], 0),
    ],
)
def test_what_cannot_be_told_is_left_unknown(properties: list[Any], device: int | None) -> None:
    assert recognise(properties, device).gpu is None


def test_every_gpu_is_recognised_by_its_driver_names() -> None:
    for gpu in known_gpus():
        for name in gpu.device_names:
            assert recognise([{"id": 0, "name": name}], 0).gpu == gpu
