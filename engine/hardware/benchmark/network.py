"""Latencies of the loopback and of name resolution; of another machine only when its address is given."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from capacity_tui.engine.hardware.benchmark.measurement import (
    Conditions,
    Measurement,
    Skipped,
    durations,
    spread,
)

LOOPBACK = "127.0.0.1"
TIMEOUT_SECONDS = 5.0
CONNECTIONS = 10
DOWNLOAD_SECONDS = 5.0
PIECE_BYTES = 1 << 20


def measure_network(conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Yield latencies in seconds, and the rate of a download in bytes a second where an address is given."""
    yield _loopback(conditions)
    found = spread(durations(lambda: socket.getaddrinfo("localhost", 80), conditions))
    yield Measurement("network.resolve", "name resolution, localhost", "s", found, "getaddrinfo, no server asked")
    if conditions.url is None:
        yield Skipped("network.remote", "no address given")
        return
    address = urlsplit(conditions.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        yield Skipped("network.remote", f"not a web address: {conditions.url}")
        return
    try:
        yield from _remote(conditions, address)
    except (OSError, http.client.HTTPException) as error:
        yield Skipped("network.remote", f"{address.hostname}: {error}")


def _loopback(conditions: Conditions) -> Measurement:
    """Return the time of one byte there and back through TCP on this machine."""
    with socket.create_server((LOOPBACK, 0)) as server:
        echo = threading.Thread(target=_echo, args=(server,), daemon=True)
        echo.start()
        with socket.create_connection(server.getsockname(), TIMEOUT_SECONDS) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def there_and_back() -> None:
                client.sendall(b"x")
                client.recv(1)

            found = spread(durations(there_and_back, conditions))
        echo.join(TIMEOUT_SECONDS)
    return Measurement("network.loopback", "loopback round trip", "s", found, "one byte over TCP")


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while piece := connection.recv(1):
            connection.sendall(piece)


def _remote(conditions: Conditions, address: SplitResult) -> Iterator[Measurement]:
    host = str(address.hostname)
    port = address.port or (443 if address.scheme == "https" else 80)
    started = time.perf_counter()
    socket.getaddrinfo(host, port)
    first = time.perf_counter() - started
    yield Measurement("network.resolve_remote", f"name resolution, {host}", "s", spread([first]), "first answer")
    taken = []
    for _ in range(CONNECTIONS):
        conditions.check()
        started = time.perf_counter()
        socket.create_connection((host, port), TIMEOUT_SECONDS).close()
        taken.append(time.perf_counter() - started)
    yield Measurement("network.connect", f"connection to {host}", "s", spread(taken), "TCP handshake, names resolved")
    yield _download(conditions, address, host, port)


def _download(conditions: Conditions, address: SplitResult, host: str, port: int) -> Measurement:
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(host, port, timeout=TIMEOUT_SECONDS)
    try:
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        connection.request("GET", path)
        answer = connection.getresponse()
        end = time.perf_counter() + DOWNLOAD_SECONDS
        rates: list[float] = []
        while time.perf_counter() < end:
            conditions.check()
            started = time.perf_counter()
            piece = answer.read(PIECE_BYTES)
            if not piece:
                break
            rates.append(len(piece) / max(time.perf_counter() - started, 1e-9))
    finally:
        connection.close()
    if not rates:
        raise http.client.HTTPException(f"an empty answer, status {answer.status}")
    how = f"GET in pieces of {PIECE_BYTES >> 20} MiB for {DOWNLOAD_SECONDS:g} s at most"
    return Measurement("network.download", f"download from {host}", "B/s", spread(rates), how)
