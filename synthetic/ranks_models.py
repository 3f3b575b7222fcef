"""The part of a model that one rank of a job runs: its stage's blocks, with the collectives between them."""

from __future__ import annotations

from dataclasses import replace

from synthetic import catalogue as k
from synthetic.models import FIRST_NORM, LLAMA_8B, Shape, attention_part, dense_block, epilogue, prologue, resized
from synthetic.ranks_spec import CollectiveKind, JobSpec
from synthetic.spec import BlockSpec, KernelSpec, ModelSpec
from synthetic.variety import COMBINE, DISPATCH, MOE_ALIGN, MOE_SUM, MOE_TOPK

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
NCCL_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

KIND_OF_OP: dict[str, CollectiveKind] = {
    "c10d::allreduce_": "all_reduce",
    "c10d::send": "send_recv",
    "c10d::recv_": "send_recv",
    "deep_ep::dispatch": "dispatch",
    "deep_ep::combine": "combine",
}
"""What the collectives of these models are, by the op that a `KernelSpec` names."""


def model_of(job: JobSpec, rank: int) -> ModelSpec:
    """The kernels that a rank runs in a step."""
    gpu, shape = k.H100, resized(LLAMA_8B, job.batch, 1024)
    stage = job.place(rank)["pp"]
    last = stage == job.pp - 1
    before = prologue(gpu, shape) if stage == 0 else (_transfer(job, "c10d::recv_"),)
    after = epilogue(gpu, shape) if last else (_transfer(job, "c10d::send"),)
    block = BlockSpec("moe", _moe_block(job, gpu, shape)) if job.expert_parallel else _dense(job, gpu, shape)
    return ModelSpec(
        name=f"job-{job.layers}-layers-stage-{stage}",
        layers=(block,) * job.layers_of(stage),
        prologue=before,
        epilogue=after,
        first_block_names=FIRST_NORM if stage == 0 else (),
    )


def _dense(job: JobSpec, gpu: k.Gpu, shape: Shape) -> BlockSpec:
    reduce = _all_reduce(job, gpu)
    kernels = [reduce if kernel.role == "communication" else kernel for kernel in dense_block(gpu, shape, job.tp)]
    return BlockSpec("dense", tuple(kernels))


def _moe_block(job: JobSpec, gpu: k.Gpu, shape: Shape) -> tuple[KernelSpec, ...]:
    reduce = (_all_reduce(job, gpu),) if job.tp > 1 else ()
    return (
        *attention_part(gpu, shape, split=False, tensor_parallel=job.tp),
        *reduce,
        k.small(gpu, k.ADD_NORM, "norm"),
        k.gemm(gpu, "router", 256, shape.hidden, job.batch, (64, 8, 64)),
        k.small(gpu, MOE_TOPK, "moe_routing"),
        k.small(gpu, MOE_ALIGN, "moe_routing"),
        _exchange(job, "deep_ep::dispatch"),
        KernelSpec("fused_moe_kernel", "moe_gate_up", 62.0, grid=(2048, 1, 1), block=(256, 1, 1)),
        k.small(gpu, k.ACTIVATION, "activation"),
        KernelSpec("fused_moe_kernel", "moe_down", 34.0, grid=(1024, 1, 1), block=(256, 1, 1)),
        _exchange(job, "deep_ep::combine"),
        k.small(gpu, MOE_SUM, "moe_combine"),
    )


def _all_reduce(job: JobSpec, gpu: k.Gpu) -> KernelSpec:
    """vLLM's own kernel, or NCCL's where the profile is to carry process groups."""
    name = NCCL_ALL_REDUCE if job.states_groups else k.ALL_REDUCE[gpu.vendor]
    return _collective(name, "c10d::allreduce_", job.transfer("all_reduce"))


def _exchange(job: JobSpec, op: str) -> KernelSpec:
    name = DISPATCH if op.endswith("dispatch") else COMBINE
    return _collective(name, op, job.transfer(KIND_OF_OP[op]))


def _transfer(job: JobSpec, op: str) -> KernelSpec:
    return replace(_collective(SEND_RECV, op, job.transfer("send_recv")), in_graph=False)


def _collective(name: str, op: str, dur_us: float) -> KernelSpec:
    return KernelSpec(name, "communication", dur_us, grid=(24, 1, 1), block=(512, 1, 1), op=op, jitter=0.0)
