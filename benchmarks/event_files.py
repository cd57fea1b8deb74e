"""Megabytes a second at which event files of TensorBoard are read: sound ones, damaged ones, and ones made to be slow.

``python -m benchmarks.event_files``; in seconds of the processor, the best of three. Sound records cost by the numbers
in them, and those with right checksums by what looks like values; of the others, the slowest is to take 100 MB/s.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from event_files import event, field, head, record, summary

from capacity_tui.engine.runs.logs.event_file import EventReader
from capacity_tui.engine.runs.logs.sources import MOST_BYTES

BYTES = 4 * MOST_BYTES


def files() -> Iterator[tuple[str, bytes]]:
    """Yield what a file is, and a part of it that is repeated."""
    yield "numbers", b"".join(event(step, "train/loss", 1.0) for step in range(128))
    yield "numbers of tensors", b"".join(event(step, "train/loss", 1.0, tensor=True) for step in range(128))
    yield (
        "histograms",
        b"".join(record(summary(field(1, field(1, b"weights") + field(5, field(6, bytes(96)))))) for _ in range(64)),
    )
    yield "right checksums, values without a number", record(summary(field(1, field(1, b"tag") + b"\x18\1") * 900))
    yield "random bytes", random.Random(0).randbytes(MOST_BYTES)
    yield "zeros", bytes(1024)
    for zeros in range(4, 12):
        yield f"a byte and {zeros} zeros, where a record might begin", b"\1" + bytes(zeros)
    yield "right checksums, nothing in a summary's values", record(summary(b"\x0a\x00" * 30_000))
    yield "right checksums, other fields in a summary", record(summary(b"\x10\1" * 30_000))
    yield "right checksums, many fields in an event", record(b"\x18\1" * 30_000)
    yield "right checksums, many fields in values", record(summary(field(1, b"\x18\1" * 30) * 900))
    yield "heads alone", head(9)
    yield "heads alone, apart", head(9) + b"none"
    for length in (9, 17, 30, 100, 1 << 16):
        yield f"records of {length} bytes with wrong checksums", head(length) + bytes(length) + struct.pack("<I", 0)


def main() -> None:
    """Print the rates."""
    for name, part in files():
        data = part * (BYTES // len(part))
        best = float("inf")
        for _ in range(3):
            reader, began = EventReader(), time.process_time()
            for start in range(0, len(data), MOST_BYTES):
                reader.read(data[start : start + MOST_BYTES])
            best = min(best, time.process_time() - began)
        print(f"{len(data) / best / 1e6:8,.0f} MB/s  {name}", flush=True)


if __name__ == "__main__":
    main()
