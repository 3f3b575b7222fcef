"""Sizes of recurrent layers (mamba, mamba-2, gated delta networks) from a config.json."""

from __future__ import annotations

import math

from traceanalyzer.model.architecture import Mixer
from traceanalyzer.model.config_keys import Keys


def mixer_of(keys: Keys, hidden: int) -> Mixer | None:
    """Return the recurrent layers' sizes, or None where the keys do not tell them."""
    return next((mixer for read in (_gated_delta, _mamba2, _mamba) if (mixer := read(keys, hidden))), None)


def _gated_delta(keys: Keys, hidden: int) -> Mixer | None:
    """Qwen3-Next: one projection to q, k, v and the gate z, one to two scalars a value head."""
    if not keys.has("linear_num_value_heads"):
        return None
    key_heads, value_heads = keys.size("linear_num_key_heads"), keys.size("linear_num_value_heads")
    key_dim, value_dim = keys.size("linear_key_head_dim"), keys.size("linear_value_head_dim")
    keys_width, values_width = key_heads * key_dim, value_heads * value_dim
    channels, taps = 2 * keys_width + values_width, keys.size("linear_conv_kernel_dim", default=4)
    return Mixer(
        kind="gated_delta",
        inputs=2 * keys_width + 2 * values_width + 2 * value_heads,
        inner=values_width,
        conv_channels=channels,
        conv_width=taps,
        state=value_heads * key_dim * value_dim,
        other_parameters=channels * taps + 2 * value_heads + value_dim,
    )


def _mamba2(keys: Keys, hidden: int) -> Mixer | None:
    """Mamba-2: one projection to z, x, B, C and dt. Where nothing else has heads, their keys are named without it."""
    bare = keys.get("model_type") == "mamba2"
    named = ("mamba_num_heads", "mamba_n_heads", *(("num_heads",) if bare else ()))
    if not keys.has(*named):
        return None
    heads = keys.size(*named)
    expand = keys.size("expand", "mamba_expand", default=2)
    width = ("mamba_head_dim", "mamba_d_head", *(("head_dim",) if bare else ()))
    head_dim = keys.optional_size(*width) if isinstance(keys.get(*width), int) else None
    inner = heads * head_dim if head_dim else expand * hidden
    state = keys.size("ssm_state_size", "mamba_d_state", "state_size")
    groups = keys.size("n_groups", "mamba_n_groups", default=1)
    channels, taps = inner + 2 * groups * state, keys.size("conv_kernel", "mamba_d_conv", default=4)
    return Mixer(
        kind="mamba2",
        inputs=2 * inner + 2 * groups * state + heads,
        inner=inner,
        conv_channels=channels,
        conv_width=taps,
        state=inner * state,
        other_parameters=channels * (taps + 1) + 3 * heads + inner,
    )


def _mamba(keys: Keys, hidden: int) -> Mixer | None:
    """Mamba-1: a projection to x and z; from x then dt, B and C."""
    if not keys.has("mamba_d_state", "state_size"):
        return None
    state, taps = keys.size("mamba_d_state", "state_size"), keys.size("mamba_d_conv", "conv_kernel", default=4)
    inner = keys.size("mamba_expand", "expand", default=2) * hidden
    given = keys.get("mamba_dt_rank", "time_step_rank")
    rank = given if isinstance(given, int) else math.ceil(hidden / 16)
    norms = rank + 2 * state
    return Mixer(
        kind="mamba",
        inputs=2 * inner,
        inner=inner,
        conv_channels=inner,
        conv_width=taps,
        state=inner * state,
        other_parameters=inner * (taps + 1)
        + inner * (rank + 2 * state)
        + (rank + 1) * inner
        + inner * (state + 1)
        + norms,
    )
