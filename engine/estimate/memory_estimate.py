"""Memory of a run: of the fullest device, and of the host beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from capacity_tui.engine.estimate.constraint import ASSUMED, Constraint
from capacity_tui.engine.estimate.derivation import formula
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Flags, Labels, Number, any_true, largest_label, mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_bytes
from capacity_tui.engine.verdict import Verdict

RESERVED, HOST = Figure.MEMORY_RESERVED_BYTES, Figure.MEMORY_HOST_BYTES


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Bytes on one device of a pipeline stage."""

    per_device_bytes: Number  # peak as the framework's allocator counts it
    reserved_bytes: Number  # what the driver's tool would show


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the fullest device."""

    per_device_bytes: Interval  # peak of what is allocated, as the framework's allocator counts it
    allocator_bytes: Interval  # what the allocator reserves for that: blocks it keeps included
    reserved_bytes: Interval  # what the driver's tool would show: allocator cache and context included
    parts: Mapping[str, Number]  # bytes by part; they sum to ``reserved_bytes``
    capacity_bytes: Number | None  # what the driver reports as usable, None where unknown
    host_bytes: Number  # host memory for one device's share
    # bytes inside the allocator at each place that may be the peak, by phase and pipeline stage in words
    places: Mapping[str, Number] = field(default_factory=dict)
    # bytes on the first, last and fullest pipeline stage; empty without a pipeline
    stages: Mapping[str, StageBytes] = field(default_factory=dict)
    # bytes inside the allocator on the fullest device by moment of a step; empty where only the peak is known
    timeline: Mapping[str, Number] = field(default_factory=dict)
    host_capacity_bytes: Number | None = None  # host memory there is for one device, None where unknown
    host_devices: Number = 1.0  # devices that share one host
    host_source: str = ""  # how its memory is known
    host_holds: str = ""  # what lies there that could lie on the device, in words

    @property
    def peaks(self) -> Labels[str]:
        """Where each plan's peak lies."""
        return largest_label(self.places or {"": 0.0})

    @property
    def peak(self) -> str:
        """Where the peak of a single plan lies; empty where only its size is known."""
        return self.peaks.single

    @property
    def fits(self) -> Flags | None:
        """Which plans the fullest device and its host hold as estimated; None where a device's memory is unknown."""
        if self.capacity_bytes is None:
            return None
        by_device = np.less_equal(self.reserved_bytes.value, self.capacity_bytes)
        if self.host_capacity_bytes is None:
            return by_device
        return by_device & np.less_equal(self.host_bytes, self.host_capacity_bytes)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the memory of a device, and of its host, ask of each plan; nothing where a size is unknown."""
        constraints = []
        if self.capacity_bytes is not None:
            usable = "what a program can use of a device's memory"
            constraints.append(self._constraint(RESERVED, "memory", self.reserved_bytes, self.capacity_bytes, usable))
        if self.host_capacity_bytes is not None and any_true(self.host_bytes > 0):
            host = Interval.exactly(self.host_bytes)
            limit, shared = self.host_capacity_bytes, self.host_devices
            constraints.append(self._constraint(HOST, "host memory", host, limit, self.host_source, shared))
        return tuple(constraints)

    @property
    def in_host(self) -> str:
        """What of a single plan lies in host memory that could lie on its devices, in words; empty for nothing."""
        if not self.host_holds or not mean(self.host_bytes):
            return ""
        shares = mean(self.host_devices)
        size = format_bytes(mean(self.host_bytes) * shares)
        if self.host_capacity_bytes is not None:
            assumed = ", assumed" if self.host_source.startswith(ASSUMED) else ""
            size = f"{size} of {format_bytes(mean(self.host_capacity_bytes) * shares)}{assumed}"
        return f"with {self.host_holds} in host memory ({size})"

    def _constraint(
        self, key: str, label: str, reached: Interval, most: Number, why: str, shared: Number = 1.0
    ) -> Constraint:
        return Constraint(key, label, "B", reached, most, None, why, Verdict.DOES_NOT_FIT, shared)


context_bytes = formula()
reserve_bytes = formula()

# Bytes the allocator holds beyond its peak on a device that may be too small for all it would like to keep.
kept_reserve = formula()
