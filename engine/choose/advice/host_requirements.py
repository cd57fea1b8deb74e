"""What a job asks of the machine around its devices: disk space, download time, power supply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.cluster import network_bandwidth, own_processor, roomiest_disk
from capacity_tui.engine.estimate import Answer, Estimate, Note
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import format_bytes, format_percent, format_power, format_seconds

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


def run_space(machine: Machine, answer: Answer) -> RunSpace | None:
    """Return what a training run keeps on disk; None for inference."""
    if answer.plan.task == "infer":
        return None
    data, checkpoints = kept_bytes(answer.estimate)
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


@dataclass(frozen=True, slots=True)
class PowerNeed:
    """What a machine draws at the limits of its devices and processor, and the supply that carries it.

    Attributes:
        devices_watts: of all accelerators; 0 where there are none.
        processor_watts: of the processors; None where nothing tells.
        processor_known: how that is known; empty likewise.
        board_watts: mainboard, memory, disks and fans, as they usually are.
        wanted_watts: rating of a supply that carries all of it for long.
        supply_watts: rating of the supply that is there; None where it was not given.
    """

    devices_watts: float
    processor_watts: float | None
    processor_known: str
    board_watts: float
    wanted_watts: float
    supply_watts: float | None = None

    @property
    def drawn_watts(self) -> float:
        """All together."""
        return self.devices_watts + (self.processor_watts or 0.0) + self.board_watts

    @property
    def headroom_watts(self) -> float | None:
        """What the supply that is there has left; below 0 where it does not carry it; None where none was given."""
        return None if self.supply_watts is None else self.supply_watts - self.drawn_watts


def power_need(machine: Machine, catalog: Catalog, supply_watts: float | None = None) -> PowerNeed:
    """Return what a machine draws at its limits.

    Args:
        supply_watts: rating of its power supply, where that is known.
    """
    limits = [gpu.power_limit_watts.value or gpu.power_default_watts.value or 0.0 for gpu in machine.accelerators]
    processor = own_processor(machine, catalog)
    watts = None if processor.tdp_watts is None else mean(processor.tdp_watts)
    known = "" if watts is None else str(processor.known["tdp_watts"])
    drawn = sum(limits) + (watts or 0.0) + BOARD_WATTS
    return PowerNeed(sum(limits), watts, known, BOARD_WATTS, drawn / SUPPLY_LOAD, supply_watts)


def power_text(need: PowerNeed) -> str:
    """Return it in a sentence."""
    parts = [f"devices {format_power(need.devices_watts)}"] if need.devices_watts else []
    if need.processor_watts is not None:
        parts.append(f"processor {format_power(need.processor_watts)} ({need.processor_known})")
    parts.append(f"the rest of the machine some {format_power(need.board_watts)}")
    text = f"{format_power(need.drawn_watts)} at its limits: {', '.join(parts)}"
    if need.supply_watts is None or need.headroom_watts is None:
        return f"{text}; a supply of {format_power(need.wanted_watts)} or more carries that"
    load = format_percent(need.drawn_watts / need.supply_watts)
    if need.headroom_watts < 0:
        return f"{text}; {load} of the supply's {format_power(need.supply_watts)}: it does not carry that"
    return f"{text}; {load} of the supply's {format_power(need.supply_watts)}, {format_power(need.headroom_watts)} left"


def supply_note(case: EstimatedPlan) -> Iterator[Note]:
    """Say when a run would load the power supply of a node beyond what it is meant for over long."""
    supply, watts, cluster = case.plan.watch.supply_watts, case.estimate.energy.watts_average, case.resolved.cluster
    if supply is None or watts is None:
        return
    devices = mean(watts) * mean(cluster.per_node) / mean(cluster.devices)
    other_watts = BOARD_WATTS
    if case.machine is not None and cluster.device.kind != "cpu":
        other_watts += power_need(case.machine, case.catalog).processor_watts or 0.0
    load = (devices + other_watts) / supply
    if load > SUPPLY_LOAD:
        detail = (
            f"{format_power(devices)} for the devices of a node and some {format_power(other_watts)} beside them are "
            f"{format_percent(load)} of its {format_power(supply)}; {format_percent(SUPPLY_LOAD)} is what supplies are "
            f"meant to carry for long. A lower power limit of the devices helps, or one of "
            f"{format_power((devices + other_watts) / SUPPLY_LOAD)}."
        )
        yield Note("power_supply", "Power consumption comes near the limit of the supply", detail)
