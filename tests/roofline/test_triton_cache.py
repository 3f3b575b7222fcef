from __future__ import annotations

import json

import polars as pl
import pytest

from traceanalyzer.commands.hotspots.compute import hotspots
from traceanalyzer.problems import TraceError
from traceanalyzer.roofline.triton_cache import compiled_kernels, match, read_triton_cache, spill_findings
from traceanalyzer.trace import open_traces

TTIR = (
    "%acc = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<{m}x{k}xf16> * tensor<{k}x{n}xf16> -> tensor<{m}x{n}xf32>"
)
AMDGCN = "  .vgpr_count:     {registers}\n    .vgpr_spill_count: {spills}\n    .private_segment_fixed_size: {scratch}\n"


def add_variant(folder, name, *, warps=4, shared=8192, tile=(64, 32, 64), spills=0, arch="gfx942"):
    home = folder / f"H{len(list(folder.iterdir()))}"
    home.mkdir()
    target = {"backend": "hip", "arch": arch, "warp_size": 64}
    facts = {"name": name, "num_warps": warps, "num_stages": 2, "shared": shared, "target": target, "warp_size": 64}
    (home / f"{name}.json").write_text(json.dumps(facts))
    m, n, k = tile
    (home / f"{name}.ttir").write_text(TTIR.format(m=m, n=n, k=k))
    (home / f"{name}.amdgcn").write_text(AMDGCN.format(registers=92, spills=spills, scratch=4 * spills))
    (home / f"__grp__{name}.json").write_text("{}")


def kernels(name, block="[256, 1, 1]", shared=None):
    schema = {"name": pl.String, "thread_block": pl.String, "shared_memory": pl.Int64}
    return pl.DataFrame([(name, block, shared)], schema=schema, orient="row")


def test_tile_warps_registers_and_spills_are_read(tmp_path) -> None:
    add_variant(tmp_path, "_my_kernel", spills=12)
    (found,) = read_triton_cache(tmp_path, ["_my_kernel"])
    assert (found.block_m, found.block_n, found.block_k) == (64, 32, 64)
    assert (found.num_warps, found.num_stages, found.shared_bytes) == (4, 2, 8192)
    assert (found.registers, found.spills, found.target) == (92, 12, "gfx942")


def test_the_variant_with_the_events_threads_is_taken(tmp_path) -> None:
    add_variant(tmp_path, "_my_kernel", warps=2, tile=(16, 32, 64))
    add_variant(tmp_path, "_my_kernel", warps=8, tile=(64, 64, 64))
    found = match(kernels("_my_kernel", block="[512, 1, 1]"), read_triton_cache(tmp_path, ["_my_kernel"]))
    assert (found["_my_kernel"].num_warps, found["_my_kernel"].block_m) == (8, 64)


def test_variants_that_cannot_be_told_apart_agree_or_are_unknown(tmp_path) -> None:
    add_variant(tmp_path, "_my_kernel", tile=(16, 32, 64))
    add_variant(tmp_path, "_my_kernel", tile=(64, 32, 64))
    found = match(kernels("_my_kernel", block=None), read_triton_cache(tmp_path, ["_my_kernel"]))
    assert (found["_my_kernel"].block_m, found["_my_kernel"].block_n) == (None, 32)


def test_kernels_of_the_trace_are_joined_by_name(tmp_path, shared) -> None:
    trace = open_traces(shared / "traces/gpu/gptoss20b_vllm_decode_mi300x.json.gz", cache=False).traces[0]
    add_variant(tmp_path, "kernel_unified_attention_3d", spills=40)
    add_variant(tmp_path, "_not_in_the_trace")
    found = compiled_kernels(trace, tmp_path)
    assert set(found) == {"kernel_unified_attention_3d"}
    (finding,) = spill_findings(hotspots(trace).rows, found)
    assert "spills 40 registers" in finding.message


def test_a_folder_that_is_not_a_cache_is_refused(tmp_path) -> None:
    with pytest.raises(TraceError, match="no compiled Triton kernel"):
        read_triton_cache(tmp_path, ["x"])
    with pytest.raises(TraceError, match="not a directory"):
        read_triton_cache(tmp_path / "absent", ["x"])


def test_damaged_metadata_is_passed_over(tmp_path) -> None:
    add_variant(tmp_path, "_my_kernel")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.json").write_text("{not json")
    (tmp_path / "bad" / "y.json").write_text("[" * 5000)
    (tmp_path / "bad" / "folder.json").mkdir()
    (tmp_path / "bad" / "dangling.json").symlink_to(tmp_path / "gone")
    assert len(read_triton_cache(tmp_path, ["_my_kernel"])) == 1


@pytest.mark.parametrize("block", ["[]", "7", "[null, 1, 1]", "no JSON"])
def test_a_block_that_is_none_rules_no_variant_out(tmp_path, block: str) -> None:
    add_variant(tmp_path, "_my_kernel")
    assert match(kernels("_my_kernel", block=block), read_triton_cache(tmp_path, ["_my_kernel"]))
