"""LLM inference performance model: TTFT, TPOT, tokens/s, the largest batch under limits, GPUs and layouts compared."""
