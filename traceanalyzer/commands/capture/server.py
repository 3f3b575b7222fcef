"""What runs at an endpoint: engine, version, model, its limits, and whether it is busy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from traceanalyzer.commands.capture.http import Client, UnreachableError
from traceanalyzer.problems import TraceError

Engine = Literal["vllm", "sglang", "unknown"]

RUNNING = re.compile(
    r"^(?:vllm:num_requests_running|sglang:num_running_reqs)(?:\{[^}]*\})? ([0-9.eE+-]+)", re.MULTILINE
)


@dataclass(frozen=True)
class Server:
    """A server that answers.

    Attributes:
        engine: vllm, sglang or unknown.
        version: as the server states it, or None.
        model: the name under which requests address the model.
        longest: most tokens of prompt and answer together, or None when not stated.
    """

    engine: Engine
    version: str | None
    model: str
    longest: int | None


def identify(client: Client, model: str | None = None) -> Server:
    """Ask a server what it is.

    Args:
        model: the model to use, where it serves several; None takes the first.

    Raises:
        TraceError: it does not answer, refuses the key, or does not serve the model.
    """
    listed = client.request("GET", "/v1/models")
    if listed.status in {401, 403}:
        raise TraceError(str(client.endpoint), f"the server refuses the API key ({listed.reason})")
    if not listed.ok:
        raise TraceError(
            str(client.endpoint), f"GET /v1/models: {listed.reason}; is this a vLLM or SGLang server that is ready?"
        )
    entries = _entries(listed.json())
    if not entries:
        raise TraceError(str(client.endpoint), "the server lists no model")
    names = [str(entry["id"]) for entry in entries]
    if model is not None and model not in names:
        raise TraceError(str(client.endpoint), f"the server does not serve {model}; it serves {', '.join(names[:5])}")
    entry = entries[0] if model is None else entries[names.index(model)]
    longest = entry.get("max_model_len")
    engine, version = _engine(client, str(entry.get("owned_by", "")))
    return Server(engine, version, str(entry["id"]), longest if isinstance(longest, int) else None)


def running_requests(client: Client) -> int | None:
    """Count requests the server is working on, by its metrics; None where it does not tell."""
    try:
        answer = client.request("GET", "/metrics", timeout=10)
    except UnreachableError:
        return None
    counts = RUNNING.findall(answer.text) if answer.ok else []
    return round(sum(float(count) for count in counts)) if counts else None


def _entries(document: Any) -> list[dict[str, Any]]:
    data = document.get("data") if isinstance(document, dict) else None
    return [entry for entry in data or [] if isinstance(entry, dict) and "id" in entry]


def _engine(client: Client, owner: str) -> tuple[Engine, str | None]:
    """Tell the engine by the owner it states, else by the routes only it has."""
    if owner != "sglang":
        answer = _try(client, "/version")
        version = answer.get("version") if answer else None
        if owner == "vllm" or version is not None:
            return "vllm", None if version is None else str(version)
    for route in ("/server_info", "/get_server_info", "/get_model_info"):
        answer = _try(client, route)
        if answer is not None:
            version = answer.get("version")
            return "sglang", None if version is None else str(version)
    return ("sglang" if owner == "sglang" else "unknown"), None


def _try(client: Client, path: str) -> dict[str, Any] | None:
    answer = client.request("GET", path)
    document = answer.json() if answer.ok else None
    return document if isinstance(document, dict) else None
