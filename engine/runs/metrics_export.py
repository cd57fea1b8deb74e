"""Live metrics of a run for other programs: Prometheus over HTTP, and JSON lines."""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.extras import importing
from capacity_tui.engine.files import writing
from capacity_tui.engine.record import dataclass

if TYPE_CHECKING:
    from prometheus_client import Metric

TOKEN_VARIABLE = "CAPACITY_TUI_METRICS_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the token that readers of metrics must show."""
EXTRA = "metrics"
PREFIX = "capacity_tui_"
LOOPBACK = "127.0.0.1"
_FIRST_PORT, _LAST_PORT = 0, 65535
_ANSWER_SECONDS = 5.0
_CLOSING_SECONDS = 0.1  # How soon a server notices that it is to end


@dataclass(frozen=True, slots=True)
class Gauge:
    """A current number of a run: its name without the program's prefix, and distinguishing labels."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServingAddress:
    """Where metrics are served."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def serving_address(text: str) -> ServingAddress:
    """Return the address that ``9100`` or ``0.0.0.0:9100`` or ``[::1]:9100`` says; a port alone is of this machine."""
    host, colon, port = text.rpartition(":")
    if not port.isdigit() or not _FIRST_PORT <= int(port) <= _LAST_PORT or (colon and not host):
        raise CapacityError(f"{text!r} is no address to serve at", hint="give a port, or HOST:PORT")
    return ServingAddress(host.strip("[]") or LOOPBACK, int(port))


class MetricsServer:
    """Serves the newest numbers of a run at ``/metrics``, in a separate thread once it is started.

    Args:
        address: where; beyond this machine a token is needed.
        token: what readers must show as ``Authorization: Bearer TOKEN``; by default that of the environment, none if
            there is none.

    Raises:
        MissingPartError: prometheus-client is not installed.
        CapacityError: the address is unavailable, or others could read without a token.
    """

    def __init__(self, address: ServingAddress, token: str | None = None) -> None:
        with importing(EXTRA, "serving metrics needs prometheus-client"):
            from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - an optional extra
        secret = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        if not address.is_loopback and not secret:
            hint = f"set {TOKEN_VARIABLE} to a token that readers send, or serve at {LOOPBACK}"
            raise CapacityError(f"anyone could read metrics at {address.host}", hint=hint)
        self._gauges: tuple[Gauge, ...] = ()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server = _Server(address, secret, lambda: generate_latest(registry))
        except OSError as error:
            reason = str(error.strerror or error).lower()
            raise CapacityError(
                f"metrics cannot be served at {address.host}:{address.port}", reason, "choose another port"
            ) from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSING_SECONDS,), name="metrics", daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def show(self, gauges: Iterable[Gauge]) -> None:
        """Serve these numbers from now on; what could not be read is left out, not shown as nothing."""
        self._gauges = tuple(gauges)

    def collect(self) -> Iterator[Metric]:
        """Yield what Prometheus reads."""
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - an optional extra

        families: dict[str, Any] = {}
        for gauge in self._gauges:
            family = families.get(gauge.name)
            if family is None:
                description = gauge.name.replace("_", " ")
                family = families[gauge.name] = GaugeMetricFamily(
                    PREFIX + gauge.name, description, labels=tuple(gauge.labels)
                )
            family.add_metric(tuple(gauge.labels.values()), gauge.value)
        yield from families.values()

    def close(self) -> None:
        """Serve no more."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Answers readers, each in a thread that ends with the program."""

    daemon_threads = True

    def __init__(self, address: ServingAddress, token: str, text: Callable[[], bytes]) -> None:
        self.token = token
        self.text = text
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._hosts = {address.host.lower(), "localhost", "127.0.0.1", "::1"}
        super().__init__((address.host, address.port), _Reader)

    def is_meant(self, host: str | None) -> bool:
        """Whether a reader addresses this server by one of its names.

        A page on the web may have a name of its author's lead here and read what comes back; it cannot show a token.
        """
        if self.token or host is None:
            return True
        return (urlsplit(f"//{host}").hostname or "") in self._hosts

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of readers that leave amid their answer: stderr is the command's."""


class _Reader(BaseHTTPRequestHandler):
    """One client; without the token it is refused."""

    server: _Server
    timeout = _ANSWER_SECONDS

    def do_GET(self) -> None:
        if not self.server.is_meant(self.headers.get("Host")):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"metrics are read by the address they are served at\n", {})
        elif self.server.token and not self._shows(self.server.token):
            self._answer(HTTPStatus.UNAUTHORIZED, b"a token is needed\n", {"WWW-Authenticate": "Bearer"})
        elif self.path.partition("?")[0] not in ("/", "/metrics"):
            self._answer(HTTPStatus.NOT_FOUND, b"metrics are at /metrics\n", {})
        else:
            self._answer(HTTPStatus.OK, self.server.text(), {})

    def log_message(self, *_: object) -> None:
        """Say nothing on stderr, which is the command's."""

    def _shows(self, token: str) -> bool:
        shown = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        return hmac.compare_digest(shown.encode(), token.encode())

    def _answer(self, status: HTTPStatus, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/plain; version=0.0.4; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class JsonLines:
    """Writes one JSON object a line, each at once, behind what a file holds; None writes to stdout."""

    def __init__(self, path: Path | None) -> None:
        self._name = path or Path("stdout")
        with writing(self._name):
            # Without a buffer, in which half a line could stay.
            self._file = FileIO(sys.stdout.fileno() if path is None else path, "a", closefd=path is not None)

    def write(self, data: Mapping[str, object]) -> None:
        """Write one object; raises StorageError if the disk is full, or the reader has gone."""
        remaining = memoryview(json.dumps(data, allow_nan=False).encode() + b"\n")
        with writing(self._name):
            while remaining:
                remaining = remaining[self._file.write(remaining) or 0 :]

    def close(self) -> None:
        """Close the file; stdout stays open."""
        self._file.close()


class Outlets:
    """Outputs of live metrics of a run; their failures never reach the run.

    Args:
        lines: a file for JSON lines, ``-`` for stdout; None for none.
        address: where to serve metrics, as ``serving_address`` reads it; None for nowhere.

    Raises:
        CapacityError: either is unavailable.
    """

    def __init__(self, lines: Path | None, address: str | None) -> None:
        self.problems: list[str] = []
        self._lines = JsonLines(None if lines == Path("-") else lines) if lines else None
        self._server = MetricsServer(serving_address(address)) if address else None

    @property
    def port(self) -> int | None:
        """The port at which metrics are served."""
        return self._server.port if self._server else None

    def start(self) -> None:
        """Begin to serve; to be called after a command was started, which holds signals back from new threads."""
        if self._server is not None:
            self._server.start()

    def show(self, data: Mapping[str, object], gauges: Iterable[Gauge]) -> None:
        """Let others have the newest: a line of data with the time, and numbers."""
        if self._server is not None:
            self._server.show(gauges)
        if self._lines is not None:
            try:
                self._lines.write({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **data})
            except CapacityError as error:
                self._lines.close()
                self._lines = None
                self.problems.append(error.one_line())

    def close(self) -> None:
        """Serve no more, and close the file."""
        if self._server is not None:
            self._server.close()
        if self._lines is not None:
            self._lines.close()
