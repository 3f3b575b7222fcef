"""triton_kernels' ``matmul_ogs`` as vLLM ships it: the very kernel that gpt-oss traces show.

vLLM vendors the package; the PyPI package of a similar name is another project. A configuration is imposed on the
flags that the library's own heuristics return, so that every version's own keys stay consistent.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from traceanalyzer.commands.tune.measure.measuring import MeasuringTask, Operation, Session, gpu_session, local_target
from traceanalyzer.kernels import find_kernel
from traceanalyzer.kernels.launch import Case
from traceanalyzer.kernels.moe_mxfp4 import ALPHA, LIMIT
from traceanalyzer.kernels.problem import Config

if TYPE_CHECKING:
    import torch

NAME = "triton_kernels"
HOMES = (NAME, f"vllm.third_party.{NAME}")
SWIZZLE = "vllm.model_executor.layers.quantization.utils.mxfp4_utils"
HOPPER_WARPS = 8
"""What vLLM passes to its own swizzling of mxfp4 weights on Hopper."""
KERNELS = ("moe_gate_up", "moe_down")


def open_session(device: str) -> Session:
    """Open matmul_ogs on the local GPU.

    Raises:
        RuntimeError: it is not installed, there is no GPU, or another device is asked for.
    """
    if device != "gpu":
        raise RuntimeError("matmul_ogs runs on a GPU only")
    import_library()
    return gpu_session(open_operation, "vllm")


def import_library() -> ModuleType:
    """Import matmul_ogs under the name its own modules use, and return its module.

    Raises:
        RuntimeError: it is not installed, or does not import.
    """
    for home in HOMES:
        try:
            package = importlib.import_module(home)
            if find_spec(f"{home}.matmul_ogs") is None:
                continue  # the PyPI package of this name
            sys.modules[NAME] = package  # the modules inside import each other by this name
            return importlib.import_module(f"{NAME}.matmul_ogs")
        except (ImportError, AttributeError):
            continue
    raise RuntimeError("triton_kernels with matmul_ogs is not installed (vLLM brings it as vllm.third_party)")


def open_operation(task: MeasuringTask) -> Operation:
    """Draw the same data as the built-in kernel and put it into the library's layouts."""
    if task.kernel not in KERNELS:
        raise RuntimeError(f"matmul_ogs is measured for {' and '.join(KERNELS)}, not {task.kernel}")
    spec = find_kernel(task.kernel)
    case = spec.make_case(task.problem, local_target(), "cuda", task.seed, task.routing)
    call = _call(import_library(), case, down=task.kernel == "moe_down")

    def prepare(config: Config) -> tuple[Callable[[], object], Callable[[], torch.Tensor]]:
        results: list[torch.Tensor] = []

        def run() -> None:
            results[:] = [call(config)]

        return run, lambda: results[0].reshape(-1, results[0].shape[-1])

    return Operation(prepare, lambda: spec.reference(case), spec.tolerance)


def _call(ogs: ModuleType, case: Case, *, down: bool) -> Callable[[Config], torch.Tensor]:
    """Return what runs the product with a configuration."""
    weight, precision = _weights(ogs, case)
    routing, gather, scatter = _routing(case)
    activation = None
    if not down:
        swiglu = importlib.import_module(f"{NAME}.swiglu").swiglu_fn
        activation = ogs.FusedActivation(ogs.FnSpecs("swiglu", swiglu, ("alpha", "limit")), (ALPHA, LIMIT), 2)
    where: dict[str, Any] = {"scatter_indx": scatter} if down else {"gather_indx": gather}
    options = {"precision_config": precision, "fused_activation": activation, **where}
    if down:
        options["gammas"] = routing.gate_scal
    x, bias = case.tensors["x"], case.tensors["bias"]

    def call(config: Config) -> torch.Tensor:
        with _imposed(ogs, config):
            result: torch.Tensor = ogs.matmul_ogs(x, weight, bias, routing, **options)
        return result

    return call


def _weights(ogs: ModuleType, case: Case) -> tuple[Any, Any]:
    """Put weights and scales into the layout that vLLM chooses for this GPU; without vLLM, plain strides."""
    w, w_scale = case.tensors["w"], case.tensors["w_scale"]
    try:
        values, _, scales = importlib.import_module(SWIZZLE)._swizzle_mxfp4(w, w_scale, HOPPER_WARPS)
    except (ImportError, AttributeError):
        tensor = importlib.import_module(f"{NAME}.tensor")
        values = tensor.wrap_torch_tensor(w.transpose(-2, -1), dtype=tensor.FP4)
        scales = tensor.wrap_torch_tensor(w_scale.transpose(-2, -1))
    return values, ogs.PrecisionConfig(weight_scale=scales)


def _routing(case: Case) -> tuple[Any, Any, Any]:
    """Make router logits whose top-k is the case's routing, and let the library route them."""
    import torch

    table, problem = case.routing, case.problem
    assert table is not None
    assert problem.experts is not None
    logits = torch.full((problem.tokens, problem.experts), -1e4, dtype=torch.float32, device="cuda")
    expert = torch.repeat_interleave(torch.arange(problem.experts, device="cuda"), table.counts.long())
    logits[table.gather.long(), expert] = table.weights.log()
    routed: tuple[Any, Any, Any] = importlib.import_module(f"{NAME}.routing").routing(
        logits.to(torch.bfloat16), problem.top_k
    )
    return routed


@contextmanager
def _imposed(ogs: Any, config: Config) -> Iterator[None]:
    """Replace what the library's heuristics chose while a call runs."""
    original = ogs.make_opt_flags

    def choose(*arguments: Any, **named: Any) -> Any:
        chosen = original(*arguments, **named)
        extra = dict(chosen.target_kernel_kwargs)
        for name in ("waves_per_eu", "matrix_instr_nonkdim"):
            if getattr(config, name) is not None and name in extra:
                extra[name] = getattr(config, name)
        names = ("block_m", "block_n", "block_k", "split_k", "group_m", "num_warps", "num_stages")
        own = {name: getattr(config, name) for name in names}
        return replace(chosen, **own, target_kernel_kwargs=extra)

    ogs.make_opt_flags = choose
    try:
        yield
    finally:
        ogs.make_opt_flags = original
