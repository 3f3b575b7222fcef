"""Requests to the one server that the user named: no proxies, no redirects, the API key in no message."""

from __future__ import annotations

import http.client
import ipaddress
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from traceanalyzer.problems import TraceError

LONGEST_BODY = LONGEST_LINE = 1 << 20
BODY_SHOWN = 300
"""Bytes read of an answer and of one event, and characters shown of an error; chosen, not fitted."""


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens.

    Attributes:
        scheme: http or https.
        host, port: as given; the port is the scheme's where none is given.
        prefix: path below which the API lies, without a slash at its end; ``/v1`` is cut off.
    """

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def parse(cls, url: str) -> Endpoint:
        """Read ``http://host:8000``, ``host:8000`` or ``https://host/prefix/v1``.

        Raises:
            TraceError: it is not such a URL, or holds a password (which would end up in logs).
        """
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise TraceError(url, f"is not a URL ({error})") from error
        if parts.username or parts.password:
            raise TraceError(
                parts.hostname or "URL",
                "a URL must not hold a password, which would end up in logs; put the key in the environment",
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise TraceError(url, "is not an http or https URL")
        prefix = parts.path.rstrip("/").removesuffix("/v1")
        return cls(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), prefix)

    @property
    def loopback(self) -> bool:
        """Whether the address is one of this machine's own."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


@dataclass(frozen=True)
class Response:
    """A whole answer."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the body as JSON, or None when it is not."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def reason(self) -> str:
        """What the server said went wrong, in short."""
        return f"{self.status} {_message(self.json()) or self.text.strip()[:BODY_SHOWN]}".strip()


class UnreachableError(TraceError):
    """The server did not answer, or stopped answering."""


@dataclass(frozen=True)
class Client:
    """Sends requests to one endpoint.

    Attributes:
        endpoint: the server.
        key: sent as a bearer token; None for none. Never shown.
        connect_timeout: seconds to wait for a connection.
    """

    endpoint: Endpoint
    key: str | None = None
    connect_timeout: float = 10.0

    def __repr__(self) -> str:
        return f"Client({self.endpoint}, key {'set' if self.key else 'not set'})"

    def request(self, method: str, path: str, body: Any = None, *, timeout: float = 30.0) -> Response:
        """Send one request and read the whole answer.

        Raises:
            UnreachableError: no connection, no answer in time, or the connection broke.
        """
        connection = self.connect(timeout)
        try:
            self.send(connection, method, path, body)
            answer = connection.getresponse()
            return Response(answer.status, answer.read(LONGEST_BODY).decode("utf-8", errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(f"{method} {path}", error) from error
        finally:
            connection.close()

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Open a connection whose later reads may take ``timeout`` seconds.

        Raises:
            UnreachableError: it cannot be opened.
        """
        # Without a context of its own, a connection over TLS verifies the server's certificate and name.
        kind = http.client.HTTPSConnection if self.endpoint.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.endpoint.host, self.endpoint.port, timeout=min(self.connect_timeout, timeout))
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self.unreachable("connecting", error) from error
        connection.sock.settimeout(timeout)
        return connection

    def send(self, connection: http.client.HTTPConnection, method: str, path: str, body: Any) -> None:
        """Write a request with a JSON body; None sends none."""
        headers = {"Accept": "application/json", "User-Agent": "traceanalyzer"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        connection.request(method, self.endpoint.prefix + path, body=data, headers=headers)

    def unreachable(self, what: str, error: Exception) -> UnreachableError:
        """Describe a failed connection."""
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        return UnreachableError(str(self.endpoint), f"{what}: {reason}")


def events_of(answer: http.client.HTTPResponse) -> Iterator[str]:
    """Yield the data of server-sent events until ``[DONE]`` or the end of the answer."""
    while line := answer.readline(LONGEST_LINE):
        text = line.decode("utf-8", errors="replace").strip()
        if text.startswith("data:"):
            data = text.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            yield data


def _message(document: Any) -> str | None:
    """Find the text of an error document: OpenAI's ``error.message``, FastAPI's ``detail``, or ``message``."""
    if not isinstance(document, dict):
        return None
    error = document.get("error")
    nested = error.get("message") if isinstance(error, dict) else error
    message = nested or document.get("detail") or document.get("message")
    return None if message is None else str(message)[:BODY_SHOWN]
