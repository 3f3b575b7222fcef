"""What communication kernels are, by name and by argument."""

from __future__ import annotations

import pytest

from traceanalyzer.names.collectives import bus_factor, collective, dtype_bytes

NAMES = {
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_reduce",
    "ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)": "all_reduce",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "all_gather",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce_scatter",
    "ncclDevKernel_Reduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "reduce",
    "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "broadcast",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)": "send_recv",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)": "unknown",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 4>(vllm::RankData*, vllm::RankSignals)": "all_reduce",
    "_ZN4vllm26cross_device_reduce_1stageI14__hip_bfloat16Li2EEEvPNS_8RankDataE": "all_reduce",
    "multimem_all_reduce_kernel<c10::BFloat16>": "all_reduce",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0, 8>()": "all_reduce",
    "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*)": "dispatch",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int4*)": "combine",
    "void deep_ep::intranode::notify_dispatch<8>(int const*)": "barrier",
    "mscclpp::allreduce": "all_reduce",
    "_C::shm_allreduce": "all_reduce",
    "gloo:all_reduce": "all_reduce",
    "gloo:all_gather": "all_gather",
    "c10d::_allgather_base_": "all_gather",
}


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_names_tell_the_collective(name: str, kind: str) -> None:
    found = collective(name)
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("name", ["nvjet_sm90_tst_64x8_64x16_1x1_v_bz_TNT", "void reduce_kernel<512>()", "aten::add"])
def test_other_kernels_are_no_collectives(name: str) -> None:
    assert collective(name) is None


@pytest.mark.parametrize(
    ("stated", "kind", "direction"),
    [("all_to_allv", "all_to_all", None), ("send", "send_recv", "send"), ("_allgather_base", "all_gather", None)],
)
def test_a_stated_collective_is_believed_before_the_name(stated: str, kind: str, direction: str | None) -> None:
    found = collective("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", stated)
    assert found is not None
    assert (found.kind, found.direction) == (kind, direction)


def test_bus_factors_are_those_of_the_ring() -> None:
    assert bus_factor("all_reduce", 4) == pytest.approx(1.5)
    assert bus_factor("all_gather", 4) == pytest.approx(0.75)
    assert bus_factor("send_recv", 2) == 1.0
    assert bus_factor("all_reduce", 1) is None
    assert bus_factor("unknown", 4) is None


def test_sizes_of_types() -> None:
    assert dtype_bytes("BFloat16") == 2
    assert dtype_bytes("c10::BFloat16") == 2
    assert dtype_bytes("Float8_e4m3fn") == 1
    assert dtype_bytes("Mystery") is None
