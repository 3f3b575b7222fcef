"""One command, one set of rows: JSON, CSV, text, page and exported files say the same, in the same order."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from traceanalyzer.wording import bounded, duration_us, percent, signed

Run = Callable[..., Any]
Pages = Callable[..., Path]
TRACES = ("000_baseline.json", "113_two_gpus.json.gz", "205_no_annotation_eager.json.gz")
GPU = ("--gpu", "H100 SXM5")
SIDES = ("600_ab_before.json.gz", "600_ab_after.json.gz")
JOBS = ("303_allreduce_wait", "305_pp2")


class Tables(HTMLParser):
    """The tables of a page by id: rows of cells as they are read, names in full."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.heads: dict[str, list[str]] = {}
        self.table = self.part = ""
        self.cell: list[str] | None = None
        self.skipped = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "table":
            self.table = found["id"] or ""
            self.rows[self.table], self.heads[self.table] = [], []
        elif tag in {"thead", "tbody", "tfoot"}:
            self.part = tag
        elif tag == "tr" and self.part == "tbody":
            self.rows[self.table].append([])
        elif tag in {"td", "th"}:
            self.cell = []
        elif tag == "span":
            self.skipped = found.get("class") == "short"

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"} and self.cell is not None:
            text = "".join(self.cell).strip().replace("\u00a0", " ")
            if tag == "th":
                self.heads[self.table].append(text)
            elif self.part == "tbody":
                self.rows[self.table][-1].append(text)
            self.cell = None
        elif tag == "span":
            self.skipped = False

    def handle_data(self, data: str) -> None:
        if self.cell is not None and not self.skipped:
            self.cell.append(data)

    def column(self, table: str, heading: str) -> list[str]:
        """The cells below the heading that starts so; empty ones where the page leaves out a column or all rows."""
        at = [i for i, head in enumerate(self.heads.get(table, [])) if head.startswith(heading)]
        return [row[at[0]] if at else "" for row in self.rows.get(table, [])]


def given(cases: Path, arguments: Sequence[str]) -> list[Any]:
    return [cases / one if (cases / one).exists() else one for one in arguments]


@pytest.fixture(scope="module")
def said(run: Run, cases: Path) -> Callable[..., str]:
    """Run a command on cases, once, wide enough for every column; return stdout."""
    kept: dict[tuple[str, ...], str] = {}

    def call(*arguments: str) -> str:
        if arguments not in kept:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("COLUMNS", "400")
                result = run(*given(cases, arguments))
            assert result.exit_code == 0, result.output
            kept[arguments] = result.stdout
        return kept[arguments]

    return call


def rows_of_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def as_csv(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text[:1] in tuple("=+-@\t\r") else text


def assert_same_rows(csv_text: str, rows: Sequence[dict[str, Any]]) -> None:
    """Every cell of the CSV is the JSON's value of that name, row for row."""
    found = rows_of_csv(csv_text)
    assert len(found) == len(rows)
    for line, row in zip(found, rows, strict=True):
        assert line == {key: as_csv(row[key]) for key in line}


def lines_of(text: str, *headings: str) -> list[str]:
    """The lines of the table with these headings."""
    lines = text.splitlines()
    heads = re.compile(r"\s+".join(map(re.escape, headings)))
    start = next(at for at, line in enumerate(lines) if heads.match(line.strip()))
    body = []
    for line in lines[start + 2 :]:
        if not line.strip() or line.startswith("  "):
            break
        body.append(line)
    return body


def assert_lines(lines: Sequence[str], expected: Sequence[Sequence[str]]) -> None:
    """Each line holds the texts of its row, in their order."""
    assert len(lines) == len(expected)
    for line, cells in zip(lines, expected, strict=True):
        assert re.search(".*".join(re.escape(cell) for cell in cells), line), (line, cells)


def us(values: Sequence[float | None]) -> list[str]:
    """Times as a table of the page that is in µs has them."""
    return ["" if value is None else bounded(value, 1) for value in values]


@pytest.mark.parametrize("phase", [(), ("--phase", "decode")], ids=["all", "decode"])
@pytest.mark.parametrize("by", ["kernel", "role", "family"])
@pytest.mark.parametrize("trace", TRACES)
def test_hotspots(said: Callable[..., str], trace: str, by: str, phase: tuple[str, ...]) -> None:
    command = ("hotspots", trace, "--by", by, *phase)
    rows = json.loads(said(*command, "--json"))["rows"]
    assert_same_rows(said(*command, "--csv"), rows)
    if not rows:
        return
    cells = [
        (duration_us(row["total_us"]), percent(row["share"]), f"{row['count']:,}", duration_us(row["per_step_us"]))
        for row in rows
    ]
    assert_lines(lines_of(said(*command, "--limit", "0"), by), cells)


@pytest.mark.parametrize("trace", TRACES)
def test_hotspots_on_the_page(said: Callable[..., str], pages: Pages, cases: Path, trace: str) -> None:
    page = Tables(pages(cases / trace))
    phase = () if trace.startswith("205") else ("--phase", "decode")
    kernels = json.loads(said("hotspots", trace, "--by", "kernel", *phase, "--json"))["rows"]
    assert page.column("kernels", "kernel") == [row["name"] for row in kernels]
    assert page.column("kernels", "time per step") == us([row["per_step_us"] for row in kernels])
    assert page.column("kernels", "share") == [percent(row["share"]) for row in kernels]
    assert page.column("kernels", "role") == [row["role"] or "several" for row in kernels]
    assert page.column("kernels", "runs") == [f"{row['count']:,}" for row in kernels]
    assert page.column("kernels", "mean") == us([row["mean_us"] for row in kernels])
    roles = json.loads(said("hotspots", trace, "--by", "role", *phase, "--json"))["rows"]
    assert page.column("roles", "role") == [row["name"] for row in roles]
    assert page.column("roles", "time per step") == us([row["per_step_us"] for row in roles])


@pytest.mark.parametrize("trace", TRACES)
def test_steps(said: Callable[..., str], pages: Pages, run: Run, cases: Path, tmp_path: Path, trace: str) -> None:
    timelines = json.loads(said("ingest", trace, "--json"))["timelines"]
    steps = [step for timeline in timelines for step in timeline["steps"]]
    page = Tables(pages(cases / trace))
    assert page.column("steps", "step") == [f"{step['index']:,}" for step in steps]
    for heading, key in (("first to last", "span_us"), ("kernel time", "kernel_sum_us"), ("idle", "idle_before_us")):
        assert page.column("steps", heading) == us([step[key] for step in steps])
    target = tmp_path / "steps.csv"
    assert run("export", "csv", cases / trace, "--table", "steps", "-o", target).exit_code == 0
    exported = rows_of_csv(target.read_text(encoding="utf-8"))
    for key in ("label", "phase", "complete", "requests", "tokens", "kernels", "span_us", "blocks", "confidence"):
        assert [row[key] for row in exported] == [as_csv(step[key]) for step in steps]


@pytest.mark.parametrize("trace", TRACES)
def test_idle(said: Callable[..., str], pages: Pages, cases: Path, trace: str) -> None:
    found = json.loads(said("idle", trace, "--json"))
    assert_same_rows(said("idle", trace, "--csv"), found["gaps"])
    classes = [(f"{row['gaps']:,}", duration_us(row["total_us"])) for row in found["classes"]]
    text = said("idle", trace, "--limit", "0")
    assert_lines(lines_of(text, "where and why"), classes)
    page = Tables(pages(cases / trace))
    assert page.column("gaps", "where") == [row["place"] for row in found["classes"]]
    assert page.column("gaps", "total") == us([row["total_us"] for row in found["classes"]])
    if found["host"]:
        assert page.column("host", "total") == us([row["total_us"] for row in found["host"]])[:40]
        assert_lines(lines_of(text, "host event"), [(duration_us(row["total_us"]),) for row in found["host"]])


def test_roofline(said: Callable[..., str], pages: Pages, cases: Path) -> None:
    command = ("roofline", "403_roofline_shapes.json", *GPU)
    rows = json.loads(said(*command, "--json"))["rows"]
    assert_same_rows(said(*command, "--csv"), rows)
    cells = [(f"{row['measured_us']:,.1f}", row["bound"].replace("communication", "comm")) for row in rows]
    assert_lines(lines_of(said(*command, "--limit", "0"), "work"), cells)
    page = Tables(pages(cases / "403_roofline_shapes.json", *GPU))
    assert page.column("roof", "measured") == us([row["measured_us"] for row in rows])
    assert page.column("roof", "floor") == us([row["floor_us"] for row in rows])
    assert page.column("roof", "headroom") == us([row["headroom_us"] for row in rows])


@pytest.mark.parametrize("sides", [SIDES, SIDES[::-1]], ids=["slower", "faster"])
def test_diff(said: Callable[..., str], pages: Pages, cases: Path, sides: tuple[str, str]) -> None:
    rows = json.loads(said("diff", *sides, "--json"))["rows"]
    assert_same_rows(said("diff", *sides, "--csv"), rows)
    changed = [row for row in rows if abs(row["delta_us"]) >= 0.0005]
    cells = [(duration_us(row["before_us"]), signed(row["delta_us"] * 1000)) for row in changed]
    assert_lines(lines_of(said("diff", *sides, "--limit", "0"), "role"), cells)
    page = Tables(pages("--diff", *given(cases, sides)))
    assert page.column("change-kernels", "before") == us([row["before_us"] for row in changed])
    assert page.column("change-kernels", "change") == us([row["delta_us"] for row in changed])


@pytest.mark.parametrize("job", JOBS)
def test_ranks(said: Callable[..., str], pages: Pages, cases: Path, job: str) -> None:
    found = json.loads(said("ranks", job, "--json"))
    rows = found["per_rank"]
    assert_same_rows(said("ranks", job, "--csv"), rows)
    shown = ("compute_us", "exposed_comm_us", "wait_us", "idle_us", "span_us")
    text = said("ranks", job, "--limit", "0")
    cells = [[str(row["rank"]), *(duration_us(row[key]) for key in shown)] for row in rows]
    assert_lines(lines_of(text, "rank"), cells)
    page = Tables(pages(cases / job))
    headings = ("computing", "of which exposed", "waiting", "idle", "first to last")
    for heading, key in zip(headings, shown, strict=True):
        assert page.column("ranks-table", heading) == us([row[key] for row in rows])
    collectives = found["collectives"]
    waited = [sum(row["wait_us"].values()) for row in collectives]
    assert waited == sorted(waited, reverse=True)
    pairs = zip(collectives, waited, strict=True)
    cells = [[row["kind"], duration_us(row["transfer_us"]), duration_us(time)] for row, time in pairs]
    assert_lines(lines_of(text, "collective"), cells)
    assert page.column("collectives", "collective") == [row["kind"] for row in collectives]
    assert page.column("collectives", "waiting") == us(waited)
    assert page.column("causes", "longer by") == us([row["extra_us"] for row in found["causes"]])


@pytest.mark.parametrize("trace", ["000_baseline.json", "206_two_batch_sizes.json.gz", "113_two_gpus.json.gz"])
def test_blocks(said: Callable[..., str], pages: Pages, cases: Path, trace: str) -> None:
    timelines = json.loads(said("blocks", trace, "--json"))["timelines"]
    rows = [
        {
            **block,
            **{f"{role}_us": time for role, time in block["roles"].items()},
            **{"rank": line["rank"], "device": line["device"], "step": step["index"], "block": block["index"]},
            **{"phase": step["phase"], "complete": step["complete"]},
        }
        for line in timelines
        for step in line["steps"]
        for block in step["blocks"]
    ]
    found = rows_of_csv(said("blocks", trace, "--csv"))
    assert found == [{key: as_csv(row.get(key)) for key in found[0]} for row in rows]
    text, page = said("blocks", trace), pages(cases / trace).read_text(encoding="utf-8")
    for line in timelines:
        steps = [step["blocks"] for step in line["steps"] if step["complete"] and step["blocks"]]
        for same in zip(*steps, strict=True):
            time = median(block["kernel_sum_us"] for block in same)
            number, variant = same[0]["index"], same[0]["variant"]
            assert re.search(rf"\b{number} {variant} +{re.escape(f'{time:.2f}')}\b", text)
            assert f"Block {number}, variant {variant}" in page
            assert f", {duration_us(time)}" in page


@pytest.mark.parametrize("phase", [(), ("--phase", "decode")], ids=["all", "decode"])
def test_exported_tables(
    said: Callable[..., str], run: Run, cases: Path, tmp_path: Path, phase: tuple[str, ...]
) -> None:
    trace = "403_roofline_shapes.json"
    assert run("export", "csv", cases / trace, *GPU, *phase, "-o", tmp_path / "out").exit_code == 0
    read = {path.stem: path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir()}
    by_name = sorted(rows_of_csv(said("hotspots", trace, *GPU, *phase, "--csv")), key=lambda row: row["name"])
    assert sorted(rows_of_csv(read["kernels"]), key=lambda row: row["name"]) == by_name
    assert rows_of_csv(read["blocks"]) == rows_of_csv(said("blocks", trace, *phase, "--csv"))
    assert rows_of_csv(read["roofline"]) == rows_of_csv(said("roofline", trace, *GPU, *phase, "--csv"))


def test_a_phase_limits_what_is_exported(run: Run, cases: Path, samples: Path, tmp_path: Path) -> None:
    trace = cases / "214_aborted_last_step.json.gz"
    for name, phase in (("all", ()), ("decode", ("--phase", "decode"))):
        tables = ("--table", "steps", "--table", "kernels", "--table", "events")
        assert run("export", "csv", trace, *tables, *phase, "-o", tmp_path / name).exit_code == 0
    steps = rows_of_csv((tmp_path / "decode" / "steps.csv").read_text(encoding="utf-8"))
    assert {row["phase"] for row in steps} == {"decode"}
    events = rows_of_csv((tmp_path / "decode" / "events.csv").read_text(encoding="utf-8"))
    assert {row["step"] for row in events} == {row["step"] for row in steps}
    refused = run("export", "csv", trace, "--phase", "mixed", "-o", tmp_path / "mixed")
    assert refused.exit_code == 1
    assert "no complete mixed step" in refused.stderr
