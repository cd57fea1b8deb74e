"""Reading and writing a file, past the system's cache where the file system allows that."""

from __future__ import annotations

import mmap
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capacity_tui.engine.machine.benchmark.measurement import Conditions, Measurement, Skipped, spread
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
    block.write(random.Random(0).randbytes(CHUNK_BYTES))  # noqa: S311 - disks that compress must not look fast
    sizes = f"{FILE_BYTES >> 20} MiB in pieces of {CHUNK_BYTES >> 20} MiB, {how}"
    written = _pieces(conditions, handle, block, write=True)
    yield Measurement("disk.write", "disk write, sequential", "B/s", spread(written), sizes)
    _forget(handle)
    read = _pieces(conditions, handle, block, write=False)
    yield Measurement("disk.read", "disk read, sequential", "B/s", spread(read), sizes)
    _forget(handle)
    page = memoryview(block)[:PAGE_BYTES]
    single = f"{PAGE_BYTES} bytes one after the other, {how}"
    latencies = spread(_random(conditions, handle, page, write=False))
    yield Measurement("disk.random_read", "disk read, random", "1/s", latencies, single)
    latencies = spread(_random(conditions, handle, page, write=True))
    yield Measurement("disk.random_write", "disk write, random", "1/s", latencies, single)
    page.release()
    block.close()


def _pieces(conditions: Conditions, handle: int, block: mmap.mmap, write: bool) -> list[float]:
    rates = []
    for offset in range(0, FILE_BYTES, CHUNK_BYTES):
        conditions.check()
        started = time.perf_counter()
        if write:
            os.pwrite(handle, block, offset)
            os.fsync(handle)
        else:
            os.preadv(handle, [block], offset)
        rates.append(CHUNK_BYTES / max(time.perf_counter() - started, 1e-9))
    return rates


def _random(conditions: Conditions, handle: int, page: memoryview, write: bool) -> list[float]:
    places = random.Random(1)  # noqa: S311 - any spread of places will do
    end = time.perf_counter() + RANDOM_SECONDS
    rates: list[float] = []
    while len(rates) < RANDOM_ACCESSES and (time.perf_counter() < end or not rates):
        conditions.check()
        offset = places.randrange(FILE_BYTES // PAGE_BYTES) * PAGE_BYTES
        started = time.perf_counter()
        if write:
            os.pwrite(handle, page, offset)
            os.fsync(handle)
        else:
            os.preadv(handle, [page], offset)
        rates.append(1 / max(time.perf_counter() - started, 1e-9))
    return rates


def _forget(handle: int) -> None:
    """Drop what the cache holds of a file."""
    with suppress(AttributeError, OSError):
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
