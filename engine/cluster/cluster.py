"""The hardware an estimate runs on, reduced to the numbers formulas need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Literal, NamedTuple

import numpy as np

from capacity_tui.engine.cluster.levels import UNKNOWN_HOST, Level, NodeHost
from capacity_tui.engine.cluster.quotes import Quote
from capacity_tui.engine.machine import FitError, MeasuredRun, Provenance, Quantity
from capacity_tui.engine.numeric import Curve, Number
from capacity_tui.engine.plan import HardwareFacts
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.units import format_number

DeviceKind = Literal["gpu", "tpu", "cpu"]

FIGURES = {
    "memory_bytes": "memory",
    "bandwidth": "memory bandwidth",
    "units": "units",
    "tdp_watts": "power limit",
    "link_bandwidth": "link",
    "host_bandwidth": "link to host memory",
    "node_bandwidth": "network between nodes",
    "host_memory_bytes": "host memory",
}
"""Figures of hardware whose provenance is kept, by field; peaks go by ``peaks.`` and their type."""

SIXTEEN_BIT = ("bf16", "fp16")


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of the datasheet a generation reaches; see profiles/efficiency.yaml and coefficients.yaml.

    Times are in seconds here, sizes in bytes. ``gemm`` holds at the clock of matrix products; ``power_room`` is that
    clock over the one of the part it was measured on, were there no highest. What fused attention reaches is None where
    it was not measured on the machine itself: the rows of attention_kernels.yaml say it then. ``runs`` are those of
    the user's own; what plans like them reach is ``plain`` with what these say.
    """

    gemm: Mapping[str, float]
    grouped: Number
    sustained: Number
    wave_fill: Number
    ramp_length: Number
    gather_rate: Number
    convolutions: Number
    misaligned: Number
    unaligned: Number
    exponential_flops: Number
    attention_unfused: Number
    emulated: Number
    stream: Number
    elementwise: Number
    kernel_launch_seconds: Number
    collective_share: Number
    switch_reduction: Number
    collective_half_bytes: Number
    network_share: Number
    collective_hop_seconds: Number
    full_mesh: Number
    communicator_bytes: Number
    context_bytes: Number
    idle_share: Number
    optimizer_stream: Number
    host_stream: Number
    host_optimizer: Number
    host_optimizer_alone: Number
    arithmetic_power: Number
    memory_power: Number
    waiting_power: Number
    host_power: Number
    cooling_power: Number
    network_power: Number
    source: str
    row: str = "other"
    attention_reach: Number | None = None
    attention_half_width: Number | None = None
    attention_half_length: Number | None = None
    attention_backward_reach: Number | None = None
    attention_backward_half_width: Number | None = None
    attention_backward_half_length: Number | None = None
    curves: tuple[Curve, ...] = ()
    errors: tuple[FitError, ...] = ()
    power_room: float = 1.0
    boost: float = 1.0
    runs: tuple[MeasuredRun, ...] = ()
    plain: Efficiency | None = None


# Constants that all scale when the whole device is faster or slower than its kernels say.
_SPEEDS = ("sustained", "stream", "elementwise")


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator, or one CPU-only machine, as formulas see it."""

    id: str  # catalogue id, or ``detected``
    name: str
    kind: DeviceKind  # gpu, tpu or cpu
    memory_bytes: Number | None  # what the driver reports as usable; RAM for a CPU or shared memory
    bandwidth: Number  # memory bandwidth, B/s
    peaks: Mapping[str, float]  # dense peaks by type, the widest first, FLOP/s
    units: Number  # processors that work on tiles side by side (SMs, compute units, cores)
    tdp_watts: Number | None  # power limit; None where unknown
    clock: Number  # share of the full clock that a lowered power limit leaves
    link_bandwidth: Number  # link to a neighbour in the node, B/s in one direction
    host_bandwidth: Number  # link to host memory, B/s in one direction
    efficiency: Efficiency
    checked: str
    confidence: str  # A, B or C as the catalogue says
    # how each of the figures came about, by field; peaks by ``peaks.bf16`` and the like
    known: Mapping[str, Provenance] = field(default_factory=dict)
    # the type that runs in place of one that has no units of its own, by that type
    runs_as: Mapping[str, str] = field(default_factory=dict)
    # whether its memory is its own; else it is the host's, and what moves there moves nowhere
    has_own_memory: bool = True
    # all the memory of its machine where it may use a part of that alone
    shared_bytes: Number | None = None
    # what joins devices of a node where links join pairs alone, B/s in one direction; else infinite
    bus_bandwidth: Number = np.inf

    @property
    def is_processor(self) -> bool:
        """Whether it is a machine's processors rather than an accelerator."""
        return self.kind == "cpu"

    def with_provenance(self, provenance: Provenance, *names: str) -> Device:
        """Return the device with another provenance for some figures; ``peaks`` stands for all of its peaks."""
        fields = (name for requested in names for name in self._expanded(requested))
        return replace(self, known={**self.known, **dict.fromkeys(fields, provenance)})

    def with_speed(self, speed: float, context_bytes: float | None = None) -> Device:
        """Return the device so many times faster than its constants say, with the context of the user's own runs."""
        plain = self.efficiency.plain or self.efficiency
        scaled = {name: getattr(plain, name) * speed for name in _SPEEDS}
        # Curves of products and attention are relative to rates that scale with the constants; the others are not.
        curves = tuple(
            curve if "." in curve.name else replace(curve, ratios=tuple(ratio * speed for ratio in curve.ratios))
            for curve in plain.curves
        )
        outside = plain.context_bytes if context_bytes is None else context_bytes
        return replace(self, efficiency=replace(plain, **scaled, curves=curves, context_bytes=outside, plain=plain))

    def with_bandwidth(self, bandwidth: Number, provenance: Provenance) -> Device:
        """Return a device whose memory is the host's with another bandwidth; its links are copies in that memory."""
        changed = replace(self, bandwidth=bandwidth, host_bandwidth=bandwidth, link_bandwidth=bandwidth * 0.5)
        return changed.with_provenance(provenance, "bandwidth", "host_bandwidth", "link_bandwidth")

    def figures(self) -> Iterator[tuple[str, Number]]:
        """Yield the figures whose provenance is known, by field, with their values."""
        for name in self.known:
            group, _, kind = name.partition(".")
            value = self.peaks.get(kind) if group == "peaks" else getattr(self, name)
            if value is not None:
                yield name, value

    def assumptions(self) -> tuple[str, ...]:
        """Return what of the figures is assumed and from what, one line for those of one source."""
        sources: dict[str, list[str]] = {}
        for name, _ in self.figures():
            provenance = self.known[name]
            copied = name in ("host_bandwidth", "link_bandwidth") and provenance == self.known.get("bandwidth")
            if provenance.origin == "assumed" and not copied:
                sources.setdefault(provenance.source, []).append(figure_label(name))
        return tuple(f"{', '.join(labels)}: {source}" for source, labels in sources.items())

    def _expanded(self, name: str) -> tuple[str, ...]:
        return tuple(f"peaks.{kind}" for kind in self.peaks) if name == "peaks" else (name,)

    def native(self, precision: str) -> str:
        """Return the type that really runs when ``precision`` is asked for.

        A device without any wider type (TPUs multiply in bf16 alone) runs it in the widest one it has.
        """
        while precision not in self.peaks and precision in self.runs_as:
            precision = self.runs_as[precision]
        return precision if precision in self.peaks else next(iter(self.peaks))

    def peak(self, precision: str) -> float:
        """Dense peak for a type, FLOP/s; falls back to the type that runs in its place.

        Where 16-bit arithmetic is slower than that of 32 bits, products of 16-bit numbers are computed in 32.
        """
        native = self.native(precision)
        return max(self.peaks[native], self.peaks.get("fp32", 0.0) if native in SIXTEEN_BIT else 0.0)

    @property
    def half_precision(self) -> str:
        """The faster of the 16-bit types, or what runs in their place."""
        wide = [name for name in SIXTEEN_BIT if name in self.peaks] or [self.native(SIXTEEN_BIT[-1])]
        return max(wide, key=lambda name: self.peaks[name])

    def gemm_reach(self, precision: str) -> float:
        """Share of the peak that large matrix products of a type sustain."""
        native = self.native(precision)
        shares = self.efficiency.gemm
        return shares[native] if native in shares else min(shares.values())

    def conversion_share(self, precision: str) -> float:
        """Rate of products whose operands are converted, 16 bits on a processor, over that of what runs; else 1."""
        converts = self.is_processor and precision in SIXTEEN_BIT and self.native(precision) not in SIXTEEN_BIT
        return float(self.efficiency.emulated) if converts else 1.0


def figure_label(name: str) -> str:
    """Return what a figure is called in a sentence, such as ``bf16 peak``."""
    group, _, kind = name.partition(".")
    return {"peaks": f"{kind} peak", "levels": f"link of the {kind}"}.get(group) or FIGURES[name]


@dataclass(frozen=True, slots=True)
class Interruptions:
    """How often a job on capacity that may be taken back is interrupted."""

    seconds_between: float  # mean seconds between interruptions of the whole job
    spread: float  # how many times more or less often that may be
    restart_seconds: float  # from an interruption until work resumes
    checkpoint_seconds: Number
    checkpoint_bandwidth: float  # bytes a second that one device writes to a checkpoint
    words: str


class Assumed(NamedTuple):
    """An assumed number, with the least and the most that was published of it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Failures:
    """How often devices fail, and what that costs a training."""

    device_hours: Assumed  # hours of one device between failures that stop a job
    restart_seconds: Assumed  # from a failure until work resumes
    other_share: Assumed  # share of the calendar that planned stops, evaluation, slow devices and steps done again take
    checkpoint_bandwidth: float  # bytes a second that one device writes to a checkpoint


@dataclass(frozen=True, slots=True)
class Price:
    """What the cluster costs; prices are of all devices together."""

    usd_per_hour: float | None = None  # on demand, or committed to; None where unknown
    source: str = ""  # provider, instance, region and date
    # on capacity that may be taken back; None where unknown. ``spot_source`` is of that.
    spot_usd_per_hour: float | None = None
    spot_source: str = ""
    interruptions: Interruptions | None = None
    is_spot: bool = False  # whether the plan runs on spot capacity
    quotes: tuple[Quote, ...] = ()  # prices of one instance each that the price is of; none where the plan gives it
    spot_quotes: tuple[Quote, ...] = ()  # the same of the price on spot capacity
    has_regions: bool = False  # whether the region that is asked for decides it
    has_terms: bool = False  # whether a commitment would decide it
    remarks: tuple[str, ...] = ()  # why it is not the price that was asked for

    @property
    def rate(self) -> float | None:
        """What an hour costs the way the plan runs; None where unknown."""
        return self.spot_usd_per_hour if self.is_spot else self.usd_per_hour

    @property
    def rate_source(self) -> str:
        """Where that price comes from."""
        return self.spot_source if self.is_spot else self.source

    @property
    def rate_quotes(self) -> tuple[Quote, ...]:
        """The prices of instances that it is of."""
        return self.spot_quotes if self.is_spot else self.quotes


@dataclass(frozen=True, slots=True)
class Cluster:
    """Devices and the links between them.

    Attributes:
        levels: what joins them, from the innermost out: the devices' own links first, a network last.
        failures: how often devices fail, and what that costs.
        host_memory_bytes: host memory for each device; None where unknown.
        part: what part of a device each one is, as ``1/8 ``; empty for whole ones.
        rented: instances rented whole for it, as ``2 x aws-p5-48xlarge``; empty where none is named.
        mix: the unlike devices it stands for, in words; empty where all are alike.
        mix_reason: why these of several unlike devices are used; empty where there are no others.
        host: what else a node has besides its devices.
    """

    device: Device
    devices: Number
    levels: tuple[Level, ...]
    failures: Failures
    host_memory_bytes: Number | None = None
    price: Price = field(default_factory=Price)
    part: str = ""
    rented: str = ""
    mix: str = ""
    mix_reason: str = ""
    assumed: tuple[str, ...] = ()
    host_memory_known: Provenance = field(default_factory=lambda: Provenance("assumed", "nothing tells"))
    host: NodeHost = UNKNOWN_HOST

    @property
    def per_node(self) -> Number:
        """Devices that share the fast link of the innermost level: of a node, or of a rack that is one."""
        return self.levels[0].devices

    @property
    def direct(self) -> tuple[Level, ...]:
        """The inner levels, over which devices reach each other without a network adapter."""
        return tuple(level for level in self.levels if level.is_direct)

    @property
    def networks(self) -> tuple[Level, ...]:
        """The outer levels, which devices reach through network adapters; one at least."""
        return tuple(level for level in self.levels if not level.is_direct)

    @property
    def direct_devices(self) -> Number:
        """Devices that reach each other without a network adapter."""
        return self.direct[-1].devices

    @property
    def node_bandwidth(self) -> Number:
        """Network between nodes, B/s in one direction for each device."""
        return self.networks[0].bandwidth

    def figures(self) -> dict[str, Quantity]:
        """Return the hardware's figures by field, each with how it came about."""
        network, *outer = self.networks
        surroundings = (
            ("node_bandwidth", network.bandwidth, network.known),
            ("host_memory_bytes", self.host_memory_bytes, self.host_memory_known),
            *((f"levels.{level.name}", level.bandwidth, level.known) for level in (*self.direct[1:], *outer)),
        )
        device = ((name, value, self.device.known[name]) for name, value in self.device.figures())
        return {
            name: Quantity(value, provenance.origin, provenance.source)
            for name, value, provenance in (*device, *surroundings)
            if value is not None
        }

    @property
    def words(self) -> str:
        """The devices, and the instances that are rented for them: ``16 x h100-sxm-80gb in 2 x aws-p5-48xlarge``."""
        rented = f" in {self.rented}" if self.rented else ""
        counted = "" if self.part.endswith("x ") else f"{format_number(float(self.devices))} x "  # all of a machine
        return self.mix or f"{counted}{self.part}{self.device.id}{rented}"


def hardware_facts(cluster: Cluster, has_own_price: bool = False) -> HardwareFacts:
    """Return what fields of a plan need of a cluster; ``has_own_price`` where the plan gives a price of its own."""
    return HardwareFacts(
        devices=int(np.max(cluster.devices)),
        per_node=int(np.max(cluster.direct_devices)),
        on_processor=cluster.device.is_processor,
        has_own_memory=cluster.device.has_own_memory,
        has_price=has_own_price or cluster.price.usd_per_hour is not None,
        has_spot_price=has_own_price or cluster.price.spot_usd_per_hour is not None,
        has_committed_price=cluster.price.has_terms,
        has_regional_prices=cluster.price.has_regions,
    )
