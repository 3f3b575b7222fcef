"""Layouts compared over the link's bandwidth (article: gpt-oss-120b on four RTX 6000 Ada over PCIe 4.0)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.deployments import deployment
from traceanalyzer.commands.estimate.deployment import EngineSettings
from traceanalyzer.commands.estimate.efficiencies import EstimateError, Link, collective_ns
from traceanalyzer.commands.estimate.parallel import (
    compare_layouts,
    link_range,
    parse_layout,
    parse_layouts,
    spread,
)
from traceanalyzer.commands.estimate.result import EstimateParallel
from traceanalyzer.commands.estimate.step_time import round_time
from traceanalyzer.model import Op, Parallel


@pytest.fixture(scope="module")
def compared() -> EstimateParallel:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada")
    layouts = parse_layouts("pp=4,ep=4,tp=4,pp=2,ep=2,tp=2,tp=1")
    return compare_layouts(own, layouts, 220, 200, (1, 4, 16), spread(8, 28), engine=EngineSettings(budget=2048))


def test_tensor_parallel_beats_pipeline_by_what_was_measured(compared: EstimateParallel) -> None:
    ratio = next(r for r in compared.ratios if (r.base, r.other) == ("pp=4", "tp=4"))
    # Measured: 1.4 to 1.8 times, TTFT 21 to 46 % less, ITL 31 to 43 % less.
    assert 1.2 <= ratio.throughput[0] <= 1.8
    assert 1.4 <= ratio.throughput[1] <= 2.2
    assert ratio.throughput[0] < ratio.throughput[1]
    assert -0.65 <= ratio.ttft_change[0] < ratio.ttft_change[1] < -0.2
    assert -0.55 <= ratio.itl_change[0] < ratio.itl_change[1] < -0.2


def test_tensor_parallel_against_expert_parallel_overlaps_what_was_measured(compared: EstimateParallel) -> None:
    ratio = next(r for r in compared.ratios if (r.base, r.other) == ("ep=4", "tp=4"))
    # Measured: 1.1 to 1.7 times, ITL 7 to 42 % less.
    assert ratio.throughput[0] < 1.4 < ratio.throughput[1] < 2.1
    assert ratio.itl_change[0] < -0.2 < ratio.itl_change[1]


@pytest.mark.parametrize(("kind", "low", "high"), [("tp", 1.1, 1.5), ("pp", 1.0, 1.2), ("ep", 1.0, 1.4)])
def test_twice_the_gpus_bring_about_what_was_measured(compared: EstimateParallel, kind, low, high) -> None:
    ratio = next(r for r in compared.ratios if (r.base, r.other) == (f"{kind}=4", f"{kind}=2"))
    fewest, most = 1 / ratio.throughput[1], 1 / ratio.throughput[0]
    assert fewest == pytest.approx(low, abs=0.15)
    assert most == pytest.approx(high, abs=0.25)


def test_a_layout_that_cannot_hold_the_weights_is_refused_with_the_reason(compared: EstimateParallel) -> None:
    refused = {one.layout: one.refused for one in compared.layouts if one.refused}
    assert list(refused) == ["tp=1"]
    assert "65.2 GB of weights" in (refused["tp=1"] or "")


def test_a_slow_link_turns_the_order_and_that_is_said() -> None:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada")
    found = compare_layouts(
        own, parse_layouts("tp=4,pp=4"), 2000, 100, (16,), spread(0.5, 28), engine=EngineSettings(budget=2048)
    )
    assert found.order_depends_on_link
    assert (found.orders[0].link_gbps, found.orders[0].order) == (found.link_gbps[0], ["pp=4", "tp=4"])
    assert (found.orders[-1].link_gbps, found.orders[-1].order) == (found.link_gbps[-1], ["tp=4", "pp=4"])
    assert any("depends on the link" in note for note in found.notes)


def test_one_bandwidth_gives_no_dependence_on_the_link() -> None:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada")
    found = compare_layouts(own, parse_layouts("tp=4,pp=4"), 220, 50, (4,), (20.0,), engine=EngineSettings(budget=2048))
    assert not found.order_depends_on_link


def test_a_pipeline_with_fewer_requests_than_stages_has_bubbles() -> None:
    own = deployment("gpt-oss-120b", "RTX 6000 Ada", parallel=Parallel(pp=4))
    one, full = (round_time(own, decodes, 400) for decodes in (1, 64))
    assert one.bubble_share > 0.6
    assert full.bubble_share < 0.35
    assert one.total_ns > sum([one.busy_ns] * 2)


def test_a_ring_sends_its_share_and_waits_its_hops() -> None:
    op = Op("x", "communication", collective="all_reduce", ranks=4, payload_bytes=4e6, wire_bytes=6e6)
    assert collective_ns(op, Link(20.0, 1000.0, "")) == pytest.approx(6e6 / 20 + 6 * 1000)
    single = replace(op, collective="send", ranks=2, wire_bytes=4e6)
    assert collective_ns(single, Link(20.0, 1000.0, "")) == pytest.approx(4e6 / 20 + 1000)


def test_expert_parallel_alone_brings_its_data_parallel_ranks() -> None:
    assert parse_layout("ep=4") == Parallel(dp=4, ep=4)
    assert parse_layout("tp=2+ep=4") == Parallel(tp=2, dp=2, ep=4)
    assert parse_layout("tp=4+ep=4") == Parallel(tp=4, ep=4)
    for wrong in ("tp", "tp=0", "xp=4", "tp=4+tp=2", "tp=3+ep=4", ""):
        with pytest.raises(EstimateError):
            parse_layout(wrong)
    with pytest.raises(EstimateError, match="at least two"):
        parse_layouts("tp=4,tp=4")


def test_gpus_without_a_known_link_need_one() -> None:
    own = deployment("gpt-oss-20b", "Radeon 8060S")
    with pytest.raises(EstimateError, match="link-gbps"):
        link_range(own)
    with pytest.raises(EstimateError, match="link-gbps"):
        compare_layouts(own, parse_layouts("tp=2,pp=2"), 10, 10, (1,), (10.0,))
    with pytest.raises(EstimateError):
        spread(0, 10)
