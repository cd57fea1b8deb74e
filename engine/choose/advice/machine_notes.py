"""What to know about this machine before a job: what holds it back now, and what the job asks of its surroundings."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.advice.host_requirements import TOKEN_BYTES, run_space, space_text
from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan
from capacity_tui.engine.choose.whatif.deltas import effect_text, saves
from capacity_tui.engine.cluster import PCIE_LANE_GBS, roomiest_disk
from capacity_tui.engine.estimate import Answer, Note, bottleneck_text
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Accelerator, Disk, Machine, temperature_limit
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
    suggestions = (*_mixed_precision(machine, answer, catalog), *answer.estimate.recommendations)
    if is_example:
        # A supply is of the machine, and nobody gives its rating without asking about it.
        supply = (note for note in answer.estimate.warnings if note.code == "power_supply")
        return suggestions, (*machine_warnings(machine), *supply)
    warnings = (*machine_warnings(machine), *_battery(machine, answer), *_space(machine, answer))
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
        yield Note("throttling", f"{name} is held back by heat", f"the driver reports {', '.join(heat)}")
    elif celsius is not None and celsius > temperature_limit(gpu) - CLOSE_CELSIUS:
        detail = f"{celsius:.0f} °C now, the clock falls from {temperature_limit(gpu):.0f} °C on"
        yield Note("temperature", f"{name} is warm before the job begins", detail)
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
        yield Note("held_memory", f"Others hold memory of {name}", detail)


def _host(machine: Machine) -> Iterator[Note]:
    others = [process for process in machine.processes.value or () if not process.own]
    held = sum(process.memory_bytes for process in others)
    if held > HELD_BYTES:
        names = ", ".join(f"{process.name} {format_bytes(process.memory_bytes)}" for process in others)
        yield Note("held_main_memory", "Other users hold main memory", names)
    if machine.swap.kind.value == "HDD":
        yield Note(
            "swap", "Swap lies on a hard disk", "a run that touches it all but stops: keep memory below its limit"
        )
    if machine.power.package_throttles.value:
        detail = f"{machine.power.package_throttles.value} times since the system started: clean or add cooling"
        yield Note("processor_heat", "Heat has held the processor's clock down", detail)
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
        yield Note("battery_energy", "The battery does not last for the job", detail)


def _space(machine: Machine, answer: Answer) -> Iterator[Note]:
    """Say where checkpoints and data do not fit, and what a hard disk means for the data."""
    space, disk = run_space(machine, answer), roomiest_disk(machine)
    if space is None or disk is None:
        return
    if space.needed_bytes > space.free_bytes:
        yield Note("disk_space", "Checkpoints and data do not fit the disks", space_text(space))
    computation = answer.estimate.computation
    if disk.kind.value == "HDD" and computation.unit == "token":
        rate = float(computation.units_per_step / computation.step_seconds.value) * TOKEN_BYTES
        detail = f"tokens stream at {format_bandwidth(rate)}, which any disk reads in sequence; "
        detail += "shuffled reading needs an SSD or NVMe"
        yield Note("hard_disk", "Data would lie on a hard disk", detail)


def _mixed_precision(machine: Machine, answer: Answer, catalog: Catalog) -> Iterator[Note]:
    """Say what 16-bit arithmetic brings here against fp32, if the plan uses either."""
    now = answer.plan.training.precision
    if answer.plan.task == "infer" or now not in ("bf16", "fp16", "fp32"):
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
