"""The report's HTML, without a browser: one self-contained, well-formed, escaped and complete page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synthetic import generate, models, write
from traceanalyzer.cli.main import cli

Pages = Callable[..., Path]
Run = Callable[..., Any]
VOID = {"meta", "link", "img", "input", "br", "hr", "path", "use", "rect"}


class Page(HTMLParser):
    """Elements of a page: ids, headings, attributes and text, with a check that tags nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, self.getpos()


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def section_ids(page: Page) -> list[str]:
    return [attrs["id"] or "" for tag, attrs in page.tags if tag == "section"]


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred steps of 32 blocks."""
    folder = tmp_path_factory.mktemp("long")
    return write(generate(models.llama_decode(layers=32, steps=100), 1), folder / "long.json.gz")


def test_a_hundred_steps_fit_two_megabytes(pages: Pages, long_trace: Path) -> None:
    page = pages(long_trace)
    assert page.stat().st_size < 2_000_000
    assert "median of 100 complete decode steps" in page.read_text(encoding="utf-8")


def test_it_refers_to_nothing_outside(pages: Pages, samples: Path) -> None:
    page = read(pages(samples / "gptoss20b_decode_synthetic.json.gz"))
    assert page.open == []
    for tag, attrs in page.tags:
        assert tag not in {"iframe", "object", "embed", "base", "form"}
        for name in ("src", "href", "xlink:href", "action"):
            value = attrs.get(name)
            assert value is None or value.startswith(("#", "data:,")), (tag, value)
        assert not any(name.startswith("on") for name in attrs)
    assert "url(http" not in page.text
    assert "@import" not in page.text


def test_only_its_own_script_may_run(pages: Pages, cases: Path) -> None:
    page = read(pages(cases / "017_nasty_names.json"))
    (policy,) = (attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}';", policy)
    assert [attrs.get("type") for tag, attrs in page.tags if tag == "script"] == ["application/json", None]
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "arguments",
    [
        ("000_baseline.json",),
        ("109_cpu_only.json",),
        ("113_two_gpus.json.gz",),
        ("206_two_batch_sizes.json.gz",),
        ("213_no_repeats.json",),
        ("216_gpu_burst_after_markers.json.gz",),
        ("303_allreduce_wait",),
        ("305_pp2",),
        ("--diff", "600_ab_before.json.gz", "600_ab_after.json.gz"),
        ("403_roofline_shapes.json", "--gpu", "H100 SXM5"),
        ("--serving", "500_bench_before.json", "--serving", "500_bench_after.json"),
    ],
    ids=lambda arguments: arguments[0] if len(arguments) == 1 else " ".join(arguments[:2]),
)
def test_pages_are_well_formed_and_accessible(pages: Pages, cases: Path, arguments: tuple[str, ...]) -> None:
    given = [cases / one if (cases / one).exists() else one for one in arguments]
    page = read(pages(*given))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids)), "ids are unique"
    referred = [
        value for _, attrs in page.tags for key in ("aria-labelledby", "aria-describedby") if (value := attrs.get(key))
    ]
    referred += [value[1:] for _, attrs in page.tags if (value := attrs.get("href")) and value.startswith("#")]
    assert set(referred) <= set(ids)
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(later - former <= 1 for former, later in zip(page.headings, page.headings[1:], strict=False)), (
        "no level skipped"
    )
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    images = [attrs for _, attrs in page.tags if attrs.get("role") == "img"]
    assert all(len(attrs.get("aria-label") or "") > 20 for attrs in images)
    assert {attrs.get("scope") for tag, attrs in page.tags if tag == "th"} <= {"col"}
    assert "how" in section_ids(page)
    assert "warnings" in section_ids(page)


def test_it_says_what_the_commands_say(pages: Pages, run: Run, samples: Path) -> None:
    trace = samples / "gptoss20b_decode_synthetic.json.gz"
    text = pages(trace).read_text(encoding="utf-8")
    held = json.loads(run("roofline", trace, "--json").stdout)
    assert held["findings"][-1]["message"] in text
    hot = json.loads(run("hotspots", trace, "--phase", "decode", "--json").stdout)
    assert f"{hot['rows'][0]['per_step_us']:,.1f}" in text
    blocks = json.loads(run("blocks", trace, "--phase", "decode", "--json").stdout)
    assert escape(blocks["timelines"][0]["steps"][0]["blocks"][0]["first_kernel"]) in text


def test_the_kernels_behind_a_block_sum_to_its_time(pages: Pages, run: Run, cases: Path) -> None:
    page = pages(cases / "000_baseline.json").read_text(encoding="utf-8")
    match = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    kernels = json.loads(match[1])
    blocks = json.loads(run("blocks", cases / "000_baseline.json", "--json").stdout)["timelines"][0]["steps"][0][
        "blocks"
    ]
    for block in blocks:
        own = kernels["strips"]["strip0"][str(block["index"])]
        assert sum(row[3] for row in own) / 1000 == pytest.approx(block["kernel_sum_us"], rel=1e-6)


def test_a_slow_block_is_named(pages: Pages, tmp_path: Path) -> None:
    from dataclasses import replace

    spec = models.llama_decode(layers=16, steps=2)
    layers = list(spec.model.layers)
    slow = tuple(replace(k, dur_us=k.dur_us * 3) if k.role == "down" else k for k in layers[9].kernels)
    layers[9] = replace(layers[9], kernels=slow)
    path = write(generate(replace(spec, model=replace(spec.model, layers=tuple(layers))), 1), tmp_path / "slow.json")
    assert re.search(r"Block 9 is \d+ % slower than its kind", pages(path).read_text(encoding="utf-8"))


def test_two_traces_are_explained_by_the_kernel_that_changed(pages: Pages, cases: Path) -> None:
    page = read(pages("--diff", cases / "600_ab_before.json.gz", cases / "600_ab_after.json.gz"))
    assert "from 613.50 µs to 668.70 µs (+9.0 %)" in page.text
    assert "fused_moe_kernel in moe_gate_up of 3 moe blocks" in page.text
    assert {"changes", "after-trace", "before-trace", "after-hotspots", "before-hotspots"} <= set(section_ids(page))


def test_the_other_way_round_undoing_saves_nothing(pages: Pages, cases: Path) -> None:
    page = read(pages("--diff", cases / "600_ab_after.json.gz", cases / "600_ab_before.json.gz"))
    assert "(−8.3 %)" in page.text
    assert "undoing it saves" not in page.text


def test_ranks_have_their_section(pages: Pages, cases: Path) -> None:
    page = read(pages(cases / "303_allreduce_wait"))
    assert "ranks" in section_ids(page)
    assert "rank 1 (75.0 %)" in page.text
    assert "ranks" not in section_ids(read(pages(cases / "000_baseline.json")))


def test_serving_results_stand_beside_the_trace_or_alone(pages: Pages, cases: Path) -> None:
    results = ("--serving", cases / "500_bench_before.json", "--serving", cases / "500_bench_after.json")
    alone = read(pages(*results))
    assert section_ids(alone)[0] == "serving"
    beside = read(pages(cases / "000_baseline.json", *results))
    assert {"hotspots", "serving"} <= set(section_ids(beside))
    assert "tok/s" in beside.text


@pytest.mark.parametrize(
    "arguments", [("000_baseline.json",), ("012_ranks.tar.gz",), ("303_allreduce_wait", "--rank", "1"), ("store",)]
)
def test_what_to_run_next_opens_the_trace_of_the_page(
    pages: Pages, run: Run, cases: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    if arguments == ("store",):
        moved = shutil.copy(cases / "000_baseline.json", tmp_path / "gone.json")
        assert run("ingest", moved, "-o", tmp_path / "store").exit_code == 0
        moved.unlink()
        given = [tmp_path / "store"]
    else:
        given = [cases / one if (cases / one).exists() else one for one in arguments]
    text = unescape(pages(*given).read_text(encoding="utf-8"))
    (line,) = re.findall(r"<code>traceanalyzer (hotspots .*?)</code>", text)
    shown = run(*shlex.split(line), "--json")
    assert shown.exit_code == 0, shown.output
    first = json.loads(shown.stdout)["rows"][0]
    assert f"{first['per_step_us']:,.1f}" in text


def test_what_came_through_a_pipe_is_not_offered_again(cases: Path, tmp_path: Path) -> None:
    text = (cases / "000_baseline.json").read_bytes()
    page = tmp_path / "page.html"
    assert CliRunner().invoke(cli, ["report", "-", "-o", str(page)], input=text).exit_code == 0
    assert "<code>traceanalyzer hotspots DIR" in page.read_text(encoding="utf-8")


def test_warnings_name_their_place(pages: Pages, cases: Path) -> None:
    text = pages(cases / "001_truncated_midevent.json").read_text(encoding="utf-8")
    assert "truncated" in text
    assert re.search(r"byte [\d,]+, line \d+", text)


def test_figures_take_the_colours_of_the_page(pages: Pages, samples: Path) -> None:
    text = pages(samples / "gptoss20b_decode_synthetic.json.gz").read_text(encoding="utf-8")
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert "var(--ink)" in drawn
    assert re.findall(r"(?:fill|stroke): ?#", drawn) == []


def test_the_same_trace_gives_the_same_page(run: Run, cases: Path, tmp_path: Path) -> None:
    made = []
    for name in ("a.html", "b.html"):
        assert run("report", cases / "000_baseline.json", "-o", tmp_path / name).exit_code == 0
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "expected a PATH"),
        (("--diff", "000_baseline.json"), 2, "compares two traces, got 1"),
        (("000_baseline.json", "--model", "no-such-model"), 2, "no-such-model"),
        (("000_baseline.json", "--phase", "prefill"), 1, "no complete prefill step"),
        (("003_empty.json",), 1, "003_empty.json"),
        (("303_allreduce_wait", "--rank", "9"), 2, "no trace is of rank 9"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    run: Run, cases: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    given = [cases / one if (cases / one).exists() else one for one in arguments]
    result = run("report", *given, "-o", tmp_path / "page.html")
    assert result.exit_code == code
    assert says in result.output
    assert list(tmp_path.iterdir()) == []


def test_blocks_without_a_usable_time_do_not_end_the_page(shared: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    damaged = shared / "reports" / "faults" / "fuzz_b167d25555_0_t.json"
    result = CliRunner().invoke(cli, ["report", str(damaged), "-o", str(page), "--no-cache"])
    assert result.exit_code == 0, result.output
    assert "<html" in page.read_text(encoding="utf-8")
