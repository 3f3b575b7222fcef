"""Chunked prefill and the largest batch within limits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.deployments import deployment
from traceanalyzer.commands.estimate.efficiencies import EstimateError
from traceanalyzer.commands.estimate.schedule import Traffic, burst, steady
from traceanalyzer.commands.estimate.slo import PRESETS, Slo, _last_kept, largest_batch, parse_slo
from traceanalyzer.commands.estimate.step_time import StepTime, StepTimes
from traceanalyzer.model import Parallel


@dataclass
class Recorded:
    """A server whose rounds take 1 ms a token, and which remembers them."""

    ranks: int = 1

    def __post_init__(self) -> None:
        self.rounds: list[tuple[int, tuple[int, ...]]] = []

    @property
    def deployment(self):
        return deployment("llama-3.1-8b", "H100 SXM5", parallel=Parallel(dp=self.ranks))

    def round(self, decodes, context, chunks=()):
        self.rounds.append((decodes, tuple(chunk.tokens for chunk in chunks)))
        time = 1e6 * (decodes + sum(chunk.tokens for chunk in chunks))
        return StepTime(time, time)


def test_decodes_go_first_and_prompts_fill_the_rest_of_the_budget() -> None:
    server = Recorded()
    burst(server, Traffic(isl=10, osl=3, concurrency=2), 8)
    assert server.rounds == [(0, (8,)), (0, (2, 6)), (1, (4,)), (2, ()), (1, ())]


def test_no_round_exceeds_the_budget_and_every_prompt_is_read() -> None:
    server = Recorded()
    steady(server, Traffic(isl=100, osl=20, concurrency=12), 32)
    assert all(decodes + sum(chunks) <= 32 for decodes, chunks in server.rounds)
    assert all(decodes <= 12 for decodes, _ in server.rounds)


def test_one_request_alone_takes_its_prefill_and_its_steps() -> None:
    times = StepTimes(deployment("llama-3.1-8b", "H100 SXM5"))
    served = burst(times, Traffic(512, 65, 1))
    extra = times.deployment.efficiencies.request_ns
    assert served.latency_ns == pytest.approx(served.ttft_ns + 64 * (served.tpot_ns or 0))
    assert served.ttft_ns > extra
    assert served.requests_per_s == pytest.approx(1e9 / served.latency_ns)


@settings(max_examples=20, deadline=None)
@given(isl=st.integers(1, 300), osl=st.integers(1, 60), concurrency=st.integers(1, 40), budget=st.integers(40, 400))
def test_littles_law_holds_in_every_simulation(isl, osl, concurrency, budget) -> None:
    for simulate in (steady, burst):
        served = simulate(Recorded(), Traffic(isl, osl, concurrency), budget)
        assert served.requests_per_s * served.latency_ns / 1e9 == pytest.approx(concurrency)
        assert served.ttft_p99_ns >= 0
        assert (served.tpot_ns is None) == (osl == 1)


def test_under_constant_load_requests_come_as_fast_as_they_go() -> None:
    server = Recorded()
    served = steady(server, Traffic(isl=64, osl=50, concurrency=10), 512)
    # Per 50 rounds each of 10 requests is read once and gets 49 tokens: 1,130 tokens and ms for 10 requests.
    assert served.requests_per_s == pytest.approx(10 / 1.13, rel=0.05)


def test_requests_sent_at_once_wait_longer_for_their_first_token() -> None:
    times = StepTimes(deployment("llama-3.1-8b", "H100 SXM5"))
    traffic = Traffic(1024, 128, 32)
    assert burst(times, traffic).ttft_ns > 3 * steady(times, traffic).ttft_ns


def test_more_sequences_than_a_step_has_tokens_are_refused() -> None:
    with pytest.raises(EstimateError, match="max-num-batched-tokens"):
        steady(Recorded(), Traffic(8, 8, 33), 32)
    steady(Recorded(ranks=2), Traffic(8, 8, 33), 32)


def test_the_largest_batch_keeps_the_limits_and_the_next_does_not() -> None:
    times = StepTimes(deployment("llama-3.1-8b", "H100 SXM5"))
    slo = parse_slo("ttft=500ms,tpot=20ms")
    found = largest_batch(times, 256, 64, slo, 2048, None)
    assert found.limited_by in ("ttft", "tpot")
    assert found.served is not None
    assert slo.broken_by(found.served) is None
    assert slo.broken_by(steady(times, Traffic(256, 64, found.batch + 1), 2048)) == found.limited_by


def test_memory_limits_the_batch_before_the_slo_does() -> None:
    times = StepTimes(deployment("llama-3.1-8b", "H100 SXM5"))
    found = largest_batch(times, 256, 64, Slo(None, 1e12, ""), 2048, 7)
    assert (found.batch, found.limited_by) == (7, "memory")


def test_limits_that_not_one_sequence_keeps_give_no_batch() -> None:
    times = StepTimes(deployment("llama-2-70b", "MI300X"))
    found = largest_batch(times, 256, 64, parse_slo("tpot=1ms"), 2048, None)
    assert (found.batch, found.served, found.limited_by) == (0, None, "tpot")


@given(edge=st.integers(0, 200), top=st.integers(0, 150))
def test_the_search_finds_the_edge(edge: int, top: int) -> None:
    batch, why = _last_kept(lambda n: "tpot" if n > edge else None, top)
    assert batch == min(edge, top)
    assert why == ("tpot" if edge < top else None)


def test_a_tighter_limit_never_allows_a_larger_batch() -> None:
    times = StepTimes(deployment("llama-2-70b", "MI300X", "fp8", "fp8"))
    server, interactive = (
        largest_batch(times, 294, 294, PRESETS[f"mlperf-llama2-70b-{kind}"], 8192, None)
        for kind in ("server", "interactive")
    )
    assert server.batch > interactive.batch > 0
    assert 400 < server.batch < 1100


def test_presets_are_the_limits_of_mlperf() -> None:
    assert (PRESETS["mlperf-llama2-70b-server"].ttft_ns, PRESETS["mlperf-llama2-70b-server"].tpot_ns) == (2e9, 2e8)
    interactive = PRESETS["mlperf-llama2-70b-interactive"]
    assert (interactive.ttft_ns, interactive.tpot_ns) == (450e6, 40e6)
    assert PRESETS["mlperf-llama3.1-8b-server"].tpot_ns == 100e6
    assert PRESETS["mlperf-llama3.1-8b-interactive"].tpot_ns == 30e6


def test_limits_are_read_with_their_units() -> None:
    found = parse_slo(" TTFT = 1.5s , tpot=80 ms")
    assert (found.ttft_ns, found.tpot_ns) == (1.5e9, 80e6)
    assert parse_slo("tpot=900us").ttft_ns is None
    for wrong in ("", "ttft=2", "tpot=0ms", "ttft=1s,ttft=2s", "speed=3s", "ttft=-1s"):
        with pytest.raises(EstimateError):
            parse_slo(wrong)
