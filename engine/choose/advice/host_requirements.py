"""What a job asks of the machine around its devices: disk space, download time, power supply."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.cluster.node_host import network_bandwidth, roomiest_disk
from capacity_tui.engine.estimate.estimate import Answer
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.machine.machine import Machine
from capacity_tui.engine.units import format_bytes, format_power, format_seconds

# A checkpoint holds 16-bit weights, their fp32 copy and two fp32 states of Adam: bytes of one trained parameter.
CHECKPOINT_BYTES = 14.0
KEPT_CHECKPOINTS = 3  # the one being written, the last one, and one to fall back to
TOKEN_BYTES = 4.0  # token ids as data loaders keep them
SUPPLY_LOAD = 0.8  # supplies are meant to run below this share of their rating for long
BOARD_WATTS = 100.0  # mainboard, memory, disks and fans of a workstation


@dataclass(frozen=True, slots=True)
class RunSpace:
    """Bytes a training run keeps on disk, where they would go, and how long its data takes to arrive.

    Attributes:
        checkpoint_bytes: all checkpoints kept at once.
        data_bytes: token ids of the whole job; 0 where its length is open.
        mount: the local disk with most room; empty if there is none.
        free_bytes: room there.
        download_seconds: time of the data at the speed of the fastest network link; None where that is not told.
    """

    checkpoint_bytes: float
    data_bytes: float
    mount: str
    free_bytes: float
    download_seconds: float | None

    @property
    def needed_bytes(self) -> float:
        """Checkpoints and data together."""
        return self.checkpoint_bytes + self.data_bytes


def run_space(machine: Machine, found: Answer) -> RunSpace | None:
    """Return what a training run keeps on disk; None for inference."""
    if found.plan.task == "infer":
        return None
    data, checkpoints = kept_bytes(found.estimate)
    disk = roomiest_disk(machine)
    bandwidth = network_bandwidth(machine)
    return RunSpace(
        checkpoint_bytes=checkpoints,
        data_bytes=data,
        mount=disk.mount if disk else "",
        free_bytes=float(disk.free_bytes.value or 0) if disk else 0.0,
        download_seconds=data / bandwidth if bandwidth and data else None,
    )


def kept_bytes(estimate: Estimate) -> tuple[float, float]:
    """Return the bytes of a training's data, 0 where its length is open, and of the checkpoints it keeps at once."""
    computation = estimate.computation
    tokens = float(computation.units_per_step * (computation.steps or 0)) if computation.unit == "token" else 0.0
    return tokens * TOKEN_BYTES, float(estimate.model.parameters) * CHECKPOINT_BYTES * KEPT_CHECKPOINTS


def space_text(space: RunSpace) -> str:
    """Return the space in one sentence."""
    text = f"{KEPT_CHECKPOINTS} checkpoints {format_bytes(space.checkpoint_bytes)}"
    if space.data_bytes:
        text += f", token ids {format_bytes(space.data_bytes)}"
    if space.mount:
        text += f"; {format_bytes(space.free_bytes)} free on {space.mount}"
    if space.download_seconds is not None:
        text += f"; the data arrives in {format_seconds(space.download_seconds)} at the network link's full speed"
    return text


def power_text(machine: Machine) -> str | None:
    """Return what devices and processor draw at their limits and the supply that carries it; None where not told."""
    limits = [gpu.power_limit_watts.value for gpu in machine.accelerators if gpu.power_limit_watts.value]
    package = machine.power.package_limit_watts.value
    if not limits:
        return None
    drawn = sum(limits) + (package or 0.0)
    supply = (drawn + BOARD_WATTS) / SUPPLY_LOAD
    who = "devices and processor" if package else "devices (the processor's limit is not told)"
    return f"{format_power(drawn)} for {who} at their limits; a supply of {format_power(supply)} or more carries that"
