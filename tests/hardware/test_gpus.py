"""The GPU table: complete, dense, sourced; found by name; described by a user; its roofs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.places import FACTS
from traceanalyzer.hardware import HardwareError, find_gpu, known_gpus, read_gpus, roofs
from traceanalyzer.hardware.lookup import words


def test_the_table_holds_every_gpu_of_the_facts_and_their_figures() -> None:
    rows = list(csv.DictReader((FACTS / "hardware.csv").read_text().splitlines()))
    ours = {gpu.name: gpu for gpu in known_gpus()}
    assert len(rows) == 33
    for row in rows:
        gpu = ours[row["name"]]
        assert gpu.bandwidth_gbps == float(row["mem_bw_gbs"]), gpu.name
        assert gpu.memory_gb == float(row["mem_gb"]), gpu.name
        assert gpu.compute_units == int(row["units"]), gpu.name
        for dtype in ("bf16", "fp16", "fp8", "fp4"):
            theirs = row[f"{dtype}_tflops"]
            assert gpu.peak_tflops.get(dtype) == (float(theirs) if theirs else None), (gpu.name, dtype)


def test_every_gpu_has_a_source_a_confidence_and_a_peak() -> None:
    for gpu in known_gpus():
        assert gpu.source
        assert gpu.confidence in ("A", "B", "C")
        assert gpu.peak_tflops
        assert gpu.bandwidth_gbps > 0


def test_peaks_are_dense() -> None:
    # Sparse figures are twice as high: 1,979 for bf16 on H100, 242 on L4.
    assert find_gpu("H100 SXM5").peak_tflops["bf16"] == 989.4
    assert find_gpu("L4").peak_tflops["bf16"] == 121
    assert find_gpu("MI300X").peak_tflops["fp8"] == 2614.9


def test_no_two_gpus_share_a_name() -> None:
    names = [words(name) for gpu in known_gpus() for name in {gpu.name, *gpu.device_names} if name]
    told = [{words(name) for name in (gpu.name, *gpu.device_names)} for gpu in known_gpus()]
    assert sum(len(own) for own in told) == len(set().union(*told))
    assert all(names)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("MI300X", "MI300X"),
        ("mi300x", "MI300X"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("h200", "H200 SXM"),
        ("4090", "RTX 4090"),
        ("nvidia geforce rtx-4090", "RTX 4090"),
        ("8060S", "Radeon 8060S (Ryzen AI Max+ 395)"),
        ("dgx spark", "GB10 (DGX Spark)"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB"),
        ("A100 80GB PCIe", "A100 PCIe 80GB"),
        ("MI250X", "MI250X (one GCD)"),
        ("rtx6000ada", "RTX 6000 Ada"),
    ],
)
def test_names_are_found_however_they_are_written(given: str, found: str) -> None:
    assert find_gpu(given).name == found


def test_a_name_that_fits_several_lists_them() -> None:
    with pytest.raises(HardwareError, match="H100 SXM5, H100 PCIe, H100 NVL"):
        find_gpu("H100")


def test_an_unknown_name_lists_similar_ones() -> None:
    with pytest.raises(HardwareError, match="MI300X"):
        find_gpu("MI301X")


@pytest.mark.parametrize("name", ["", "  ", "NVIDIA", "()"])
def test_a_name_without_content_is_refused(name: str) -> None:
    with pytest.raises(HardwareError, match="needs a name"):
        find_gpu(name)


def test_ridge_of_h100_is_where_the_case_puts_it() -> None:
    found = roofs(find_gpu("H100 SXM5"), "bf16")
    assert found.ridge == pytest.approx(295, abs=1)
    assert found.peak_tflops == 989.4


def test_achievable_is_below_the_peak_and_says_why() -> None:
    for gpu in known_gpus():
        for dtype in gpu.peak_tflops:
            found = roofs(gpu, dtype)
            assert 0 < found.achievable_tflops < found.peak_tflops
            assert 0 < found.achievable_gbps < found.bandwidth_gbps
            assert any("arithmetic" in note for note in found.notes)
            assert any("bandwidth" in note for note in found.notes)


def test_measured_figures_take_precedence_over_defaults() -> None:
    mi300x, mi300a = roofs(find_gpu("MI300X"), "bf16"), roofs(find_gpu("MI300A"), "bf16")
    assert mi300x.achievable_tflops == pytest.approx(668.4)
    assert mi300x.achievable_gbps == 4234
    assert "median" in mi300a.notes[0]
    assert mi300a.achievable_gbps == pytest.approx(0.8 * 5300)


def test_a_gpu_without_a_type_computes_in_another_and_says_so() -> None:
    found = roofs(find_gpu("A100 SXM4 80GB"), "fp8")
    assert (found.computed_in, found.peak_tflops) == ("bf16", 312)
    assert "no fp8" in found.notes[0]
    assert roofs(find_gpu("T4"), "bf16").computed_in == "fp16"
    # Hopper has fp8, but engines widen fp4 weights to the 16-bit activations there.
    assert [roofs(find_gpu(gpu), "fp4").computed_in for gpu in ("H100 SXM5", "MI300X", "MI355X")] == [
        "bf16",
        "bf16",
        "fp4",
    ]


def test_an_unknown_type_is_refused_by_its_name() -> None:
    with pytest.raises(HardwareError, match="fp3"):
        roofs(find_gpu("T4"), "fp3")


def described(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gpus.toml"
    file.write_text(text)
    return file


def test_a_user_can_describe_a_gpu_and_alter_a_known_one(tmp_path: Path) -> None:
    file = described(
        tmp_path,
        """
        [[gpu]]
        name = "Mine"
        bandwidth_gbps = 1000
        peak_tflops = { bf16 = 100, fp8 = 200.5 }
        device_names = ["Mine 32GB"]

        [[gpu]]
        name = "MI300X"
        like = "MI300X"
        bandwidth_gbps = 4000
        peak_tflops = { bf16 = 1000 }
        """,
    )
    mine, altered = read_gpus(file)
    assert (mine.bandwidth_gbps, mine.peak_tflops, mine.compute_units) == (1000, {"bf16": 100, "fp8": 200.5}, None)
    assert (altered.bandwidth_gbps, altered.peak_tflops["bf16"], altered.peak_tflops["fp8"]) == (4000, 1000, 2614.9)
    assert altered.compute_units == 304
    assert roofs(altered, "bf16").achievable_gbps < 4000
    assert "gpus.toml" in altered.source
    assert find_gpu("mine", (mine, altered, *known_gpus())).confidence == "user"
    assert find_gpu("MI300X", (mine, altered, *known_gpus())).bandwidth_gbps == 4000


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"\[\[gpu\]\]"),
        ("gpu = 3", r"\[\[gpu\]\]"),
        ("[[gpu", "TOML"),
        ("[[gpu]]\nbandwidth_gbps = 1", "name"),
        ('[[gpu]]\nname = "x"\npeak_tflops = { bf16 = 1 }', "bandwidth_gbps"),
        ('[[gpu]]\nname = "x"\nbandwidth_gbps = 1', "peak_tflops"),
        ('[[gpu]]\nname = "x"\nbandwidth_gbps = 0\npeak_tflops = { bf16 = 1 }', "bandwidth_gbps"),
        ('[[gpu]]\nname = "x"\nbandwidth_gbps = inf\npeak_tflops = { bf16 = 1 }', "bandwidth_gbps"),
        ('[[gpu]]\nname = "x"\nbandwidth_gbps = 1\npeak_tflops = { bf15 = 1 }', "bf15"),
        ('[[gpu]]\nname = "x"\nbandwidth_gbps = "1"\npeak_tflops = { bf16 = 1 }', "bandwidth_gbps"),
        ('[[gpu]]\nname = "x"\nlike = "H100"', "several"),
        ('[[gpu]]\nname = "x"\nlike = "MI300X"\nspeed = 1', "speed"),
    ],
)
def test_a_file_that_describes_no_gpu_is_refused_with_the_reason(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(HardwareError, match=complaint) as raised:
        read_gpus(described(tmp_path, text))
    assert "gpus.toml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match=r"none\.toml"):
        read_gpus(tmp_path / "none.toml")
