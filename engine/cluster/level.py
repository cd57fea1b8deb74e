"""One level of a cluster: the devices that a link joins, such as those of a node, a rack or a fabric."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.machine import Provenance
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import format_bandwidth, format_number


@dataclass(frozen=True, slots=True)
class Level:
    """Devices that one link joins; a cluster has several such levels, from the innermost out.

    Attributes:
        name: what holds the devices: node, rack, fabric ...
        devices: how many one of them holds.
        bandwidth: of its link, B/s in one direction for each device, after oversubscription.
        hop_seconds: one step of a collective over it; of direct links what the generation takes is used instead.
        link: name of the link.
        known: how the bandwidth came about.
        is_direct: whether devices reach each other without a network adapter, and so at the shares and the latency
            of links inside a node.
        oversubscription: bandwidth of its devices' ports over what the level carries; 1 where it carries all.
        is_measured: whether the bandwidth is what collectives reach, and not what the wire carries.
        error: median error of bandwidth and step on the collectives they were measured by; None where nobody tells.
    """

    name: str
    devices: Number
    bandwidth: Number
    hop_seconds: Number
    link: str
    known: Provenance
    is_direct: bool = False
    oversubscription: float = 1.0
    is_measured: bool = False
    error: float | None = None

    def reached(self, share: Number) -> Number:
        """Return what collectives reach of it, B/s in one direction for each device.

        Args:
            share: what they reach of what a network carries.
        """
        return self.bandwidth if self.is_measured else self.bandwidth * share

    @property
    def holds(self) -> str:
        """How many devices it holds, in words."""
        return f"{format_number(float(self.devices))} device{'s' if self.devices != 1 else ''}"

    @property
    def speed(self) -> str:
        """What each of them gets of the link, in words."""
        shared = f", {self.oversubscription:g}:1 oversubscribed" if self.oversubscription != 1 else ""
        return f"{format_bandwidth(float(self.bandwidth))} each, {self.link}{shared}"
