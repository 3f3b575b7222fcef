"""A server that behaves as vLLM's and SGLang's profiler routes are documented to, faults included."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.places import CASES

TRACE = CASES / "201_vllm_native.json.gz"


@dataclass
class Behaviour:
    """What the server does; the defaults are those of a healthy vLLM."""

    engine: str = "vllm"
    version: str | None = "0.26.0"
    models: tuple[str, ...] = ("org/tiny-8b",)
    max_model_len: int = 4096
    key: str | None = None
    profile_dir: Path | None = None
    profiler: bool = True
    names_files: bool = True
    ranks: int = 1
    front_end: bool = False
    trace: Path | None = TRACE
    trace_of_rank: str | None = None
    flush_delay: float = 0.0
    active: bool = False
    start_status: int = 200
    drop_start: bool = False
    stop_status: int = 200
    running: float | None = 0
    hang: bool = False
    completions_status: int = 200
    fail_load_only: bool = False
    token_seconds: float = 0.0
    redirect_to: str | None = None


@dataclass
class Call:
    """One request the server got."""

    method: str
    path: str
    body: Any
    authorization: str | None


@dataclass
class FakeServer:
    """Runs in threads of this process; use as a context manager."""

    does: Behaviour = field(default_factory=Behaviour)
    calls: list[Call] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    started: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    prefix: str = ""
    output_dir: Path | None = None
    sessions: int = 0
    writers: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> FakeServer:
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()
        for writer in self.writers:
            writer.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def paths(self) -> list[str]:
        """The POST routes called, in order."""
        return [call.path for call in self.calls if call.method == "POST"]

    def bodies(self, path: str) -> list[Any]:
        return [call.body for call in self.calls if call.path == path]

    def start_profile(self, body: Any) -> tuple[int, str]:
        if self.does.active:
            if self.does.engine == "sglang":
                return 500, "Profiling is already in progress. Call /stop_profile first."
            return 409, json.dumps({"error": {"message": "A profiling session is already active."}})
        if self.does.start_status != 200:
            return self.does.start_status, json.dumps({"error": {"message": "delay_iterations must not be negative"}})
        self.does.active = True
        self.prefix = body.get("profile_prefix", "") if self.does.names_files else ""
        self.output_dir = Path(body["output_dir"]) if body.get("output_dir") else None
        self.started.set()
        return 200, "" if self.does.engine == "vllm" else "Start profiling.\n"

    def stop_profile(self) -> tuple[int, str]:
        was_active, self.does.active = self.does.active, False
        if self.does.stop_status != 200:
            return self.does.stop_status, "Internal Server Error"
        if was_active:
            self.sessions += 1
            self._flush()
        return 200, ""

    def _flush(self) -> None:
        if self.does.flush_delay:
            writer = threading.Thread(target=self._write_late)
            self.writers.append(writer)
            writer.start()
        else:
            self._write()

    def _write_late(self) -> None:
        time.sleep(self.does.flush_delay)
        self._write()

    def _write(self) -> None:
        folder = self.output_dir if self.does.engine == "sglang" else self.does.profile_dir
        if folder is None or self.does.trace is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self.does.engine == "sglang":
            lead = f"{self.prefix}-" if self.prefix else ""
            names = [f"{lead}1767225600.5-TP-{rank}.trace.json.gz" for rank in range(self.does.ranks)]
        else:
            lead = f"{self.prefix}_" if self.prefix else ""
            names = [
                f"{lead}rank{rank}.{1767225600000 + self.sessions}.pt.trace.json.gz" for rank in range(self.does.ranks)
            ]
        for rank, name in enumerate(names):
            own = self.does.trace_of_rank
            self._write_slowly(folder / name, self.does.trace if own is None else CASES / own.format(rank=rank))
        if self.does.front_end:
            (folder / f"{lead}host_42.async_llm.176722.pt.trace.json").write_text('{"traceEvents": []}')

    def _write_slowly(self, target: Path, trace: Path) -> None:
        """Write in two parts when the flush is slow, as a growing file."""
        data = trace.read_bytes()
        if not self.does.flush_delay:
            shutil.copyfile(trace, target)
            return
        with target.open("wb") as out:
            out.write(data[: len(data) // 2])
            out.flush()
            time.sleep(self.does.flush_delay)
            out.write(data[len(data) // 2 :])


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._note(None)
            if server.does.redirect_to and self.path == "/v1/models":
                self.send_response(302)
                self.send_header("Location", f"{server.does.redirect_to}/v1/models")
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif self._unauthorised():
                self._answer(401, json.dumps({"error": "Unauthorized"}))
            else:
                self._answer(*self._get())

        def _get(self) -> tuple[int, str]:
            does = server.does
            if self.path == "/v1/models":
                owner = does.engine
                entries = [{"id": m, "owned_by": owner, "max_model_len": does.max_model_len} for m in does.models]
                return 200, json.dumps({"object": "list", "data": entries})
            if self.path == "/metrics" and does.running is not None:
                key = "vllm:num_requests_running" if does.engine == "vllm" else "sglang:num_running_reqs"
                return 200, f'# TYPE x gauge\n{key}{{engine="0",model_name="tiny"}} {does.running}\n'
            version = {"vllm": "/version", "sglang": "/get_server_info"}.get(does.engine)
            if self.path == version and does.version is not None:
                return 200, json.dumps({"version": does.version})
            return 404, json.dumps({"detail": "Not Found"})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            self._note(body)
            if self._unauthorised():
                self._answer(401, json.dumps({"error": "Unauthorized"}))
            elif self.path == "/v1/completions":
                self._complete(body)
            elif self.path == "/start_profile" and server.does.profiler:
                answer = server.start_profile(body)
                if server.does.drop_start:
                    self.close_connection = True
                else:
                    self._answer(*answer)
            elif self.path == "/stop_profile" and server.does.profiler:
                self._answer(*server.stop_profile())
            else:
                self._answer(404, json.dumps({"detail": "Not Found"}))

        def _complete(self, body: Any) -> None:
            does = server.does
            status = does.completions_status if server.does.active or not does.fail_load_only else 200
            if status != 200:
                self._answer(status, json.dumps({"error": {"message": "engine is dead"}}))
                return
            with server.lock:
                server.in_flight += 1
                server.most_in_flight = max(server.most_in_flight, server.in_flight)
            try:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                self._stream(body["max_tokens"])
            except OSError:
                pass
            finally:
                with server.lock:
                    server.in_flight -= 1

        def _stream(self, tokens: int) -> None:
            for i in range(tokens):
                self._event({"choices": [{"text": " a", "index": 0}]})
                if server.does.hang and server.does.active and i == 0:
                    server.closing.wait(30)
                    return
                time.sleep(server.does.token_seconds)
            self._event({"choices": [], "usage": {"completion_tokens": tokens}})
            self.wfile.write(b"data: [DONE]\n\n")

        def _event(self, document: Any) -> None:
            self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())
            self.wfile.flush()

        def _note(self, body: Any) -> None:
            with server.lock:
                server.calls.append(Call(self.command, self.path, body, self.headers.get("Authorization")))

        def _unauthorised(self) -> bool:
            return server.does.key is not None and self.headers.get("Authorization") != f"Bearer {server.does.key}"

        def _answer(self, status: int, text: str) -> None:
            data = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
