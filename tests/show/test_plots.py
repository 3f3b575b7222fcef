"""Plots: every label is within the figure, names are drawn as they are, files are written whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from synthetic import generate, models, write
from traceanalyzer.commands.blocks.plot import block_strip
from traceanalyzer.commands.diff.compute import diff
from traceanalyzer.commands.diff.plot import change_by_role
from traceanalyzer.commands.hotspots.compute import Hotspots, hotspots
from traceanalyzer.commands.hotspots.plot import kernels_by_time
from traceanalyzer.commands.idle.compute import idle
from traceanalyzer.commands.idle.plot import gaps_by_kernel
from traceanalyzer.commands.ranks.compute import compare
from traceanalyzer.commands.ranks.plot import time_by_rank
from traceanalyzer.commands.report import figures
from traceanalyzer.problems import TraceError
from traceanalyzer.segment import Segmentation, segment
from traceanalyzer.segment.outliers import find_outliers
from traceanalyzer.show.plots import style
from traceanalyzer.show.plots.style import save
from traceanalyzer.trace import Trace, open_traces

Run = Callable[..., Any]


def open_case(path: Path) -> Trace:
    return open_traces(path, cache=False).traces[0]


def texts(figure: Any) -> Iterator[Any]:
    from matplotlib.text import Text

    return (text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip())


def sticks_out(figure: Any) -> float:
    """How far what is drawn reaches beyond the figure's edge, in inches."""
    with style.styled():
        figure.draw_without_rendering()
    box = figure.get_tightbbox(figure.canvas.get_renderer())
    width, height = figure.get_size_inches()
    return float(max(-box.x0, -box.y0, box.x1 - width, box.y1 - height))


@pytest.fixture(scope="module")
def sample(samples: Path) -> Trace:
    return open_case(samples / "gptoss20b_decode_synthetic.json.gz")


@pytest.mark.parametrize("by", ["kernel", "role", "family"])
def test_labels_stay_within_the_figure(sample: Trace, by: str) -> None:
    assert sticks_out(kernels_by_time(hotspots(sample, by=by), by)) < 0.02


def test_long_and_odd_names_stay_within_the_figure(tmp_path: Path, cases: Path) -> None:
    document = json.loads((cases / "017_nasty_names.json").read_text(encoding="utf-8"))
    kernels = [event for event in document["traceEvents"] if event.get("cat") == "kernel"]
    kernels[0]["name"] = "W" * 3000
    kernels[1]["name"] = "$\\frac{1}{2}$ ^_{x} \u202e \x07"
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    figure = kernels_by_time(hotspots(open_case(path)))
    assert sticks_out(figure) < 0.02
    shown = " ".join(text.get_text() for text in texts(figure))
    assert "$" in shown
    assert "\u202e" not in shown


def test_bars_are_the_times(sample: Trace) -> None:
    found = hotspots(sample, phase="decode")
    figure = kernels_by_time(found, limit=3)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    expected = found.rows["per_step_ns"].to_list()
    assert widths[:3] == pytest.approx(expected[:3])
    assert widths[3] == pytest.approx(sum(expected[3:]))


def test_a_strip_has_a_bar_a_block_that_is_its_time(sample: Trace) -> None:
    cut = segment(sample).only(phase="decode")
    figure = block_strip(cut)
    heights: dict[int, float] = {}
    for bar in figure.axes[0].patches:
        block = round(bar.get_x() + bar.get_width() / 2)
        heights[block] = heights.get(block, 0.0) + bar.get_height()
    assert sorted(heights) == list(range(24))
    median = cut.blocks.filter(cut.blocks["block"] == 0)["kernel_sum_ns"].median()
    assert heights[0] * 1e6 == pytest.approx(median, rel=0.01)


def test_a_strip_of_a_phase_shows_its_steps_alone(open_spec) -> None:
    spec = models.llama_decode(layers=6)
    steps = (*spec.steps, *[models.prefill(spec.model, requests=1, tokens=512)] * 2)
    cut = segment(open_spec(replace(spec, steps=steps))[0])
    assert len(block_strip(cut).axes) == 2
    alone = block_strip(cut.only(phase="prefill"))
    chosen = block_strip(cut, unusual=find_outliers(cut), phase="prefill")
    assert len(chosen.axes) == 1
    one, other = ([bar.get_height() for bar in figure.axes[0].patches] for figure in (alone, chosen))
    assert one == other
    assert one


@pytest.mark.parametrize("layers", [1, 4, 61, 128])
def test_strips_of_any_length_keep_their_labels_apart(tmp_path: Path, layers: int) -> None:
    path = write(generate(models.llama_decode(layers=layers, steps=1), 1), tmp_path / "deep.json")
    cut = segment(open_case(path))
    if cut.blocks.is_empty():
        pytest.skip("a single block does not repeat")
    figure = block_strip(cut)
    assert sticks_out(figure) < 0.02
    renderer = figure.canvas.get_renderer()
    boxes = [tick.get_window_extent(renderer) for tick in figure.axes[0].get_xticklabels() if tick.get_text()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("width", [6.2, style.WIDTH])
def test_titles_of_two_devices_stay_within_the_figure(cases: Path, width: float) -> None:
    figure = block_strip(segment(open_case(cases / "113_two_gpus.json.gz")), rank=12, width=width)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert ["GPU 0" in titles[0], "GPU 1" in titles[1]] == [True, True]
    assert sticks_out(figure) < 0.02


def test_a_trace_without_blocks_is_refused(cases: Path) -> None:
    with pytest.raises(TraceError, match="no transformer blocks"):
        block_strip(segment(open_case(cases / "213_no_repeats.json")))


def test_changes_point_to_the_side_they_are_on(cases: Path) -> None:
    sides = [open_case(cases / f"600_ab_{side}.json.gz") for side in ("before", "after")]
    slower = change_by_role(diff(*sides)).axes[0].patches
    faster = change_by_role(diff(*sides[::-1])).axes[0].patches
    assert slower[0].get_width() == pytest.approx(-faster[0].get_width())
    assert slower[0].get_width() > 0
    assert slower[0].get_facecolor() != faster[0].get_facecolor()


def test_bars_of_gaps_add_up_to_the_idle_time(cases: Path) -> None:
    found = idle(open_case(cases / "205_no_annotation_eager.json.gz"))
    figure = gaps_by_kernel(found, limit=4)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert len(widths) == 5
    assert sum(widths) == found.gaps["dur_ns"].sum() > 0
    assert sticks_out(figure) < 0.02
    assert {text.get_text() for text in figure.legends[0].texts} == {"launched late by the host", "queued on the GPU"}


def test_idle_time_that_is_unknown_is_no_idle_time_of_zero(cases: Path, run: Run) -> None:
    trace = cases / "109_cpu_only.json"
    figure = gaps_by_kernel(idle(open_case(trace)))
    assert sticks_out(figure) < 0.02
    for shown in (" ".join(text.get_text() for text in texts(figure)), run("idle", trace).stdout):
        assert "no GPU work was recorded, so idle time is unknown" in shown
        assert "0 ns" not in shown
        assert "no gaps" not in shown


def test_a_trace_without_gaps_still_has_a_plot(sample: Trace) -> None:
    found = idle(sample)
    figure = gaps_by_kernel(replace(found, gaps=found.gaps.clear()))
    assert sticks_out(figure) < 0.02
    assert {text.get_text() for text in texts(figure)} == {
        "Gaps on the GPU: 0 ns, by the kernel that ends them",
        "no gaps",
    }


def test_a_rank_is_as_long_as_its_recording(cases: Path) -> None:
    found = compare(open_traces(cases / "303_allreduce_wait", cache=False))
    figure = time_by_rank(found)
    assert sticks_out(figure) < 0.02
    ends = [bar.get_x() + bar.get_width() for bar in figure.axes[0].patches]
    assert max(ends) * 1e3 == pytest.approx(found.per_rank["span_ns"].max())


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_of_their_kind_and_the_same_each_time(sample: Trace, tmp_path: Path, suffix: str) -> None:
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for name in ("a", "b"):
        save(kernels_by_time(hotspots(sample)), tmp_path / f"{name}{suffix}")
    data = [(tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b")]
    assert data[0].startswith(starts[suffix])
    assert data[0] == data[1]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("hotspots", "000_baseline.json"), "kernels.png"),
        (("hotspots", "000_baseline.json", "--by", "role"), "roles.svg"),
        (("blocks", "210_dense_first3_moe.json.gz"), "strip.pdf"),
        (("diff", "600_ab_before.json.gz", "600_ab_after.json.gz"), "change.png"),
        (("idle", "203_vllm_detailed.json.gz"), "gaps.svg"),
        (("ranks", "303_allreduce_wait"), "ranks.png"),
    ],
)
def test_commands_draw_beside_what_they_print(
    run: Run, cases: Path, tmp_path: Path, arguments: tuple[str, ...], file: str
) -> None:
    given = [cases / one if (cases / one).exists() else one for one in arguments]
    drawn = run(*given, "--plot", tmp_path / file, "--json")
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / file).stat().st_size > 1000
    assert json.loads(drawn.stdout) == json.loads(run(*given, "--json").stdout)
    assert f"wrote {tmp_path / file}" in drawn.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("hotspots", "000_baseline.json", "--plot", "x.txt"), 2),
        (("blocks", "213_no_repeats.json", "--plot", "x.png"), 1),
        (("blocks", "303_allreduce_wait", "--plot", "x.png"), 2),
        (("hotspots", "000_baseline.json", "--plot", "no/such/folder/x.png"), 1),
    ],
)
def test_what_cannot_be_drawn_is_an_error_in_one_line(
    run: Run, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(cases / one if (cases / one).exists() else one for one in arguments))
    assert result.exit_code == code
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


SIGHT = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}
"""What is left of a colour (Machado, Oliveira and Fernandes 2009)."""


@pytest.mark.parametrize("sight", SIGHT)
def test_groups_of_roles_can_be_told_apart_in_light_and_dark(sight: str) -> None:
    import numpy as np
    from matplotlib.colors import to_rgb

    css = (Path(figures.__file__).parent / "templates" / "page.css").read_text(encoding="utf-8")
    dark = dict(
        re.findall(r"(--[a-z]+): (#[0-9a-f]{6});", css.split("prefers-color-scheme: dark", 1)[1].split("\n}\n")[0])
    )
    light = list(style.GROUP_COLOURS.values())
    for colours in (light, [dark[figures.VARIABLES[colour]] for colour in light]):
        seen = [np.array(SIGHT[sight]) @ np.array(to_rgb(colour)) for colour in colours]
        assert all(np.linalg.norm(one - other) > 0.2 for one, other in combinations(seen, 2))


def ranking(rows: list[tuple[str, str | None, int]], phase: str | None = "decode") -> Hotspots:
    """A ranking of kernels: name, role, time per step."""
    frame = pl.DataFrame(rows, schema={"name": pl.String, "role": pl.String, "per_step_ns": pl.Int64}, orient="row")
    frame = frame.with_columns(total_ns="per_step_ns", tile=pl.lit(None, dtype=pl.String))
    total = int(frame["total_ns"].sum())
    return Hotspots(frame, pl.DataFrame(), total, 1 if rows else 0, phase)


def test_a_kernel_of_several_roles_is_of_no_part_of_the_model() -> None:
    roles = ["attention", "gate_up", "communication", "lm_head", "norm", None]
    figure = kernels_by_time(ranking([(f"k{at}", role, 1000 - at) for at, role in enumerate(roles)]))
    entries = [text.get_text() for text in figure.legends[0].texts]
    assert entries == [*style.ROLE_GROUPS, "several roles"]
    assert [bool(bar.get_hatch()) for bar in figure.axes[0].patches] == [False, False, True, False, False, True]
    assert sticks_out(figure) < 0.02


def test_shares_too_small_to_read_are_bounded() -> None:
    figure = kernels_by_time(ranking([("large", "norm", 10_000_000), ("small", "norm", 1000)]))
    shown = [text.get_text() for text in texts(figure)]
    assert any(text.endswith("· <0.1 %") for text in shown)
    assert not any("0.0 %" in text.replace("100.0 %", "") for text in shown)


@pytest.mark.parametrize("by", ["kernel", "role", "family"])
def test_a_plot_without_bars_says_so(by: str) -> None:
    figure = kernels_by_time(ranking([], "prefill"), by)
    assert {text.get_text() for text in texts(figure)} == {
        f"Kernel time per prefill step, by {by}",
        "no complete prefill step",
    }
    assert sticks_out(figure) < 0.02


def test_two_equal_traces_have_a_plot_without_change(sample: Trace) -> None:
    figure = change_by_role(diff(sample, sample))
    assert "no change" in {text.get_text() for text in texts(figure)}
    assert sticks_out(figure) < 0.02


@pytest.mark.parametrize("width", [6.2, style.WIDTH])
def test_a_strip_of_every_part_of_the_model_keeps_its_legend_within_the_figure(
    open_spec: Callable[..., tuple[Trace, Any]], width: float
) -> None:
    trace, _ = open_spec(models.llama_decode(layers=8, steps=1))
    cut = segment(trace)
    in_block = pl.col("block").is_not_null()
    roles = [names[0] for names in style.ROLE_GROUPS.values()]
    every = cut.events.with_columns(role=pl.when(in_block).then(pl.lit(roles).list.get(pl.col("index") % len(roles))))
    figure = block_strip(Segmentation(cut.steps, cut.blocks, every), width=width)
    assert len(figure.legends[0].texts) == len(style.ROLE_GROUPS)
    assert sticks_out(figure) < 0.02
