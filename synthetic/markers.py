"""How each engine names a step in a profile."""

from __future__ import annotations

from synthetic.spec import Engine, StepSpec


def step_label(engine: Engine, step: StepSpec, number: int, runner_line: int) -> str | None:
    """The marker text of a step, None where the engine writes none. `number` counts `ProfilerStep`s."""
    if engine == "vllm":
        return (
            f"execute_context_{step.context_requests}({step.context_tokens})"
            f"_generation_{step.generation_requests}({step.decode_tokens})"
        )
    if engine == "vllm_detailed":
        context = _detail(step.context_requests, step.context_tokens, step.context_kv_tokens)
        generation = _detail(step.generation_requests, step.decode_tokens, step.generation_kv_tokens)
        return f"execute_{step.tokens}_context_{context}_generation_{generation}"
    if engine == "vllm_old":
        return f"execute_new_{step.context_requests}_cached_{step.generation_requests}"
    if engine == "vllm_python":
        return f"vllm/v1/worker/gpu_model_runner.py({runner_line}): execute_model"
    if engine == "sglang":
        return _sglang(step)
    return f"ProfilerStep#{number}" if engine == "profiler_step" else None


def _detail(requests: int, query: int, kv: int | None) -> str:
    """Sums over the requests of query length, KV length, query squared and query times KV.

    Every request is taken to have the same query length, which makes the sums follow from the totals.
    """
    if not requests:
        return "0(sq0sk0sqsq0sqsk0)"
    keys = query if kv is None else kv
    each = query // requests
    return f"{requests}(sq{query}sk{keys}sqsq{each * query}sqsk{each * keys})"


def _sglang(step: StepSpec) -> str:
    if step.phase == "decode":
        return f"step[DECODE bs={step.generation_requests}]"
    if step.phase == "dummy":
        return "step[IDLE bs=0]"
    mode = "MIXED" if step.phase == "mixed" else "EXTEND"
    return f"step[{mode} bs={step.requests} toks={step.tokens}]"
