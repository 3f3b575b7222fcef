"""Result files with figures that fit together, and the commands run on them."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from traceanalyzer.cli.main import cli

PROMPTS, INPUT, OUTPUT = 64, 512, 128


def result(concurrency: int = 8, tpot_ms: float = 20.0, ttft_ms: float = 100.0, **changes: Any) -> dict[str, Any]:
    """A result of ``vllm bench serve`` whose figures satisfy every check."""
    latency_ms = ttft_ms + (OUTPUT - 1) * tpot_ms
    rate = concurrency / latency_ms * 1000
    duration = PROMPTS / rate
    found: dict[str, Any] = {
        "date": "20260105-101500",
        "endpoint_type": "openai",
        "backend": "openai",
        "label": None,
        "model_id": "example/model-8b",
        "tokenizer_id": "example/model-8b",
        "num_prompts": PROMPTS,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": concurrency,
        "duration": duration,
        "completed": PROMPTS,
        "failed": 0,
        "total_input_tokens": PROMPTS * INPUT,
        "total_output_tokens": PROMPTS * OUTPUT,
        "request_throughput": rate,
        "request_goodput": None,
        "output_throughput": rate * OUTPUT,
        "total_token_throughput": rate * (INPUT + OUTPUT),
        "mean_ttft_ms": ttft_ms,
        "median_ttft_ms": ttft_ms * 0.9,
        "p99_ttft_ms": ttft_ms * 2,
        "mean_tpot_ms": tpot_ms,
        "median_tpot_ms": tpot_ms * 0.95,
        "p99_tpot_ms": tpot_ms * 1.5,
        "mean_e2el_ms": latency_ms,
        "p99_e2el_ms": latency_ms * 1.2,
    }
    return {**found, **changes}


def run(*arguments: str) -> Result:
    """Run ``traceanalyzer serving``."""
    return CliRunner().invoke(cli, ["serving", *arguments])


def document(*arguments: str) -> dict[str, Any]:
    """Run ``traceanalyzer serving ... --json`` and return what it printed."""
    found = run(*arguments, "--json")
    assert found.exit_code == 0, found.output
    parsed: dict[str, Any] = json.loads(found.stdout)
    return parsed


def error_line(found: Result) -> str:
    """The one line of a refused input."""
    assert found.exit_code == 1, found.output
    assert found.stdout == ""
    (line,) = found.stderr.strip().splitlines()
    return line
