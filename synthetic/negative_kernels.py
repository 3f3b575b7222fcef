"""Kernel names of models that are not transformers, by library: convolutions, batch norms, recurrent cells, tables.

Names are those that the libraries give their kernels; which library a trace uses is drawn once per trace. Durations are
chosen, not measured.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from synthetic.spec import KernelSpec, Vendor

_ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::{functor}, std::array<char*, {arity}ul> >"
    "(int, at::native::{functor}, std::array<char*, {arity}ul>)"
)
_MODERN_CONV = (
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize{m}x{n}x32_stage4_warpsize2x2x1_g1"
    "_tensor16x8x16_execute_kernel__5x_cudnn"
)
_MIOPEN_CONV = (
    "igemm_{way}_gtcx3_nhwc_bf16_bx0_ex1_bt{m}x{n}x32_wt32x32x8_ws1x2_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x4x1_1x4x1x64"
)
_CK_CONV = (
    "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_{way}_xdl_cshuffle_v3INS_34GridwiseGemmMultiD"
    "_xdl_cshuffle_v3INS_13tensor_layout4gemm8RowMajorE{m}EEEvT_"
)
_OLD_CONV = "void implicit_convolve_sgemm<float, float, {m}, 6, 7, 3, 3, 5, 1, false, true, true>(int, int, float*)"

CONVOLUTIONS: dict[str, tuple[str, ...]] = {
    "cudnn 7": (
        _OLD_CONV.format(m=1024),
        _OLD_CONV.format(m=128),
        "volta_scudnn_128x64_relu_interior_nn_v1",
        "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
    ),
    "cudnn 8": (
        _MODERN_CONV.format(m=128, n=128),
        _MODERN_CONV.format(m=64, n=64),
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_128x128_32x5_nhwc_align8>()",
        "ampere_scudnn_128x64_relu_xregs_large_nn_v1",
        "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(cudnn::winograd_nonfused::Params)",
    ),
    "miopen": (
        _MIOPEN_CONV.format(way="fwd", m=128, n=256),
        _MIOPEN_CONV.format(way="fwd", m=64, n=64),
        "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1",
        _CK_CONV.format(way="fwd", m=1),
        "gridwise_convolution_implicit_gemm_v4r4_xdlops_nhwc_kyxc_nhwk",
    ),
    "inductor": ("triton_tem_fused_convolution_{n}", "triton_tem_fused__to_copy_convolution_{n}"),
}
BACKWARD: dict[str, tuple[str, ...]] = {
    "cudnn 7": (
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)",
        "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, float const*)",
    ),
    "cudnn 8": (
        _MODERN_CONV.format(m=128, n=64).replace("fprop", "dgrad"),
        _MODERN_CONV.format(m=64, n=128).replace("fprop", "wgrad"),
    ),
    "miopen": (_MIOPEN_CONV.format(way="bwd", m=256, n=64), _MIOPEN_CONV.format(way="wrw", m=128, n=64)),
    "inductor": ("triton_tem_fused_convolution_backward_{n}", "triton_tem_fused_convolution_backward_{n}"),
}
BATCH_NORMS: dict[str, str] = {
    "cudnn 7": "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct, float const*)",
    "cudnn 8": "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(float const*)",
    "miopen": "MIOpenBatchNormFwdInferSpatialEst",
    "inductor": "triton_poi_fused__native_batch_norm_legit_no_training_relu_{n}",
}
BATCH_NORMS_BACK = "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, float, float, float)"
GROUP_NORM = (
    "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float, float const*, float*)",
    "void at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>(long, long, long, float const*)",
)
LAYER_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)"
PRODUCTS: dict[Vendor, tuple[str, ...]] = {
    "cuda": (
        "ampere_sgemm_128x64_tn",
        "nvjet_sm90_tst_128x64_64x8_2x1_v_bz_TNT",
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x128_32x3_nn_align1>(Params)",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
        "volta_sgemm_64x64_nn",
    ),
    "rocm": (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x64_MI16x16x1_SN_LDSB1_AFC1",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x32_MI16x16x1_SN_LDSB1_AFC1",
        "Cijk_Alik_Bljk_SB_MT32x32x32_MI16x16x4x1_SN_1LDSB1",
    ),
}
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, {log2}, false, false>(float*, float const*)"
)
LOG_SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
    "at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)"
)
TOPK = "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(int)"
SORT = "void at::native::bitonicSortKVInPlace<2, -1, 16, 16, float, long>(int)"
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"
INDEX_ADD = "void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true>(float*, float*, long)"
INDEX_SELECT = (
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>()"
)
REDUCE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::{op}, unsigned int, float, 4> >()"
)
ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)"
    "::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4> >()"
)
MAX_POOL = "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>(int, float const*, long, long)"
UPSAMPLE = "void at::native::(anonymous namespace)::upsample_nearest2d_out_frame<float>(int, float const*, float*)"
CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*, int)"
COPY = _ELEMENTWISE.format(functor="direct_copy_kernel_cuda(at::TensorIteratorBase&)", arity=2)
DROPOUT = (
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(int)"
)
EMBEDDING_BAGS = (
    "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, false, long, 1ul, 16ul>(int)",
    "void at::native::(anonymous namespace)::EmbeddingBag_updateOutputKernel_sum_mean<float, int>(int const*, float*)",
)
CELLS = (
    "void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)2, (cudnnRNNBiasMode_t)2>(int, int, int, int)",
    "void LSTM_elementWise_fp<float, float, float, (cudnnRNNBiasMode_t)2>(int, int, int, int, float const*)",
    "void at::native::(anonymous namespace)::kernel::lstm_cell_forward<float, float, int, 1>(int)",
    "void GRU_elementWise_fp<float, float, float, (cudnnRNNBiasMode_t)2>(int, int, int, int, float const*)",
)
SPARSE = (
    "void cusparse::csrmm_v2_kernel<256, 8, 4, int, int, float, float, float>(int, int, int, int)",
    "void spmm_kernel<float, (ReductionType)0, true>(long const*, long const*, float const*, float*, int, int)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8, at::native::scatter_add>(int)",
)
DEPTHWISE = "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<7, float, int>(float const*)"
FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 64, 4> >(Params)"


def elementwise(functor: str, arity: int = 2) -> str:
    """Name of PyTorch's elementwise kernel for a functor of `arity` tensors, the output included."""
    return _ELEMENTWISE.format(functor=functor, arity=arity)


ADD = elementwise("CUDAFunctor_add<float>", 3)
MUL = elementwise("BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >", 3)
RELU = elementwise("(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)")
GELU = elementwise("GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)")
SILU = elementwise("(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)")
SIGMOID = elementwise("sigmoid_kernel_cuda(at::TensorIteratorBase&)")
TANH = elementwise("tanh_kernel_cuda(at::TensorIteratorBase&)")
ACTIVATIONS = (RELU, GELU, SILU, SIGMOID, TANH)


@dataclass(frozen=True)
class Library:
    """The kernels that one trace uses, drawn once.

    Attributes:
        convolutions, backward: names to draw from, forwards and of the gradients.
        batch_norm: its name.
        products: names of matrix products.
        rng: where further choices come from.
    """

    convolutions: Sequence[str]
    backward: Sequence[str]
    batch_norm: str
    products: Sequence[str]
    rng: random.Random

    @classmethod
    def draw(cls, rng: random.Random, vendor: Vendor) -> Library:
        """Draw the libraries of a trace on a vendor's GPU."""
        name = rng.choice([key for key in CONVOLUTIONS if (key == "miopen") == (vendor == "rocm") or key == "inductor"])
        return cls(CONVOLUTIONS[name], BACKWARD[name], BATCH_NORMS[name], PRODUCTS[vendor], rng)

    def conv(self, us: float = 60.0) -> KernelSpec:
        """One convolution; inductor numbers its kernels."""
        return kernel(self._numbered(self.rng.choice(self.convolutions)), us * self.rng.uniform(0.5, 2.0))

    def conv_back(self, us: float = 120.0) -> list[KernelSpec]:
        """The two gradients of a convolution."""
        return [kernel(self._numbered(name), us * self.rng.uniform(0.5, 2.0)) for name in self.backward]

    def norm(self) -> KernelSpec:
        """A batch norm."""
        return kernel(self._numbered(self.batch_norm), 12.0)

    def product(self, us: float = 20.0) -> KernelSpec:
        """One matrix product."""
        return kernel(self.rng.choice(self.products), us * self.rng.uniform(0.5, 2.0))

    def _numbered(self, name: str) -> str:
        return name.format(n=self.rng.randrange(40)) if "{n}" in name else name


def kernel(name: str, us: float = 3.0) -> KernelSpec:
    """A kernel of a network that has no blocks: it plays no role in one."""
    return KernelSpec(name, "other", round(us, 3), grid=(64, 1, 1), block=(256, 1, 1))
