"""What the words of a kernel's function name say about its kind, whatever scheme it belongs to.

One ordered table: the first rule that fits decides. `parts` are looked for anywhere in the lower-case name
and are therefore long enough to be safe; `words` must be whole words (`fill` is not found in `prefill`).
Fused kernels take the kind that sets them apart: all-reduce + norm is communication, norm + quantize is
norm, rope + cache write is rope, activation + quantize is activation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from traceanalyzer.names.cpp_text import words

POSITION = "by position"
"""Role of a rule whose kind would settle the role, but whose kernel can stand in several."""


@dataclass(frozen=True)
class KindRule:
    """A kind with the words that give it away; role and family only where the kind's own do not hold."""

    kind: str
    parts: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    role: str | None = None
    family: str | None = None


def _rule(kind: str, parts: str = "", words: str = "", role: str | None = None, family: str | None = None) -> KindRule:
    return KindRule(kind, tuple(parts.split()), frozenset(words.split()), role, family)


RULES: tuple[KindRule, ...] = (
    _rule(
        "communication",
        "allreduce all_reduce reducescatter reduce_scatter allgather all_gather alltoall all_to_all all2all"
        " cross_device_reduce multimem_ nvshmem rocshmem deep_ep deepep mscclpp quick_reduce quickreduce"
        " sendrecv send_recv shm_allreduce pplx mori:: symm_mem ep_dispatch ep_combine userbuffers lamport"
        " moe_a2a moea2a barrier_kernel sync_barrier internode intranode hybrid_ep nixl_ep moe_comm",
        "allreduce broadcast_coalesced gloo nccl ncclkernel rccl",
    ),
    _rule(
        "metadata",
        "metadata eagle_inputs spec_info cache_loc last_loc alloc_extend alloc_decode evict_mask"
        " prepare_prefill prepare_next draft_tokens num_sampled kv_indices kvindices slot_mapping"
        " prepare_inputs prepare_input prepare_varlen resolve_future future_token clamp_position advance_step"
        " req_to_token position_ids num_kv_splits compute_position cu_seqlens seq_lens seqlens seqused"
        " block_table page_table compute_slot draft_kv accept_length bounds_check_indices",
    ),
    _rule(
        "quantize",
        "quant_moe_sort act_quant",
    ),
    _rule(
        "moe_combine",
        "moe_sum moesum experts_combine shuffle_mul_sum moe_reduce finalizemoe finalize_moe moe_finalize"
        " finalizekernel finalize_matmul_scatter unpermute post_reorder ep_gather moe_combine combine_moe"
        " moe_unsort reduce_grouped moe_weighted_sum",
    ),
    _rule(
        "gemm",
        "router_gemm routergemm moe_router gate_gemm router_gate_gemm",
        role="router",
    ),
    _rule(
        "moe_routing",
        "src2dst seg_indptr topkgating topk_gating moetopk hashtopk topk_softmax topksoftmax topk_sigmoid"
        " topksigmoid grouped_topk groupedtopk group_topk biased_topk moe_fused_gate fused_gate moe_align"
        " moe_sort moesort moe_permute expandinputrows expand_input_rows routing bitmatrix expertfirsttoken"
        " expert_first_token count_and_sort_expert blockexpertprefix globalexpertprefix mergeexpertprefix"
        " expert_offset compute_problem_sizes expt_data _topk_forward topk_forward ep_scatter pre_reorder"
        " expert_map permute_cols_moe fused_topk expert_ids topk_ids topk_weights masked_compaction"
        " writeback_idx ragged_tensor_metadata tokens_per_expert hash_topk deepseek_v3_topk moe_topk"
        " expert_select compute_arg_sorts shuffle_rows shuffleinputrows permute_rows sorted_token",
    ),
    _rule(
        "ssm",
        "mamba selective_scan selective_state causal_conv1d chunk_scan chunk_state state_passing gated_delta"
        " delta_rule chunk_fwd recompute_w_u solve_tril merge_16x16 merge_32x32 linear_attn linear_attention"
        " lightning_attn lightning_attention chunk_local_cumsum chunk_cumsum bmm_chunk scaled_dot_kkt"
        " gdn_gating fused_gdn wy_fast wy_repr fused_recurrent short_conv wkv6 wkv7 retention_fwd conv_state"
        " _fwd_diag_kernel _fwd_none_diag _fwd_kv_parallel _fwd_kv_reduce qkvzba chunk_kda chunk_gla ssd_chunk rwkv",
        "gdn gla kda rwkv ssd ssm",
    ),
    _rule(
        "kv_write",
        "indexer_k_quant_and_cache",
        role="kv_write",
    ),
    _rule(
        "rope",
        "rotary rope_ _rope mrope rotate_half apply_rope applyrope ropequantize qk_norm_rope qknormrope"
        " mlarope ropeand sbhd_cached thd_cached",
        "mrope rope",
    ),
    _rule(
        "norm",
        "rmsnorm rms_norm layernorm layer_norm l2norm groupnorm group_norm batch_norm batchnorm instance_norm"
        " instancenorm qk_norm qknorm rms_normalize addrms add_rms rowwisemoments gammabeta"
        " computefusedparams cucomputegradinput cucomputepartgrad ln_fwd ln_bwd",
        "layernorm norm rms",
    ),
    _rule(
        "kv_write",
        "kv_cache_scatter store_index_k reshape_and_cache concat_and_cache store_kvcache store_kv store_cache"
        " cache_kv append_paged_kv appendpagedkv set_kv_buffer setkv set_mla_kv kv_cache_update write_kv"
        " kv_write save_kv update_kv updatekv kvcache_write cp_gather_cache fused_kv_cache cat_and_cache"
        " quant_and_cache and_cache_kernel",
    ),
    _rule(
        "attention_prelude",
        "transform_bias_rescale_qkv fusedqkv_bias qkv_bias_transpose",
    ),
    _rule(
        "attention",
        "flash_fwd flash_bwd flashattn flash_attn flash_attention flashmla flash_mla fmha attention attn paged_attn"
        " splitkv batchprefillwith batchdecodewith singleprefillwith singledecodewith reduce_segments"
        " mergestate merge_state decode_softmax decode_att fwd_grouped_kernel_stage fwd_kernel_stage"
        " mqa_logits sparse_mla mla_decode mla_prefill mla_reduce mla_stage softmax_reducev flash_decode"
        " fp8_index concat_mla_q hstu sdpa cascade sdp_ flash_combine sage_fwd sageattn"
        " withkvcache batchpersistent flash_decod batch_decode_paged batch_prefill_paged batch_prefill_ragged",
        "attention attn fmha gqa mha mla mqa pa",
    ),
    _rule(
        "resize",
        "upsample downsample grid_sampler gridsampler upscale interpolate",
    ),
    _rule(
        "pooling",
        "max_pool avg_pool average_pool maxpool avgpool averagepool pool2d pool3d pooling",
    ),
    _rule(
        "sampling",
        "sampling sampler sample_ argmax top_k_top_p topk_topp top_p topktopp min_p rejection penalt"
        " multinomial gumbel logits_process bitmask logit_bias random_sample recovered_tokens greedy"
        " distribution_elementwise exponential_ eagle_ verify_tree verifytree radixtopk logprob"
        " softmax_with_temp temperature ngram topk_log_softmax",
        "argmax exponential sample",
    ),
    _rule(
        "activation",
        "silu_mul silu_and_mul act_and_mul actandmul gelu_and_mul swiglu_fn swiglu_quant",
    ),
    _rule(
        "gemm",
        "moe_gemm moegemm moe_mxgemm moe_forward moeflatmm moe_mm fused_moe fusedmoe fused_experts fmoe"
        " moe_wna16 grouped_gemm groupedgemm group_gemm moe_cutlass moe_kernel moe_matmul ck2stages"
        " batched_moe batched_triton moe_marlin sonic_moe group_mm moe_vec_q moe_q2_ moe_q3_ moe_q4_ moe_q5_ moe_q6_"
        " moe_q8_",
        role=POSITION,
        family="moe_gemm",
    ),
    _rule(
        "gemm",
        "nt_matmul weight_only wgrad_gemm dgrad_gemm",
    ),
    _rule(
        "optimizer",
        "multi_tensor_apply fused_adam fusedadam fused_sgd fusedsgd opt_step lpnorm",
        "adam adamw adagrad adafactor lamb muon optimizer rmsprop sgd",
    ),
    _rule(
        "convolution",
        "convolution conv1d conv2d conv3d convolve implicit_gemm implicitgemm winograd im2col col2im vol2col col2vol"
        " depthwise scudnn igemm_fwd_ igemm_bwd_ igemm_wrw_ grouped_conv spconv dgrad fprop wgrad",
        "conv wrw",
    ),
    _rule(
        "gemm_helper",
        "splitkreduce split_k_reduce splitk_reduce reduce_splitk reduce_split_k gemm_reduce splitk_zero",
    ),
    _rule(
        "quantize",
        "awq_dequant dequantize dequant_kernel gptq_shuffle gptq_marlin_repack repack shuffle_weight cast_transpose",
    ),
    _rule(
        "gemm",
        "gemm matmul mul_mat flatmm gemv wvsplitk wv_splitk scaled_mm block_scaled_mm _mm_ marlin machete"
        " gemvx packed_linear int4_mm int8_mm fp8_mm fp4_mm block_fp8"
        " skinny_mm bgmv sgmv lora_shrink lora_expand onednn_mm onednn_linear mkldnn_linear llmm1",
        "addmm baddbmm bmm dot gmm linear lora mm qgemm",
    ),
    _rule(
        "loss",
        "nll_loss nllloss cross_entropy crossentropy criterion",
        "loss",
    ),
    _rule(
        "activation",
        "swiglu silu gelu relu act_mul activation sigmoid_mul geglu glu_ hardswish",
        "act geglu gelu glu mish relu silu swiglu",
    ),
    _rule(
        "quantize",
        "quant scaled_fp8 per_token_group per_token_cast to_fp8 cvt_fp cvt_warp convert_fp8 mxfp nvfp4"
        " downcast upcast hadamard scale_swizzle swizzle_scale pack_scale",
        "dequant quant quantize",
    ),
    _rule(
        "embedding",
        "embedding embed_tokens masked_input lookup_kernel compute_grad_weight",
        "embed embedding",
    ),
    _rule(
        "sort",
        "radixsort radix_sort onesweep bitonic mergesort sort_pairs segmentedsort gathertopk top_k topk",
        "argsort sort topk",
    ),
    _rule(
        "index",
        "gather scatter index_select indexselect index_put index_elementwise index_copy index_add"
        " masked_select take_along",
        "gather index indexing nonzero scatter",
    ),
    _rule(
        "memory",
        "memcpy memset copybuffer fillbuffer catarray batchedcopy fill_kernel copy_kernel copy_blocks"
        " transpose zero_kernel zeros_kernel d2d_copy tensor_copy",
        "cast cat clone concat contiguous copy fill memcpy memset pack pad permute transpose unpack zeros",
    ),
    _rule(
        "rnn",
        words="gru lstm rnn",
    ),
    _rule(
        "scan",
        "cumsum prefix_sum prefixsum inclusive_scan exclusive_scan lookback_scan",
        "cumprod cumsum scan",
    ),
    _rule(
        "softmax",
        "softmax soft_max",
    ),
    _rule(
        "fft",
        "fft1d fft2d fft3d rocfft cufft",
        "fft",
    ),
    _rule(
        "reduction",
        "reduce_kernel",
        "amax amin max mean min norm_reduce reduce reduction sum",
    ),
    _rule(
        "elementwise",
        "elementwise pointwise dropout",
        "add arange clamp cos div eq exp ge gt le lt mul ne neg pow rsqrt sigmoid sin sqrt sub tanh tril triu",
    ),
)

IDENTIFIER_LIMIT = 4096
"""Characters of an identifier in which words are looked for."""


def classify(identifier: str) -> KindRule | None:
    """Return the first rule that the identifier's words fit, if any; a last word that is a number is left out."""
    head, _, tail = identifier[:IDENTIFIER_LIMIT].rpartition("_")
    return _first_fit(head if head and tail.isdecimal() else identifier[:IDENTIFIER_LIMIT])


@lru_cache(maxsize=4096)
def _first_fit(identifier: str) -> KindRule | None:
    lower = identifier.lower()
    own: set[str] | None = None
    for rule in RULES:
        for part in rule.parts:
            if part in lower:
                return rule
        if rule.words:
            if own is None:
                own = set(words(identifier))
            if not own.isdisjoint(rule.words):
                return rule
    return None
