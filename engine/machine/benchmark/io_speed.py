"""Speed of disks and networks, measured."""

from __future__ import annotations

import http.client
import mmap
import os
import random
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

from capacity_tui.engine.errors import HardwareError
from capacity_tui.engine.machine.benchmark.benchmark_report import Conditions, Measurement, Skipped, durations, spread
from capacity_tui.engine.machine.probing import Running
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_bytes

FILE_BYTES = 256 << 20
CHUNK_BYTES = 8 << 20
PAGE_BYTES = 4096
RANDOM_ACCESSES = 400
RANDOM_SECONDS = 1.0
ROOM = 2  # leave at least as much free as the file takes


def measure_disk(conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Yield sequential rates in bytes a second and random accesses a second; no file stays behind."""
    folder = conditions.folder
    try:
        free = shutil.disk_usage(folder).free
        if free < ROOM * FILE_BYTES:
            yield Skipped("disk", f"{format_bytes(free)} free in {folder}, {format_bytes(ROOM * FILE_BYTES)} wanted")
            return
        with _nameless_file(folder) as (handle, direct):
            how = "direct I/O" if direct else "flushed to the disk, cache dropped before reading"
            yield from _measure(conditions, handle, how)
    except OSError as error:
        yield Skipped("disk", f"{folder}: {error.strerror}")


@contextmanager
def _nameless_file(folder: Path) -> Iterator[tuple[int, bool]]:
    """Open a file that has no name any more, so that even a killed program leaves nothing behind."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".capacity-tui-")
    try:
        Path(name).unlink()
        yield handle, _past_the_cache(handle)
    finally:
        os.close(handle)


def _past_the_cache(handle: int) -> bool:
    """Switch the cache off for a file; False where the system or the file system cannot."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_DIRECT)
    except (ImportError, AttributeError, OSError):
        return False
    return True


def _measure(conditions: Conditions, handle: int, how: str) -> Iterator[Measurement]:
    block = mmap.mmap(-1, CHUNK_BYTES)  # aligned to a page, as direct I/O wants it
    block.write(random.Random(0).randbytes(CHUNK_BYTES))  # disks that compress must not look fast
    sizes = f"{FILE_BYTES >> 20} MiB in pieces of {CHUNK_BYTES >> 20} MiB, {how}"
    page = memoryview(block)[:PAGE_BYTES]
    single = f"{PAGE_BYTES} bytes one after the other, {how}"
    for does in ("write", "read"):
        seconds = [_access(conditions, handle, block, at, does) for at in range(0, FILE_BYTES, CHUNK_BYTES)]
        rates = spread([CHUNK_BYTES / taken for taken in seconds])
        yield Measurement(f"disk.{does}", f"disk {does}, sequential", "B/s", rates, sizes)
        _forget(handle)
    for does in ("read", "write"):
        rates = spread([1 / taken for taken in _random_accesses(conditions, handle, page, does)])
        yield Measurement(f"disk.random_{does}", f"disk {does}, random", "1/s", rates, single)
    page.release()
    block.close()


def _access(conditions: Conditions, handle: int, buffer: mmap.mmap | memoryview, offset: int, does: str) -> float:
    """Return the seconds that writing a buffer, flushed to the disk, or reading it takes."""
    conditions.check()
    started = time.perf_counter()
    if does == "write":
        os.pwrite(handle, buffer, offset)
        os.fsync(handle)
    else:
        os.preadv(handle, [buffer], offset)
    return max(time.perf_counter() - started, 1e-9)


def _random_accesses(conditions: Conditions, handle: int, page: memoryview, does: str) -> list[float]:
    places = random.Random(1)  # any spread of places will do
    end = time.perf_counter() + RANDOM_SECONDS
    seconds: list[float] = []
    while len(seconds) < RANDOM_ACCESSES and (time.perf_counter() < end or not seconds):
        offset = places.randrange(FILE_BYTES // PAGE_BYTES) * PAGE_BYTES
        seconds.append(_access(conditions, handle, page, offset, does))
    return seconds


def _forget(handle: int) -> None:
    """Drop what the cache holds of a file."""
    with suppress(AttributeError, OSError):
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


LOOPBACK = "127.0.0.1"
TIMEOUT_SECONDS = 5.0
CONNECTIONS = 10
ENOUGH_BYTES = 1 << 16  # of an answer that is only waited for
DOWNLOAD_SECONDS = 5.0
PIECE_BYTES = 1 << 20
REMOTE_SECONDS = 30.0  # for all of it: ten connections and the download take ten at most where the server answers
KEPT = "/%:=&?~#+!$,;'@()*[]-._"  # characters of a path and a query that stand for themselves


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of a web address for a request."""

    secure: bool
    host: str
    port: int
    path: str


def web_address(url: str) -> Address:
    """Return the parts of a web address; raises HardwareError if it is invalid."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if ":" not in host:
            host = host.encode("idna").decode("ascii")
    except ValueError as error:  # of brackets, of the port, of a label in the host's name
        raise _not_an_address(url, str(error)) from error
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise _not_an_address(url)
    secure = parts.scheme == "https"
    path = quote(parts.path or "/", safe=KEPT) + (f"?{quote(parts.query, safe=KEPT)}" if parts.query else "")
    return Address(secure, host, port or (443 if secure else 80), path)


def _not_an_address(url: str, why: str = "") -> HardwareError:
    detail = f"{url!r:.80}" + (f": {why}" if why else "")
    return HardwareError("not a web address", detail, "give http:// or https://, a host, and a port up to 65535")


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """One request: seconds to connect, with TLS where it is secure, and from the request to its answer."""

    connect_seconds: float
    answer_seconds: float
    status: int


def round_trip(address: Address) -> RoundTrip:
    """Request an address once, over a new connection, and wait for the head of the answer."""
    with closing(_connection(address)) as connection:
        started = time.perf_counter()
        connection.connect()
        if connection.sock is not None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected = time.perf_counter()
        connection.request("GET", address.path)
        answer = connection.getresponse()
        answered = time.perf_counter()
        answer.read(ENOUGH_BYTES)
    return RoundTrip(connected - started, answered - connected, answer.status)


def _connection(address: Address) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if address.secure else http.client.HTTPConnection
    return kind(address.host, address.port, timeout=TIMEOUT_SECONDS)


def measure_network(conditions: Conditions) -> Iterator[Measurement | Skipped]:
    """Yield latencies in seconds, and the rate of a download in bytes a second where an address is given."""
    try:
        yield _loopback(conditions)
    except OSError as error:
        yield Skipped("network.loopback", f"no loopback here: {error.strerror or error}")
    try:
        latencies = spread(durations(lambda: socket.getaddrinfo("localhost", 80), conditions))
        yield Measurement(
            "network.resolve", "name resolution, localhost", "s", latencies, "getaddrinfo, no server asked"
        )
    except OSError as error:
        yield Skipped("network.resolve", f"localhost: {error.strerror or error}")
    if conditions.url is None:
        yield Skipped("network.remote", "no address given")
        return
    try:
        address = web_address(conditions.url)
    except HardwareError as error:
        yield Skipped("network.remote", error.one_line())
        return
    # Neither a name server that is silent nor a server that drips can be interrupted: they are left behind.
    remote = Running("remote", lambda: tuple(_remote(conditions, address)), REMOTE_SECONDS)
    figures, probe = remote.wait(conditions.cancelled)
    conditions.check()
    yield from figures or (Skipped("network.remote", f"{address.host}: {probe.detail}"),)


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

            latencies = spread(durations(there_and_back, conditions))
        echo.join(TIMEOUT_SECONDS)
    return Measurement("network.loopback", "loopback round trip", "s", latencies, "one byte over TCP")


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while piece := connection.recv(1):
            connection.sendall(piece)


def _remote(conditions: Conditions, address: Address) -> Iterator[Measurement | Skipped]:
    host, port = address.host, address.port
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
    trips = []
    for _ in range(CONNECTIONS):
        conditions.check()
        trips.append(round_trip(address))
    how = f"GET on an open connection, to the head of the answer, status {trips[-1].status}"
    latencies = spread([trip.answer_seconds for trip in trips])
    yield Measurement("network.round_trip", f"HTTP round trip to {address.host}", "s", latencies, how)
    yield _download(conditions, address)


def _download(conditions: Conditions, address: Address) -> Measurement | Skipped:
    with closing(_connection(address)) as connection:
        connection.request("GET", address.path)
        answer = connection.getresponse()
        end = time.perf_counter() + DOWNLOAD_SECONDS
        rates: list[float] = []
        arrived, started, total = 0, time.perf_counter(), 0
        while time.perf_counter() < end:
            conditions.check()
            piece = answer.read1(PIECE_BYTES)  # what is there, so that a slow server cannot hold it up
            arrived, total = arrived + len(piece), total + len(piece)
            if arrived and (not piece or arrived >= PIECE_BYTES):
                rates.append(arrived / max(time.perf_counter() - started, 1e-9))
                arrived, started = 0, time.perf_counter()
            if not piece:
                break
        if arrived:
            rates.append(arrived / max(time.perf_counter() - started, 1e-9))
    if total < PIECE_BYTES and answer.isclosed():
        return Skipped("network.download", f"{format_bytes(total)} there: too little to tell a rate from")
    if not rates:
        raise http.client.HTTPException(f"an empty answer, status {answer.status}")
    how = f"GET in pieces of {PIECE_BYTES >> 20} MiB for {DOWNLOAD_SECONDS:g} s at most"
    return Measurement("network.download", f"download from {address.host}", "B/s", spread(rates), how)
