"""The ``quantization_config`` of a config.json (or ModelOpt's hf_quant_config.json) as number formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from traceanalyzer.model.architecture import ModelError, Weights
from traceanalyzer.model.formats import FORMATS, Format, format_named, int4

PROBES = {
    "attention": "model.layers.0.self_attn.o_proj",
    "ffn": "model.layers.0.mlp.down_proj",
    "experts": "model.layers.0.mlp.experts.0.down_proj",
    "shared": "model.layers.0.mlp.shared_experts.down_proj",
}
"""A module of each class of op, to look up in lists of modules that are not quantised."""


def quantised(config: Mapping[str, Any], base: Format) -> tuple[Weights, Format, tuple[str, ...]]:
    """Return the formats of weights and KV cache of a config, and notes; ``base`` is that of everything unquantised."""
    plain = Weights(base, base, base, base, base, base, base)
    section = config.get("quantization_config") or config.get("compression_config") or config.get("quantization")
    if section is None:
        return plain, base, ()
    if not isinstance(section, Mapping):
        raise ModelError("quantization_config must be an object")
    method = str(section.get("quant_method") or section.get("quant_algo") or "").lower()
    weights_format, note = _format(method, section)
    if weights_format is None:
        return plain, base, (f"quantization {method or 'without a method'!r} is unknown; assumed {base.name}",)
    unquantised = _unquantised(section)
    chosen = {
        part: base if _matches(unquantised, module) else weights_format
        for part, module in PROBES.items()
        if not (method == "mxfp4" and part in ("attention", "ffn", "shared"))
    }
    weights = Weights(**{**vars(plain), **chosen})
    kv = _kv(section, base)
    notes = (f"weights in {weights_format.name} (quantization_config: {note})",)
    return weights, kv, notes


def _format(method: str, section: Mapping[str, Any]) -> tuple[Format | None, str]:
    reader = next((reader for prefix, reader in READERS if method.startswith(prefix)), None)
    return (reader(section), method) if reader else (None, method)


def _weights_only(section: Mapping[str, Any], *, zero_point: bool) -> Format:
    """Return the format of AWQ or GPTQ."""
    if section.get("bits", section.get("w_bit")) == 8:
        return FORMATS["int8_weight"]
    return int4(_group(section), zero_point=zero_point)


def _gptq(section: Mapping[str, Any]) -> Format:
    return _weights_only(section, zero_point=section.get("sym") is False)


def _modelopt(section: Mapping[str, Any]) -> Format | None:
    algorithm = str(section.get("quant_algo") or "").upper().replace("-", "_")
    if not algorithm and section.get("config_groups"):
        return _compressed(section)
    if "NVFP4" in algorithm or algorithm == "W4A4_NVFP4":
        return FORMATS["nvfp4_weight" if "W4A16" in algorithm else "nvfp4"]
    if "W4A16" in algorithm or "AWQ" in algorithm:
        return int4(_group(section))
    if "INT8" in algorithm or "W8A8_SQ" in algorithm:
        return FORMATS["int8"]
    return FORMATS["fp8"] if "FP8" in algorithm else None


def _compressed(section: Mapping[str, Any]) -> Format | None:
    first = _first_group(section)
    weights = first.get("weights")
    if not isinstance(weights, Mapping):
        return None
    kind = "float" if str(weights.get("type") or "int") == "float" else "int"
    narrow_inputs = isinstance(first.get("input_activations"), Mapping)
    bits = weights.get("num_bits")
    if (bits, kind) == (4, "int"):
        return _int4_of(weights)
    if (bits, kind) == (4, "float") and weights.get("group_size") == 32:
        return FORMATS["mxfp4"]
    if bits == 8 and kind == "float" and str(weights.get("strategy")) == "block":
        return FORMATS["fp8_block"]
    name = COMPRESSED.get((bits, kind, narrow_inputs)) if isinstance(bits, int) else None
    return FORMATS[name] if name else None


def _int4_of(weights: Mapping[str, Any]) -> Format:
    size = weights.get("group_size")
    return int4(size if isinstance(size, int) else -1, zero_point=weights.get("symmetric") is False)


def _first_group(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first of a config's groups; an empty one if there is none."""
    groups = section.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    return first if isinstance(first, Mapping) else {}


COMPRESSED = {
    (8, "float", True): "fp8",
    (8, "float", False): "fp8_weight",
    (8, "int", True): "int8",
    (8, "int", False): "int8_weight",
    (4, "float", True): "nvfp4",
    (4, "float", False): "nvfp4_weight",
}
"""(bits, type, whether inputs are narrowed too) of a compressed-tensors group -> format."""


def _quark(section: Mapping[str, Any]) -> Format | None:
    """AMD's Quark: data types of weights and inputs; two-stage ones (a list) are unknown."""
    whole = section.get("global_quant_config")
    weights = whole.get("weight") if isinstance(whole, Mapping) else None
    if not isinstance(whole, Mapping) or not isinstance(weights, Mapping):
        return None
    kind, narrow_inputs = str(weights.get("dtype")), isinstance(whole.get("input_tensors"), Mapping)
    if kind in ("int4", "uint4"):
        return _int4_of(weights)
    if kind == "fp8_e4m3" and weights.get("qscheme") == "per_block":
        return FORMATS["fp8_block"]
    name = QUARK.get((kind, narrow_inputs))
    return FORMATS[name] if name else None


QUARK = {
    ("fp8_e4m3", True): "fp8",
    ("fp8_e4m3", False): "fp8_weight",
    ("int8", True): "int8",
    ("int8", False): "int8_weight",
    ("fp4", True): "mxfp4_w4a4",
    ("fp4", False): "mxfp4",
}
"""(data type of weights, whether inputs are narrowed too) of Quark -> format."""


def _bitsandbytes(section: Mapping[str, Any]) -> Format | None:
    if section.get("load_in_8bit"):
        return FORMATS["int8_weight"]
    return int4(64) if section.get("load_in_4bit") else None


READERS: tuple[tuple[str, Callable[[Mapping[str, Any]], Format | None]], ...] = (
    ("fp8", lambda section: FORMATS["fp8_block" if section.get("weight_block_size") else "fp8"]),
    ("fbgemm_fp8", lambda _: FORMATS["fp8"]),
    ("mxfp4", lambda _: FORMATS["mxfp4"]),
    ("nvfp4", _modelopt),
    ("w4a16", _modelopt),
    ("awq", lambda section: _weights_only(section, zero_point=bool(section.get("zero_point", True)))),
    ("gptq", _gptq),
    ("auto-round", _gptq),
    ("modelopt", _modelopt),
    ("compressed-tensors", _compressed),
    ("quark", _quark),
    ("bitsandbytes", _bitsandbytes),
)
"""``quant_method`` (its beginning) -> how its section is read."""


def _group(section: Mapping[str, Any]) -> int:
    value = section.get("group_size", section.get("q_group_size", 128))
    return value if isinstance(value, int) and not isinstance(value, bool) else 128


def _kv(section: Mapping[str, Any], base: Format) -> Format:
    scheme = section.get("kv_cache_quant_algo") or section.get("kv_cache_scheme") or _kv_of_quark(section)
    if isinstance(scheme, Mapping):
        bits, kind = scheme.get("num_bits"), scheme.get("type")
        return FORMATS["fp8"] if bits == 8 and kind == "float" else FORMATS["int8"] if bits == 8 else base
    return (format_named(scheme) or base) if isinstance(scheme, str) else base


def _kv_of_quark(section: Mapping[str, Any]) -> str | None:
    """Return the data type of the cache in Quark: that of the outputs of its modules of ``kv_cache_group``."""
    export, modules = section.get("export"), section.get("layer_quant_config")
    group = export.get("kv_cache_group") if isinstance(export, Mapping) else None
    if not isinstance(group, list) or not isinstance(modules, Mapping):
        return None
    chosen = [modules.get(name) for name in group if isinstance(name, str)]
    outputs = [one.get("output_tensors") for one in chosen if isinstance(one, Mapping)]
    kinds = {str(output.get("dtype")) for output in outputs if isinstance(output, Mapping)}
    return kinds.pop() if len(kinds) == 1 else None


def _unquantised(section: Mapping[str, Any]) -> list[str]:
    lists = ("ignore", "exclude", "exclude_modules", "modules_to_not_convert", "ignored_layers")
    listed: list[Any] = next((section[name] for name in lists if isinstance(section.get(name), list)), [])
    return [entry for entry in listed if isinstance(entry, str)]


def _matches(patterns: list[str], module: str) -> bool:
    """Whether a module is listed: by name, by part of it, by a glob, or (``re:``) by regular expression.

    Lists name every layer; the probe stands for all of its class, so layer numbers do not count.
    """
    return any(_match(pattern, module) for pattern in patterns)


def _match(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], module) is not None
        except re.error:
            return False
    plain = re.sub(r"\.\d+(?=\.|$|\*)", ".0", pattern.removesuffix(".*").removesuffix("*"))
    stem = plain.replace("*", "0")
    return bool(stem) and (module == stem or module.startswith(stem + ".") or _is_part(stem, module))


def _is_part(stem: str, module: str) -> bool:
    return "." not in stem and stem in module.split(".")
