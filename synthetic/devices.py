"""GPUs that synthetic traces can claim to come from, as the profiler shows them."""

from __future__ import annotations

from synthetic.spec import DeviceSpec, Vendor

H100_SXM = DeviceSpec(
    name="NVIDIA H100 80GB HBM3",
    total_global_mem=85_045_084_160,
    compute_major=9,
    compute_minor=0,
    num_sms=132,
)
MI300X = DeviceSpec(
    name="",
    total_global_mem=206_141_652_992,
    compute_major=9,
    compute_minor=4,
    num_sms=304,
    warp_size=64,
    shared_mem_per_block=65536,
    shared_mem_per_multiprocessor=65536,
)
# HIP counts work-group processors on RDNA: 20 of them hold the 40 compute units of a Radeon 8060S. The memory
# is what the driver lets the GPU address of 128 GB shared with the CPU, here 96 GiB.
STRIX_HALO = DeviceSpec(
    name="Radeon 8060S Graphics",
    total_global_mem=103_079_215_104,
    compute_major=11,
    compute_minor=5,
    num_sms=20,
    warp_size=32,
    shared_mem_per_block=65536,
    shared_mem_per_multiprocessor=65536,
)


def default_device(vendor: Vendor) -> DeviceSpec:
    """The device of a trace that names none."""
    return H100_SXM if vendor == "cuda" else MI300X
