"""The GPUs' sensors while a benchmark loads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from capacity_tui.engine.machine.probing import NotPresentError
from capacity_tui.engine.machine.vendors.vendor import GpuSample

INTERVAL_SECONDS = 0.5  # reading the driver more often slows the work it watches
LAST_WAIT_SECONDS = 1.0

Moments = list[tuple[GpuSample, ...]]


@contextmanager
def watched(read: Callable[[], tuple[GpuSample, ...]]) -> Iterator[Moments]:
    """Yield a list that fills with readings until the block ends; it stays empty where no GPU can be read."""
    moments: Moments = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            try:
                moments.append(read())
            except NotPresentError:
                return

    watcher = threading.Thread(target=watch, name="watching", daemon=True)
    watcher.start()
    try:
        yield moments
    finally:
        ended.set()
        watcher.join(LAST_WAIT_SECONDS)
