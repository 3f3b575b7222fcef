"""docs/benchmarks.md is what the results say; results name no machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from bench.publish import IMAGES, PAGE, fill, images, sections, texts
from bench.results import check_anonymous
from bench.sections import analyses, growth, loading

MACHINE = {"cpu": "A processor", "cores": 2, "memory_gb": 24.0, "system": "Linux 6.1", "file_system": "ext4"}
DOCUMENT: dict[str, Any] = {
    "date": "2026-01-02",
    "commit": "0123456789",
    "machine": MACHINE,
    "versions": {"Python": "3.11.0"},
    "settings": {"repeats": 2, "warmups": 1, "retries": 3},
}


def run(repetition: int, wall: float) -> dict[str, Any]:
    return {
        "repetition": repetition,
        "wall_s": wall,
        "cpu_s": wall,
        "peak_mb": 100.0,
        "others": 0.01,
        "attempts": 1,
        "disturbed": False,
    }


def loaded() -> dict[str, Any]:
    """Return results of two sizes: HTA disagrees on the small one and was too slow for the large one."""
    inputs = [
        {"kind": "kernels", "size_mb": size, "raw_mb": float(size), "file_mb": size / 16, "device_events": 10 * size}
        for size in (50, 500)
    ]
    rows = [
        {
            "kind": "kernels",
            "size_mb": size,
            "route": route,
            "runs": runs,
            "warmups": 1,
            "skipped": skipped,
            "answer": answer,
        }
        for size, route, runs, skipped, answer in [
            (50, "traceanalyzer", [run(0, 1.0), run(1, 2.0)], None, "equal"),
            (50, "hta", [run(0, 10.0), run(1, 40.0)], None, "5 events instead of 500"),
            (500, "traceanalyzer", [run(0, 10.0), run(1, 20.0)], None, "equal"),
            (500, "hta", [], "would take about 300 s, the limit is 60 s", None),
        ]
    ]
    return {**DOCUMENT, "results": {"inputs": inputs, "rows": rows}}


def test_the_page_is_what_the_results_say() -> None:
    page = PAGE.read_text()
    assert fill(page, texts()) == page, "stale: run python -m bench.publish"


def test_filling_the_page_twice_changes_nothing() -> None:
    page = "Words.\n<!-- bench:one -->\nold\n<!-- /bench:one -->\nMore.\n"
    once = fill(page, {"one": "new \\1 text"})
    assert once == "Words.\n<!-- bench:one -->\nnew \\1 text\n<!-- /bench:one -->\nMore.\n"
    assert fill(once, {"one": "new \\1 text"}) == once


@pytest.mark.parametrize(
    "page", ["", "<!-- bench:two --><!-- /bench:two -->", "<!-- bench:one -->", "<!-- bench:one -->" * 2]
)
def test_a_page_without_a_place_for_a_section_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match=r"bench:|markers"):
        fill(page, {"one": "text"})


def test_every_picture_of_the_results_is_there_and_small() -> None:
    for name in images():
        assert (IMAGES / name).stat().st_size < 100_000


def test_sections_come_in_order_and_name_their_results() -> None:
    found = sections()
    assert [module.ORDER for module in found.values()] == sorted(module.ORDER for module in found.values())
    assert {"loading", "growth", "analyses"} <= set(found)


def test_a_table_gives_ratios_by_pair_and_shows_what_disagrees_or_was_skipped() -> None:
    text = loading.render(loaded())
    assert (
        "| HTA | 25.0 (10.0–40.0) | 25.0 | 100 | 2.00 | 15.0 (10.0–20.0) | DISAGREES: 5 events instead of 500 |" in text
    )
    assert "| HTA |  |  |  |  |  | would take about 300 s, the limit is 60 s |" in text
    assert "no Python functions** (2 runs after 1 uncounted unless the table says so)" in text
    assert "Measured 2026-01-02 on A processor, 2 cores, 24 GB" in text


def test_growth_is_fitted_to_the_medians() -> None:
    assert "| traceanalyzer | 50.0, 500 | 1.00 | 1.00 |" in growth.render(loaded())


def test_the_plot_depends_on_the_numbers_only_and_stays_small() -> None:
    first, second = (growth.images(loaded())["growth.svg"] for _ in range(2))
    assert first == second
    assert first.startswith(b"<?xml")
    assert len(first) < 100_000


@pytest.mark.parametrize(
    ("slow", "said"),
    [
        (4.0, "none of the 2 commands takes above 5 s: the slowest, `idle`, takes 4.00 s (median)"),
        (6.0, "1 of the 2 commands takes above 5 s (`idle`): the slowest, `idle`, takes 6.00 s (median)"),
    ],
)
def test_the_verdict_follows_from_the_times(slow: float, said: str) -> None:
    found = {
        name: {"command": [run(0, wall)], "call": [{**run(0, wall), "call_s": wall / 2}]}
        for name, wall in [("blocks", 1.0), ("idle", slow)]
    }
    sizes = {"trace": 500.0, "after": 500.0, "ranks": 500.0}
    results = {"kind": "python", "raw_mb": sizes, "ranks": 2, "analyses": found}
    assert said in analyses.render({**DOCUMENT, "results": results})


@pytest.mark.parametrize("text", ["/home/somebody/x.json", "in '/tmp/a/b' it", "TMPDIR=/var/tmp"])
def test_results_with_a_path_of_the_machine_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="absolute path"):
        check_anonymous({"a": [text]})


def test_results_with_the_name_of_the_host_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node-17")
    with pytest.raises(ValueError, match="host"):
        check_anonymous({"node-17": 1})


def test_words_with_slashes_are_no_paths() -> None:
    check_anonymous({"a": "tokens/s and MB/s", "commit": "1234+", "b": "bench/results/x.json"})


def test_nothing_in_the_page_names_a_path_of_a_machine() -> None:
    check_anonymous([line for line in Path(PAGE).read_text().splitlines() if not line.startswith("    ")])
