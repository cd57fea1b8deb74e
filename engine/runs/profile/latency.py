"""The latency of an endpoint during a run, measured in a separate thread."""

from __future__ import annotations

import http.client
import math
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from capacity_tui.engine.machine.benchmark import Address, round_trip, web_address

_MOST = 100_000
"""Answers kept; of more, the older half goes."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of an endpoint; milliseconds, None where it never answered.

    Attributes:
        failed: how often it did not answer.
        connect_ms: median and 95th percentile until it accepted a connection, resolved, with TLS where it is secure.
        round_trip_ms: likewise from a request sent to the head of its answer.
        mean_ms: mean of the round trips.
        last_failure: why it did not answer the last time it did not.
    """

    url: str
    asked: int
    failed: int
    connect_ms: tuple[float, float] | None
    round_trip_ms: tuple[float, float] | None
    mean_ms: float | None
    last_failure: str
    status: int | None


class LatencyProbe:
    """Asks an endpoint again and again.

    Args:
        url: where to ask; the answer is read and dropped.
        interval: seconds from one question to the next.

    Raises:
        HardwareError: that is no web address.
    """

    def __init__(self, url: str, interval: float) -> None:
        self._url = url
        self._address = web_address(url)
        self._interval = interval
        self._stopped = threading.Event()
        self._connects, self._trips = array("d"), array("d")
        self._asked = self._failed = 0
        self._failure = ""
        self._status: int | None = None
        self._thread = threading.Thread(target=self._work, name="latency", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; a question on its way is left behind."""
        self._stopped.set()

    @property
    def last_ms(self) -> float | None:
        """The last round trip."""
        return self._trips[-1] if self._trips else None

    def result(self) -> Latency:
        """Return the latency measured so far."""
        trips = self._trips[:]
        return Latency(
            url=self._url,
            asked=self._asked,
            failed=self._failed,
            connect_ms=_quantiles(self._connects[:]),
            round_trip_ms=_quantiles(trips),
            mean_ms=sum(trips) / len(trips) if trips else None,
            last_failure=self._failure,
            status=self._status,
        )

    def _work(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            self._asked += 1
            try:
                self._ask(self._address)
            except (OSError, http.client.HTTPException) as error:
                self._failed += 1
                self._failure = str(error) or type(error).__name__
            self._stopped.wait(max(0.0, began + self._interval - time.monotonic()))

    def _ask(self, address: Address) -> None:
        trip = round_trip(address)
        self._status = trip.status
        self._connects.append(1000 * trip.connect_seconds)
        self._trips.append(1000 * trip.answer_seconds)
        if len(self._trips) > _MOST:
            del self._connects[: _MOST // 2], self._trips[: _MOST // 2]


def _quantiles(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the median and the 95th percentile, each a value that occurred."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[math.ceil(0.5 * len(ordered)) - 1], ordered[math.ceil(0.95 * len(ordered)) - 1]
