"""``traceanalyzer capture`` against a fake server: the order of calls, every documented fault, and what is printed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from click.testing import CliRunner, Result

from tests.support.fake_server import FakeServer
from tests.support.places import CASES
from traceanalyzer.cli.main import cli

Serve = Callable[..., FakeServer]
Run = Callable[..., Result]
START, STOP, COMPLETE = "/start_profile", "/stop_profile", "/v1/completions"


def failure(result: Result) -> str:
    """The one line a failed command leaves, after its progress lines."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.output
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


def test_a_trace_is_recorded_named_and_summarised(serve: Serve, capture: Run, tmp_path: Path) -> None:
    server = serve()
    result = capture(server, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["schema"] == "traceanalyzer/capture/1"
    assert found["name"] == "tiny-8b_bs4_in16_out6"
    (file,) = found["files"]
    assert Path(file).name.startswith("tiny-8b_bs4_in16_out6_rank0.")
    assert (found["engine"], found["version"], found["model"]) == ("vllm", "0.26.0", "org/tiny-8b")
    assert found["requests"]["completed"] == 4
    assert found["requests"]["tokens"] == 24
    assert found["decode_steps"] == found["decode_steps_of_batch"] == 3
    assert found["summary"]["schema"] == "traceanalyzer/summary/1"
    assert found["summary"]["timelines"][0]["rank"] == 0


def test_the_batch_is_warmed_up_before_the_profiler_starts(serve: Serve, capture: Run) -> None:
    server = serve()
    capture(server)
    assert server.paths() == [COMPLETE] * 4 + [START] + [COMPLETE] * 4 + [STOP]
    assert [body["max_tokens"] for body in server.bodies(COMPLETE)] == [4] * 4 + [6] * 4


def test_requests_run_at_once_with_exact_lengths_and_no_common_prefix(serve: Serve, capture: Run) -> None:
    server = serve(token_seconds=0.02)
    capture(server)
    assert server.most_in_flight == 4
    bodies = server.bodies(COMPLETE)
    assert all(len(body["prompt"]) == 16 and body["ignore_eos"] and body["stream"] for body in bodies)
    assert len({tuple(body["prompt"][:4]) for body in bodies}) == len(bodies)


def test_the_table_names_the_file_and_the_batch(serve: Serve, capture: Run) -> None:
    result = capture(serve())
    assert result.exit_code == 0, result.output
    assert "captured tiny-8b_bs4_in16_out6" in result.stdout
    assert "3 of 3 complete decode steps have batch 4" in result.stdout
    assert "profiler started" in result.stderr


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.11.0", "VLLM_TORCH_PROFILER_DIR"), ("0.26.0", "--profiler-config"), (None, "VLLM_TORCH_PROFILER_DIR")],
)
def test_a_server_without_a_profiler_is_told_its_flag(
    serve: Serve, capture: Run, version: str | None, told: str
) -> None:
    server = serve(profiler=False, version=version)
    line = failure(capture(server))
    assert "404" in line
    assert told in line
    assert STOP not in server.paths()


def test_an_active_session_of_somebody_else_is_left_alone(serve: Serve, capture: Run) -> None:
    server = serve(active=True)
    line = failure(capture(server))
    assert "409" in line
    assert "--take-over" in line
    assert STOP not in server.paths()
    assert server.does.active


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_active_session_is_taken_over_on_request(serve: Serve, capture: Run, engine: str) -> None:
    server = serve(active=True, engine=engine)
    result = capture(server, "--take-over", "--json")
    assert result.exit_code == 0, result.output
    assert [path for path in server.paths() if path != COMPLETE] == [START, STOP, START, STOP]
    assert len(json.loads(result.stdout)["files"]) == 1


def test_refused_options_are_shown_in_the_servers_words(serve: Serve, capture: Run) -> None:
    server = serve(start_status=400)
    assert "delay_iterations must not be negative" in failure(capture(server))
    assert STOP not in server.paths()


def test_no_file_is_told_with_the_directory_and_the_profiler_is_stopped(
    serve: Serve, capture: Run, tmp_path: Path
) -> None:
    server = serve(trace=None)
    line = failure(capture(server, "--file-timeout", "0.2"))
    assert "no new trace" in line
    assert str(tmp_path / "profiles") in line
    assert server.paths()[-1] == STOP


def test_files_that_lay_there_before_are_not_taken(serve: Serve, capture: Run, tmp_path: Path) -> None:
    server = serve()
    old = tmp_path / "profiles" / "rank0.1.pt.trace.json.gz"
    old.write_bytes(server.does.trace.read_bytes() if server.does.trace else b"")
    result = capture(server, "--json")
    assert str(old) not in json.loads(result.stdout)["files"]
    assert len(json.loads(result.stdout)["files"]) == 1


def test_a_file_that_is_written_slowly_is_waited_for(
    serve: Serve, capture: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceanalyzer.commands.capture.profile_files.SETTLE", 0.4)
    server = serve(flush_delay=0.15)
    result = capture(server, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["decode_steps"] == 3


def test_an_empty_trace_is_refused(serve: Serve, capture: Run) -> None:
    server = serve(trace=CASES / "108_metadata_only.json")
    result = capture(server, "--json")
    assert result.exit_code == 0 or failure(result)
    if result.exit_code == 0:
        warnings = json.loads(result.stdout)["warnings"]
        assert any(warning["code"] == "batch_not_reached" for warning in warnings)


def test_the_front_ends_file_is_left_out(serve: Serve, capture: Run) -> None:
    result = capture(serve(front_end=True), "--json")
    assert [Path(file).name.split(".")[0] for file in json.loads(result.stdout)["files"]] == [
        "tiny-8b_bs4_in16_out6_rank0"
    ]


def test_every_rank_is_found(serve: Serve, capture: Run) -> None:
    result = capture(serve(ranks=2, trace_of_rank="303_allreduce_wait/rank{rank}.pt.trace.json.gz"), "--json")
    found = json.loads(result.stdout)
    assert len(found["files"]) == 2
    assert [timeline["rank"] for timeline in found["summary"]["timelines"]] == [0, 1]


def test_files_of_servers_that_know_no_prefix_are_renamed(serve: Serve, capture: Run, tmp_path: Path) -> None:
    result = capture(serve(names_files=False, version="0.12.0"), "--json")
    (file,) = json.loads(result.stdout)["files"]
    assert Path(file).name.startswith("tiny-8b_bs4_in16_out6_rank0.")
    assert json.loads(result.stdout)["summary"]["timelines"][0]["rank"] == 0


def test_traces_are_copied_where_asked(serve: Serve, capture: Run, tmp_path: Path) -> None:
    server = serve(names_files=False)
    result = capture(server, "--json", "--output", str(tmp_path / "mine"), "--name", "before-tuning")
    (file,) = json.loads(result.stdout)["files"]
    assert Path(file).parent == tmp_path / "mine"
    assert Path(file).name.startswith("before-tuning_rank0.")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == [Path(file).name]
    assert len(list((tmp_path / "profiles").iterdir())) == 1


def test_a_copy_that_fails_leaves_nothing(
    serve: Serve, capture: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: BinaryIO, target: BinaryIO) -> None:
        target.write(source.read(100))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    result = capture(serve(), "--output", str(tmp_path / "mine"))
    assert "cannot be written: No space left on device" in failure(result)
    assert list((tmp_path / "mine").iterdir()) == []


def test_quiet_shows_no_progress(serve: Serve, capture: Run) -> None:
    result = capture(serve(), "--quiet", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""


def test_sglang_is_told_the_directory(serve: Serve, capture: Run, tmp_path: Path) -> None:
    server = serve(engine="sglang", version="0.5.2", ranks=2)
    result = capture(server, "--json")
    assert result.exit_code == 0, result.output
    assert server.bodies(START)[0]["output_dir"] == str(tmp_path / "profiles")
    files = [Path(file).name for file in json.loads(result.stdout)["files"]]
    assert files == [f"tiny-8b_bs4_in16_out6-1767225600.5-TP-{rank}.trace.json.gz" for rank in (0, 1)]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_without_a_visible_directory_it_says_where_the_files_are(serve: Serve, capture: Run, engine: str) -> None:
    server = serve(engine=engine)
    result = capture(server, "--json", profile_dir=None)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["files"] == []
    assert found["summary"] is None
    assert "PROFILER_DIR" in found["location"]
    assert server.paths()[-1] == STOP
    assert "traceanalyzer ingest" in capture(server, profile_dir=None).stdout


@pytest.mark.parametrize("drop", [True, False])
def test_the_profiler_is_stopped_when_the_load_fails(serve: Serve, capture: Run, drop: bool) -> None:
    server = serve(drop_start=drop, completions_status=500, fail_load_only=True)
    line = failure(capture(server))
    assert (
        ("no answer" in line or "Remote end" in line or "POST /start_profile" in line)
        if drop
        else ("engine is dead" in line)
    )
    assert server.paths()[-1] == STOP
    assert not server.does.active


def test_the_profiler_is_stopped_when_time_is_up(serve: Serve, capture: Run) -> None:
    server = serve(hang=True)
    line = failure(capture(server, "--timeout", "0.3"))
    assert "time limit" in line
    assert server.paths()[-1] == STOP


def test_a_stop_that_fails_is_told(serve: Serve, capture: Run) -> None:
    line = failure(capture(serve(stop_status=500)))
    assert "POST /stop_profile: 500" in line
    assert "by hand" in line


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_the_profiler_is_stopped_on_a_signal(serve: Serve, tmp_path: Path, kind: signal.Signals) -> None:
    server = serve(hang=True)
    command = [sys.executable, "-m", "traceanalyzer", "capture", server.url, "--concurrency", "2"]
    process = subprocess.Popen(
        [*command, "--input-tokens", "4", "--profile-dir", str(tmp_path / "profiles")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.started.wait(30)
        deadline = time.monotonic() + 30
        while server.in_flight < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(kind)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode != 0
    assert "Traceback" not in err
    assert out == ""
    assert server.paths()[-1] == STOP
    assert not server.does.active


def test_the_key_is_sent_and_never_shown(serve: Serve, capture: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(key="s3cret-key")
    refused = capture(server)
    assert "API key" in failure(refused)
    monkeypatch.setenv("MY_KEY", "s3cret-key")
    result = capture(server, "--api-key-env", "MY_KEY", "--json")
    assert result.exit_code == 0, result.output
    assert "s3cret-key" not in result.output + refused.output
    posts = [call for call in server.calls if call.method == "POST"]
    assert posts
    assert all(call.authorization == "Bearer s3cret-key" for call in posts)


def test_a_redirect_is_not_followed(serve: Serve, capture: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = serve()
    server = serve(redirect_to=elsewhere.url)
    monkeypatch.setenv("VLLM_API_KEY", "s3cret-key")
    assert "302" in failure(capture(server))
    assert elsewhere.calls == []


def test_requests_of_others_are_told(serve: Serve, capture: Run) -> None:
    result = capture(serve(running=3), "--json")
    (busy,) = [w for w in json.loads(result.stdout)["warnings"] if w["code"] == "busy_server"]
    assert busy["count"] == 3


def test_a_batch_that_was_not_reached_is_told(serve: Serve, capture: Run) -> None:
    result = capture(serve(), "--json", "--concurrency", "3")
    found = json.loads(result.stdout)
    assert found["decode_steps_of_batch"] == 0
    (lacking,) = [w for w in found["warnings"] if w["code"] == "batch_not_reached"]
    assert "3 of batch 4" in lacking["message"]


def test_lengths_beyond_the_models_limit_are_refused_before_anything_is_sent(serve: Serve, capture: Run) -> None:
    server = serve(max_model_len=20)
    assert "max_model_len" in failure(capture(server))
    assert server.paths() == []


def test_a_model_that_is_not_served_is_refused(serve: Serve, capture: Run) -> None:
    line = failure(capture(serve(models=("a", "b")), "--model", "c"))
    assert "a, b" in line


def test_a_server_that_is_not_there_is_one_line(capture: Run) -> None:
    with FakeServer() as server:
        url_of_closed = server
    assert "connecting" in failure(capture(url_of_closed))


def test_files_that_cannot_be_renamed_keep_their_names(
    serve: Serve, capture: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name.endswith(".pt.trace.json.gz"):
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    result = capture(serve(names_files=False), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert Path(found["files"][0]).name.startswith("rank0.")
    assert "not_renamed" in {warning["code"] for warning in found["warnings"]}


@pytest.mark.parametrize("url", ["http://user:hunter2@127.0.0.1:1", "ftp://127.0.0.1", "http://127.0.0.1:notaport"])
def test_urls_that_are_refused_show_no_password(url: str) -> None:
    result = CliRunner().invoke(cli, ["capture", url])
    assert "hunter2" not in failure(result)


def test_proxies_of_the_environment_are_not_used(serve: Serve, capture: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert capture(serve()).exit_code == 0
