"""Reading machine code: registers, spills, instructions of the main loop."""

from __future__ import annotations

import pytest

from traceanalyzer.hardware.assembly import amd_kind, read_amdgcn, read_sass, sass_kind
from traceanalyzer.hardware.cubin import CubinKernel

AMDGCN = """
moe_kernel:
; %bb.0:
	s_load_b64 s[0:1], s[2:3], 0x0
	v_mov_b32_e32 v0, 0
	s_cbranch_scc0 .LBB0_9
.LBB0_1:                                ; a short loop without matrix instructions
	v_add_nc_u32_e32 v1, 1, v1
	s_cbranch_scc1 .LBB0_1
.LBB0_2:                                ; outer
	v_mul_f32_e32 v2, v2, v2
.LBB0_3:                                ; the main loop
	global_load_b128 v[0:3], v4, s[0:1]
	ds_load_b128 v[5:8], v9
	scratch_load_b32 v10, off, off offset:4
	v_lshlrev_b32_e32 v1, 4, v1
	v_perm_b32 v1, v2, v3, s4
	v_wmma_f32_16x16x16_bf16 v[0:7], v[8:15], v[16:23], v[0:7]
	s_add_i32 s4, s4, 1
	s_cbranch_scc1 .LBB0_3
; %bb.4:
	s_cbranch_vccnz .LBB0_2
.LBB0_9:
	scratch_store_b32 off, v10, off
	s_endpgm
	.amdhsa_next_free_vgpr 128
amdhsa.kernels:
  - .args:
      - .offset:         0
    .group_segment_fixed_size: 8192
    .private_segment_fixed_size: 216
    .sgpr_spill_count: 3
    .vgpr_count:     128
    .vgpr_spill_count: 53
"""

KERNEL = CubinKernel("moe_kernel", registers=96, stack_bytes=64, shared_bytes=1024)

SASS = """
        /*0000*/                   LDC R1, c[0x0][0x37c] ;                  /* 0x0000df00ff017b82 */
        /*0010*/                   IMAD.MOV.U32 R2, RZ, RZ, R1 ;
        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0030*/                   HMMA.16816.F32.BF16 R8, R4, R6, R8 ;
        /*0040*/                   LDL R3, [R1+0x10] ;
        /*0050*/                   LDSM.16.M88.4 R12, [R3] ;
        /*0060*/              @!P0 IADD3 R2, R2, 0x1, RZ ;
        /*0070*/               @P1 BRA 0x20 ;
        /*0080*/                   STL [R1+0x10], R3 ;
        /*0090*/                   STG.E.128 desc[UR4][R2.64], R8 ;
        /*00a0*/                   EXIT ;
        /*00b0*/                   BRA 0xb0;
"""


def test_amd_code_gives_registers_spills_and_the_loop_with_the_matrix_instructions() -> None:
    found = read_amdgcn(AMDGCN)
    assert (found.registers, found.spills, found.scratch_bytes, found.shared_bytes) == (128, 53, 216, 8192)
    assert (found.loop.matrix, found.loop.vector, found.loop.scalar) == (1, 2, 2)
    assert (found.loop.memory, found.loop.shared, found.loop.scratch) == (1, 1, 1)
    assert found.whole.scratch == 2
    assert found.whole.vector == 5


def test_nvidia_code_gives_registers_stack_as_spills_and_the_loop() -> None:
    found = read_sass(KERNEL, SASS)
    assert (found.registers, found.spills, found.scratch_bytes, found.shared_bytes) == (96, 16, 64, 1024)
    assert (found.loop.matrix, found.loop.vector, found.loop.memory) == (1, 1, 1)
    assert (found.loop.shared, found.loop.scratch) == (1, 1)
    assert found.whole.memory == 2
    assert found.whole.scratch == 2


def test_code_without_a_matrix_instruction_has_its_longest_loop() -> None:
    text = SASS.replace("HMMA.16816.F32.BF16", "FFMA")
    assert read_sass(KERNEL, text).loop.vector == 2


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="vgpr_count"):
        read_amdgcn("; nothing")


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("v_mfma_f32_16x16x16_bf16", "matrix"),
        ("v_swmmac_f32_16x16x32_f16", "matrix"), ("buffer_load_dwordx4", "memory"),
        ("scratch_load_b32", "scratch"),
        ("ds_store_b128", "shared"), ("s_waitcnt", "scalar"), ("v_cndmask_b32", "vector"),
    ],
)  # fmt: skip
def test_amd_instructions_are_told_apart(opcode: str, kind: str) -> None:
    assert amd_kind(opcode) == kind


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("HGMMA.64x64x16.F32", "matrix"),
        ("UTCHMMA", "matrix"), ("QMMA.16832", "matrix"), ("LDGSTS.E.BYPASS", "memory"),
        ("UTMALDG.2D", "memory"),
        ("LDC.64", "scalar"), ("ULDC", "scalar"), ("LDGDEPBAR", "scalar"), ("BAR.SYNC", "scalar"),
        ("LDS.128", "shared"), ("PRMT", "vector"), ("I2F", "vector"),
    ],
)  # fmt: skip
def test_nvidia_instructions_are_told_apart(opcode: str, kind: str) -> None:
    assert sass_kind(opcode) == kind
