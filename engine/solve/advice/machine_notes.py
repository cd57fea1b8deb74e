"""What to know about this machine before a job, and what the job asks of it: disk space, download time, power."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import PCIE_LANE_GBS, detected_processor, machine_host, roomiest_disk
from capacity_tui.engine.estimate import Answer, Estimate, Note, bottleneck_text
from capacity_tui.engine.estimate.data import LOCAL, download_bandwidth, supply_of, tier_bandwidth, tier_of
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Accelerator, Disk, Machine, temperature_limit
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.candidate import EstimatedPlan
from capacity_tui.engine.solve.changes import effect_text, saves
from capacity_tui.engine.solve.modes import content_of, taken_per_second
from capacity_tui.engine.units import (
    format_bandwidth,
    format_bytes,
    format_energy,
    format_percent,
    format_power,
    format_seconds,
)

HELD_BYTES = 1 << 30  # less is the driver's own
CLOSE_CELSIUS = 10.0
FULL_SHARE = 0.9
NVME = "nvme"  # the row of storage_tiers.yaml


def machine_warnings(machine: Machine) -> tuple[Note, ...]:
    """Return what holds the machine back now, whatever runs on it."""
    return tuple(note for gpu in machine.accelerators for note in _device(gpu)) + tuple(_host(machine))


def job_notes(
    machine: Machine, answer: Answer, catalog: Catalog, is_example: bool = False
) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
    """Return suggestions and warnings for a job on this machine, effects computed by estimating again.

    Args:
        is_example: whether nobody asked about this job, so that only the machine is warned of.
    """
    suggestions = (
        *_mixed_precision(machine, answer, catalog),
        *_faster_disk(machine, answer, catalog),
        *answer.estimate.recommendations,
    )
    if is_example:
        # A supply is of the machine, and nobody gives its rating without asking about it.
        supply = (note for note in answer.estimate.warnings if note.code == "power_supply")
        return suggestions, (*machine_warnings(machine), *supply)
    warnings = (*machine_warnings(machine), *_battery(machine, answer), *_space(machine, answer, catalog))
    return suggestions, (*warnings, *answer.estimate.warnings)


def predicted_bottleneck(answer: Answer) -> str:
    """Return which resource will limit a job, in one sentence."""
    limit = answer.estimate.bottleneck
    named = {
        "memory_bandwidth": "memory bandwidth",
        "input": "reading the data",
        "overhead": "host overhead",
        "optimizer": "the optimizer",
    }
    words = named.get(limit.kind, limit.kind)
    detail = bottleneck_text(limit)
    return detail if detail.startswith(words) else f"{words}: {detail}".removesuffix(": ")


def _device(gpu: Accelerator) -> Iterator[Note]:
    name = f"GPU {gpu.index}"
    celsius, reasons = gpu.temperature_celsius.value, gpu.throttle.value or ()
    heat = [reason for reason in reasons if reason.startswith(("thermal", "hardware"))]
    if heat:
        yield Note("throttling", f"{name} is thermally throttled", f"the driver reports {', '.join(heat)}")
    elif celsius is not None and celsius > temperature_limit(gpu) - CLOSE_CELSIUS:
        detail = f"{celsius:.0f} °C now, the clock falls from {temperature_limit(gpu):.0f} °C on"
        yield Note("temperature", f"{name} is already warm before the job begins", detail)
    limit, default = gpu.power_limit_watts.value, gpu.power_default_watts.value
    if limit and default and limit < default:
        share = (limit / default) ** (1 / 3)  # dynamic power grows with the third power of the clock
        detail = (
            f"{format_power(limit)} instead of {format_power(default)}: about {format_percent(1 - share)} less speed"
        )
        yield Note("power_limit", f"{name} has a lowered power limit", detail)
    lanes, most, generation = gpu.pcie.lanes.value, gpu.pcie.lanes_max.value, gpu.pcie.generation_max.value
    if lanes and most and lanes < most and generation in PCIE_LANE_GBS:
        now, full = (format_bandwidth(PCIE_LANE_GBS[generation] * count * 1e9) for count in (lanes, most))
        detail = f"{lanes} of {most} lanes: copies from the host at {now} instead of {full}"
        yield Note("pcie_lanes", f"{name} sits in a narrow slot", detail)
    others = [user for user in gpu.processes.value or () if user.own.value is False]
    held = sum(user.memory_bytes.value or 0 for user in others)
    if held > HELD_BYTES:
        detail = f"{format_bytes(held)} in {len(others)} processes of other users; plans count only what is left"
        yield Note("held_memory", f"Others use memory of {name}", detail)


def _host(machine: Machine) -> Iterator[Note]:
    others = [process for process in machine.processes.value or () if not process.own]
    held = sum(process.memory_bytes for process in others)
    if held > HELD_BYTES:
        names = ", ".join(f"{process.name} {format_bytes(process.memory_bytes)}" for process in others)
        yield Note("held_main_memory", "Other users' processes use main memory", names)
    if machine.swap.kind.value == "HDD":
        yield Note("swap", "Swap is on a hard disk", "a run that swaps nearly stops: keep memory below its limit")
    if machine.power.package_throttles.value:
        detail = f"{machine.power.package_throttles.value} times since boot: clean or add cooling"
        yield Note("processor_heat", "The CPU has throttled", detail)
    if machine.modules.channels.value == 1 and machine.modules.bandwidth.value:
        rate = format_bandwidth(machine.modules.bandwidth.value)
        yield Note("single_channel", "Memory runs on one channel", f"{rate}; a second module would double it")
    for disk in machine.disks:
        if _share_used(disk) > FULL_SHARE:
            detail = f"{format_bytes(disk.free_bytes.value)} of {format_bytes(disk.total_bytes.value)} free"
            yield Note("disk_full", f"{disk.mount} is nearly full", detail)
    if machine.power.on_mains.value is False:
        charge = machine.power.battery_percent.value
        left = f"{charge:.0f} % charge left; " if charge is not None else ""
        yield Note("battery", "The machine runs on battery", f"{left}clocks and power limits are lower than on mains")


def _share_used(disk: Disk) -> float:
    total, free = disk.total_bytes.value, disk.free_bytes.value
    return 0.0 if not total or free is None else 1.0 - free / total


def _battery(machine: Machine, answer: Answer) -> Iterator[Note]:
    """Say how far the battery carries the job."""
    left, needed = machine.power.battery_watt_hours.value, answer.estimate.energy.kwh
    if machine.power.on_mains.value is not False or left is None or needed is None:
        return
    share = left / 1000 / max(float(needed), 1e-9)
    if share < 1:
        steps = answer.estimate.computation.step_seconds.value * (answer.estimate.computation.steps or 0)
        reached = format_seconds(float(steps) * share)
        detail = (
            f"the job takes {format_energy(float(needed))}, the battery holds {format_energy(left / 1000)}: it ends "
        )
        detail += f"after {format_percent(share)} of it, {reached} from now; plug in, or keep a checkpoint before that"
        yield Note("battery_energy", "The battery will not last for the job", detail)


def _space(machine: Machine, answer: Answer, catalog: Catalog) -> Iterator[Note]:
    """Say where checkpoints and data do not fit, and what a hard disk means for the data."""
    space, disk = run_space(machine, answer, catalog), roomiest_disk(machine)
    if space is None or disk is None:
        return
    if space.needed_bytes > space.free_bytes:
        yield Note("disk_space", "Checkpoints and data do not fit on the disks", space_text(space))
    computation = answer.estimate.computation
    if disk.kind.value == "HDD" and computation.unit == "token":
        rate = float(computation.units_per_step / computation.step_seconds.value) * TOKEN_BYTES
        detail = f"tokens stream at {format_bandwidth(rate)}, which any disk reads in sequence; "
        detail += "shuffled reading needs an SSD or NVMe"
        yield Note("hard_disk", "The data would be on a hard disk", detail)


def _faster_disk(machine: Machine, answer: Answer, catalog: Catalog) -> Iterator[Note]:
    """Say that an NVMe disk would feed the devices where the one that is here cannot."""
    content = None if answer.plan.is_inference else content_of(answer.resolved, catalog)
    if content is None:
        return
    cluster = answer.resolved.cluster
    supply = supply_of(answer.plan, content, cluster, catalog)
    needed = taken_per_second(answer.estimate) * mean(supply.unit_bytes)
    here = tier_of(LOCAL, cluster, catalog)
    reached = tier_bandwidth(here, supply.format, cluster)
    if machine.benchmarked is not None and machine.benchmarked.disk_read.value is not None:
        reached = min(reached, machine.benchmarked.disk_read.value)
    fast = tier_bandwidth(catalog.storage_tiers[NVME], supply.format, cluster)
    if reached < needed and reached < fast:
        detail = f"the job takes {format_bandwidth(needed)}, this {here.name} gives {format_bandwidth(reached)}; "
        detail += f"an NVMe disk gives {format_bandwidth(fast)}"
        detail += "" if fast >= needed else ", so that devices wait less, but still wait"
        yield Note("faster_disk", "Keep the data on an NVMe disk", detail)


def _mixed_precision(machine: Machine, answer: Answer, catalog: Catalog) -> Iterator[Note]:
    """Say what 16-bit arithmetic brings here against fp32, if the plan uses either."""
    now = answer.plan.training.precision
    if answer.plan.is_inference or now not in ("bf16", "fp16", "fp32"):
        return
    other = "bf16" if now == "fp32" else "fp32"
    if answer.resolved.cluster.device.native(other) != other:
        return
    change: dict[str, object] = {Key.TRAINING_PRECISION: other}
    candidate = EstimatedPlan(answer.plan, answer.resolved, answer.estimate, catalog, machine).evaluate(change)
    if candidate.filled is None:
        return
    tried = candidate.filled.estimate
    before, after = (answer.estimate, tried) if now == "fp32" else (tried, answer.estimate)
    effect = effect_text(before, after)
    if not effect:
        return
    if now == "fp32":
        yield Note("mixed_precision", "Use mixed precision (bf16)", effect, saves(before, after), change)
    else:
        yield Note(
            "keep_mixed_precision", f"Keep mixed precision ({now})", f"against fp32: {effect}", saves(before, after)
        )


# A checkpoint holds 16-bit weights, their fp32 copy and two fp32 states of Adam: bytes of one trained parameter.
CHECKPOINT_BYTES = 14.0

KEPT_CHECKPOINTS = 3  # the one being written, the last one, and one to fall back to
TOKEN_BYTES = 4.0  # token ids as data loaders keep them
SUPPLY_LOAD = 0.8  # supplies are meant to run below this share of their rating for long
BOARD_WATTS = 100.0  # mainboard, memory, disks and fans of a workstation


@dataclass(frozen=True, slots=True)
class RunSpace:
    """Bytes a training run keeps on disk, where they would go, and how long its data takes to arrive."""

    checkpoint_bytes: float  # all checkpoints kept at once
    data_bytes: float  # token ids of the whole job; 0 where its length is open
    mount: str  # the local disk with most room; empty if there is none
    free_bytes: float  # room there
    bandwidth: float  # bytes a second at which the data come from the internet
    bandwidth_known: bool  # whether that was measured here
    download_seconds: float | None  # in which the data arrive; None where the length of the job is open

    @property
    def needed_bytes(self) -> float:
        """Checkpoints and data together."""
        return self.checkpoint_bytes + self.data_bytes


def run_space(machine: Machine, answer: Answer, catalog: Catalog) -> RunSpace | None:
    """Return what a training run keeps on disk; None for inference."""
    if answer.plan.is_inference:
        return None
    data, checkpoints = kept_bytes(answer.estimate)
    disk = roomiest_disk(machine)
    host = machine_host(machine, 1)
    bandwidth = download_bandwidth(host, catalog)
    return RunSpace(
        checkpoint_bytes=checkpoints,
        data_bytes=data,
        mount=disk.mount if disk else "",
        free_bytes=float(disk.free_bytes.value or 0) if disk else 0.0,
        bandwidth=bandwidth,
        bandwidth_known=host.download is not None,
        download_seconds=data / bandwidth if data else None,
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
        seconds = format_seconds(space.download_seconds)
        known = "measured here" if space.bandwidth_known else "assumed; detect --benchmark --url ADDRESS measures it"
        text += f"; downloading them takes {seconds} at {format_bandwidth(space.bandwidth)} ({known})"
    return text


@dataclass(frozen=True, slots=True)
class PowerNeed:
    """What a machine draws at the limits of its devices and processor, and the supply that carries it."""

    devices_watts: float  # of all accelerators; 0 where there are none
    processor_watts: float | None  # of the processors; None where nothing tells
    processor_known: str  # how that is known; empty likewise
    board_watts: float  # mainboard, memory, disks and fans, as they usually are
    wanted_watts: float  # rating of a supply that carries all of it for long
    supply_watts: float | None = None  # rating of the supply that is there; None where it was not given

    @property
    def drawn_watts(self) -> float:
        """All together."""
        return self.devices_watts + (self.processor_watts or 0.0) + self.board_watts

    @property
    def headroom_watts(self) -> float | None:
        """What the supply that is there has left; below 0 where it does not carry it; None where none was given."""
        return None if self.supply_watts is None else self.supply_watts - self.drawn_watts


def power_need(machine: Machine, catalog: Catalog, supply_watts: float | None = None) -> PowerNeed:
    """Return what a machine draws at its limits."""
    limits = [gpu.power_limit_watts.value or gpu.power_default_watts.value or 0.0 for gpu in machine.accelerators]
    processor = detected_processor(machine, catalog)
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
        return f"{text}; {load} of the supply's {format_power(need.supply_watts)}: it cannot deliver that"
    return f"{text}; {load} of the supply's {format_power(need.supply_watts)}, {format_power(need.headroom_watts)} left"


def supply_note(case: EstimatedPlan) -> Iterator[Note]:
    """Say when a run would load the power supply of a node beyond what it is meant for over long."""
    supply, watts, cluster = case.plan.watch.supply_watts, case.estimate.energy.watts_average, case.resolved.cluster
    if supply is None or watts is None:
        return
    devices = mean(watts) * mean(cluster.per_node) / mean(cluster.devices)
    other_watts = BOARD_WATTS
    if case.machine is not None and not cluster.device.is_processor:
        other_watts += power_need(case.machine, case.catalog).processor_watts or 0.0
    load = (devices + other_watts) / supply
    if load > SUPPLY_LOAD:
        detail = (
            f"{format_power(devices)} for the devices of a node and some {format_power(other_watts)} beside them are "
            f"{format_percent(load)} of its {format_power(supply)}; {format_percent(SUPPLY_LOAD)} is what supplies are "
            f"meant to carry for long. A lower power limit of the devices helps, or one of "
            f"{format_power((devices + other_watts) / SUPPLY_LOAD)}."
        )
        yield Note("power_supply", "Power draw is near the limit of the power supply", detail)
