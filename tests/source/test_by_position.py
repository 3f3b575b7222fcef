"""Kernels of a graph come from where their counterparts of an eager step come from, whatever they are called."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.architectures import FA3_COMBINE, SPLIT_K
from tests.support.sourced_recording import Line, SourcedRecording, block, model
from traceanalyzer.commands.source.compute import Companions, read_notes, source
from traceanalyzer.commands.source.result import SourceDocument, SourceRow
from traceanalyzer.problems import TraceError

OTHER_TILES = {"64x8_64x16_4x1": "192x16_64x6_1x2", "192x8_64x8_2x1": "64x16_64x11_4x1"}


def decode_name(name: str) -> str:
    """The name that a decode step has for what a prefill step calls otherwise: another tile."""
    for tile, other in OTHER_TILES.items():
        name = name.replace(tile, other)
    return name


def decode_of(lines: list[Line]) -> list[tuple[str, Line | None]]:
    """A decode step of a model: renamed products, and kernels that only decode has, which come from nowhere else."""
    step: list[tuple[str, Line | None]] = []
    for line in lines:
        step.append((decode_name(line.kernel), line))
        if line.module == "Attention" and line.line == 23:
            step.append((FA3_COMBINE, None))
        if line.line == 32:
            step.append((SPLIT_K, None))
    return step


def told(row: SourceRow) -> tuple[str | None, str | None, int | None]:
    return row.op, row.module_class, row.model_line


def check(answer: SourceDocument, step: list[tuple[str, Line | None]]) -> None:
    """Every kernel has its own line or none, never another's; what finishes another kernel has that one's."""
    lines = {(line.op, line.module, line.line) for _, line in step if line is not None}
    by_name = {
        FA3_COMBINE: {("vllm::unified_attention", "Attention", 23)},
        SPLIT_K: {("aten::mm", "RowParallelLinear", 32)},
    }
    for name, line in step:
        if line is not None:
            by_name.setdefault(name, set()).add((line.op, line.module, line.line))
    for row in answer.rows:
        if row.via is None:
            continue
        assert told(row) in lines
        assert row.kernel is not None
        assert told(row) in by_name[row.kernel]


def test_a_graph_is_explained_by_the_prefill_step_of_its_own_recording(tmp_path: Path) -> None:
    recording = SourcedRecording()
    recording.eager(model())
    step = decode_of(model())
    recording.replayed([name for name, _ in step])
    recording.replayed([name for name, _ in step])
    answer = source(recording.trace(tmp_path))
    check(answer, step)
    assert answer.phase == "decode"
    assert answer.steps == 2
    assert answer.resolved_share == pytest.approx(1)
    assert answer.by_via.position == pytest.approx(1)
    assert answer.mapping is not None
    assert (answer.mapping.phase, answer.mapping.blocks) == ("prefill", 6)


def test_a_recording_without_stacks_is_explained_by_another(tmp_path: Path) -> None:
    with_stacks, replayed = SourcedRecording(), SourcedRecording()
    with_stacks.eager(model())
    step = decode_of(model())
    replayed.replayed([name for name, _ in step])
    other = with_stacks.trace(tmp_path / "map")
    answer = source(replayed.trace(tmp_path / "decode"), companions=Companions(other=other))
    check(answer, step)
    assert answer.resolved_share == pytest.approx(1)
    bare = source(replayed.trace(tmp_path / "bare"))
    assert bare.resolved_share == 0
    assert {warning.code for warning in bare.warnings} == {"source_graph_without_source"}


def test_a_map_of_another_model_is_refused_with_the_reason(tmp_path: Path) -> None:
    other, replayed = SourcedRecording(), SourcedRecording()
    other.eager(model(layers=9))
    replayed.replayed([line.kernel for line in model()])
    answer = source(replayed.trace(tmp_path / "a"), companions=Companions(other=other.trace(tmp_path / "b")))
    assert answer.resolved_share == 0
    assert answer.mapping is not None
    assert "9 blocks" in (answer.mapping.reason or "")


@pytest.mark.parametrize("seed", range(8))
def test_lost_kernels_never_shift_a_source_to_another_role(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    recording = SourcedRecording()
    recording.eager(model(layers=10))
    step = [one for one in decode_of(model(layers=10)) if rng.random() > 0.03]
    recording.replayed([name for name, _ in step])
    recording.replayed([name for name, _ in step])
    check(source(recording.trace(tmp_path)), step)


def test_a_step_explains_itself_by_the_same_names(tmp_path: Path) -> None:
    recording, again = SourcedRecording(), SourcedRecording()
    recording.eager(model())
    again.replayed([line.kernel for line in model()])
    answer = source(again.trace(tmp_path / "a"), companions=Companions(other=recording.trace(tmp_path / "b")))
    assert {row.level for row in answer.rows} == {"same_name"}
    assert answer.resolved_share == pytest.approx(1)


def test_a_block_that_differs_keeps_its_own_source_and_is_listed(tmp_path: Path) -> None:
    recording = SourcedRecording()
    lines = model()
    at = [number for number, line in enumerate(lines) if line.line == 30][2]
    lines[at] = Line(lines[at].kernel, "aten::mm", "MergedColumnParallelLinear", 99)
    recording.eager(lines)
    answer = source(recording.trace(tmp_path))
    (row,) = [row for row in answer.rows if row.role == "gate_up"]
    assert row.model_line == 30
    assert row.agreement == pytest.approx(5 / 6)
    assert [(other.line, round(other.share, 3)) for other in row.others] == [(99, 0.167)]


def test_without_stacks_the_op_is_still_known(tmp_path: Path) -> None:
    recording = SourcedRecording(stacks=False)
    recording.eager(model())
    answer = source(recording.trace(tmp_path))
    assert answer.resolved_share == pytest.approx(1)
    assert {row.op for row in answer.rows if row.role == "qkv_proj"} == {"aten::mm"}
    assert all(row.line is None for row in answer.rows)


def test_rows_by_line_and_module_hold_all_the_time(tmp_path: Path) -> None:
    recording = SourcedRecording()
    recording.eager([*model(), *block()][: len(model())])
    trace = recording.trace(tmp_path)
    for by in ("kernel", "role", "line", "module"):
        answer = source(trace, by)
        assert sum(row.per_step_us for row in answer.rows) * answer.steps == pytest.approx(answer.total_us)
        assert len({row.id for row in answer.rows}) == len(answer.rows)
    assert source(trace, phase="prefill").total_us == source(trace).total_us
    with pytest.raises(ValueError, match="1 prefill"):
        source(trace, phase="mixed")


def test_notes_on_graph_nodes_come_before_everything_else(tmp_path: Path) -> None:
    recording = SourcedRecording()
    recording.eager(model())
    recording.replayed([line.kernel for line in model()])
    kernels = [event for event in recording.events if event["cat"] == "kernel"][len(model()) :]
    for number, (event, line) in enumerate(zip(kernels, model(), strict=True)):
        event["args"] |= {"graph node id": 100 + number}
        if line.line == 30:
            event["args"] |= {"fqn_map": {"0": f"model.layers.{number}.mlp.gate_up_proj"}}
    trace = recording.trace(tmp_path)
    (row,) = [row for row in source(trace).rows if row.role == "gate_up"]
    assert (row.via, row.module_class) == ("annotation", "gate_up_proj")
    told_by_file = Companions(notes={100: "model.embed_tokens"})
    (row,) = [row for row in source(trace, companions=told_by_file).rows if row.role == "embedding"]
    assert (row.via, row.module) == ("annotation", "model.embed_tokens")


def test_notes_are_read_from_json_and_never_from_pickles(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text(
        '{"100": [{"fqn_map": {"a": "layers.0.mlp"}}], "101": [{"str": "head"}], "102": []}'
    )
    assert read_notes(tmp_path / "notes.json") == {100: "layers.*.mlp", 101: "head"}
    for name, text in (("notes.pkl", "x"), ("odd.json", "[1]"), ("deep.json", "[" * 100_000), ("text.json", "{")):
        (tmp_path / name).write_text(text)
        with pytest.raises(TraceError):
            read_notes(tmp_path / name)
