"""Other hardware for a plan: more or fewer devices, cheaper instances, other accelerators, spot capacity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

import numpy as np

from capacity_tui.engine.catalog import Accelerator, Instance
from capacity_tui.engine.cluster import Price, device_price
from capacity_tui.engine.estimate import Note
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.solve.changes import change_text, reserved_bytes
from capacity_tui.engine.units import count_in_words, format_money, format_number
from capacity_tui.engine.verdict import Verdict

SPOT = "spot"
DROPS_REQUESTS = "Spot replicas can be taken back at two minutes' notice: run them beside on-demand ones."
WAITS_FOR_CAPACITY = "Includes interruptions, but not waiting for capacity."
MOST_TRIED = 2  # Of instances and of accelerators, those that promise most are tried
LEAST_SPEED = 0.5  # What would be slower than this share, by arithmetic or by memory, is another job
MOST_COST = 0.9  # Only what promises to save a tenth is tried: bandwidth and peak do not tell more exactly
TIMES = (1, 2, 4, 8)  # As many times the plan's own number of devices are tried
_TITLE = "Smallest devices that hold it"


def hardware_remedies(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield what hardware a plan could run on instead, and how else it could be rented."""
    yield from _devices(case)
    yield from _instances(case)
    yield from _accelerators(case)
    yield from _spot(case)


def can_grow(case: EstimatedPlan) -> bool:
    """Whether other numbers of devices are available: not of a detected machine, nor of processors."""
    return case.plan.hardware.name != "detected" and not case.resolved.cluster.device.is_processor


def _devices(case: EstimatedPlan) -> Iterator[Remedy]:
    count = int(case.resolved.cluster.devices)
    if count > 1:
        yield Remedy("fewer_devices", f"Use {count_in_words(count // 2)}", {Key.HARDWARE_DEVICES: count // 2})
    if not can_grow(case):
        return
    verdict = case.estimate.verdict
    is_split = case.plan.is_inference and verdict is Verdict.DOES_NOT_FIT
    for times in TIMES[1:] if is_split or verdict is Verdict.MISSES_LIMIT else TIMES[1:2]:
        more = count * times
        yield Remedy("more_devices", f"Use {count_in_words(more)}", {Key.HARDWARE_DEVICES: more})
        if is_split and case.gives(Key.PARALLELISM_TP):
            tensor = times * int(case.plan.parallelism.tp or 1)
            words = f"Split it over {count_in_words(more)}, TP {tensor}"
            yield Remedy("more_devices", words, {Key.HARDWARE_DEVICES: more, Key.PARALLELISM_TP: tensor})


def _instances(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield cheaper instances with the same accelerator; an accelerator by its own name is priced at the cheapest."""
    plan, catalog = case.plan, case.catalog
    mine = catalog.instances.known(plan.hardware.name)
    if mine is None or mine.accelerator is None or plan.pricing.usd_per_hour is not None:
        return

    def price(row: Instance) -> float:
        return row.usd_per_device_hour or np.inf

    like = [row for row in catalog.instances.where("accelerator", mine.accelerator) if price(row) < price(mine)]
    for row in sorted(like, key=price)[:MOST_TRIED]:
        change: dict[str, object] = {
            Key.HARDWARE_NAME: row.id,
            Key.HARDWARE_DEVICES: int(case.resolved.cluster.devices),
        }
        yield Remedy("cheaper_instance", f"Rent {row.name} ({row.provider})", change)


def _accelerators(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield as many of another accelerator of the same maker, those first that promise the lowest cost.

    What is promised is the price over what bounds the plan: dense 16-bit arithmetic, or memory bandwidth; a price that
    may not hold, as it is of another region or of nodes without a network, promises nothing. Devices that have a price
    of the user's own, that were detected, or that are of several kinds, have none in their place.
    """
    plan, cluster, catalog = case.plan, case.resolved.cluster, case.catalog
    mine = catalog.accelerators.known(cluster.device.id)
    rate = cluster.price.rate
    hardware = plan.hardware
    given = hardware.groups or hardware.spec or plan.pricing.usd_per_hour is not None
    fixed = given or hardware.name == "detected" or cluster.part
    speed = _speed(case, mine) if mine else None
    if fixed or not mine or not speed or not rate or cluster.price.is_spot:
        return
    needed, devices = reserved_bytes(case.estimate), int(cluster.devices)
    cheaper: list[tuple[float, Accelerator, Price]] = []
    for row in catalog.accelerators.where("vendor", mine.vendor):
        other = _speed(case, row)
        if row.id == mine.id or not other or row.memory_bytes < needed:
            continue
        if other < LEAST_SPEED * speed:
            continue
        nodes = math.ceil(devices / catalog.fabric_of(row).node_devices)
        price = device_price(row.id, devices, nodes, plan.pricing, catalog)
        if price.rate is not None and not price.remarks and price.rate / other <= MOST_COST * rate / speed:
            cheaper.append((price.rate / other, row, price))
    for _, row, price in sorted(cheaper, key=lambda entry: entry[0])[:MOST_TRIED]:
        change: dict[str, object] = {Key.HARDWARE_NAME: row.id, Key.HARDWARE_DEVICES: devices}
        title = f"Use {format_number(devices)} x {row.name}"
        yield Remedy("accelerator", title, change, f"Price of {price.rate_source}.")


def _speed(case: EstimatedPlan, row: Accelerator) -> float | None:
    """Return what a device has of that which bounds the plan: FLOP/s, or B/s; None where its row does not tell."""
    if np.mean(case.estimate.bottleneck.memory_bound) > 0.5:
        return row.bandwidth_gbs
    return row.bf16_tflops or row.fp16_tflops


def _spot(case: EstimatedPlan) -> Iterator[Remedy]:
    """Yield spot capacity, where a price of it is known; its interruptions are in the estimate."""
    price = case.resolved.cluster.price
    if not price.is_spot and price.spot_usd_per_hour is not None:
        caution = DROPS_REQUESTS if case.plan.is_inference else WAITS_FOR_CAPACITY
        caveats = f"{caution} Price of {price.spot_source}.{_at_worst(case)}"
        yield Remedy(SPOT, "Use spot capacity", {Key.PRICING_SPOT: True}, caveats)


def _at_worst(case: EstimatedPlan) -> str:
    """Return what spot capacity may cost where it is taken back more often, if that is more than on demand."""
    cost = case.estimate.cost
    if cost.interval is None or cost.spot_interval is None:
        return ""
    demand, spot = (largest(range_.high) for range_ in (cost.interval, cost.spot_interval))
    if spot <= demand:
        return ""
    return f" Interrupted more often it costs up to {format_money(spot, 0)}, on demand up to {format_money(demand, 0)}."


def larger_devices(case: EstimatedPlan) -> tuple[Candidate, ...]:
    """Return the plan on the smallest devices that hold it: of the same maker, and of another if smaller.

    Devices that can be had come before those that are only announced.
    """
    rows = case.catalog.accelerators
    device = case.resolved.cluster.device
    smallest = _smallest(case, rows.values())
    if smallest is None:
        return ()
    vendor = rows[device.id].vendor if device.id in rows else None
    if vendor in (None, rows[smallest.made.resolved.cluster.device.id].vendor):
        return (smallest,)
    same = _smallest(case, (row for row in rows.values() if row.vendor == vendor))
    return (smallest,) if same is None else (same, smallest)


def larger_devices_text(candidates: Iterable[Candidate]) -> str:
    """Return which devices would hold a plan, with what to set; empty where none was found."""
    named = (f"{_named(candidate)} ({change_text(candidate.change)})" for candidate in candidates)
    text = " or ".join(named)
    return text and f"{_TITLE}: {text}."


def _named(candidate: Candidate) -> str:
    cluster = candidate.made.resolved.cluster
    count = int(cluster.devices)
    return cluster.device.name if count == 1 else f"{format_number(count)} x {cluster.device.name}"


def larger_devices_note(case: EstimatedPlan) -> Note | None:
    """Return what is missing and which devices have it; None where the plan fits or none has."""
    if case.estimate.verdict is not Verdict.DOES_NOT_FIT:
        return None
    candidates = larger_devices(case)
    if not candidates:
        return None
    return Note("larger_devices", _TITLE, larger_devices_text(candidates), None, candidates[0].change)


def _smallest(case: EstimatedPlan, rows: Iterable[Accelerator]) -> Candidate | None:
    """Return the plan on the smallest of some devices that hold it, on more of them only where as many do not."""
    needed, present = reserved_bytes(case.estimate), case.resolved.cluster.device
    # A computer that shares its memory with its processor is no card of a cluster of others.
    is_several = largest(case.resolved.cluster.devices) > 1 and present.has_own_memory
    known = sorted((row for row in rows if not (is_several and row.unified_memory)), key=_order)
    for times in TIMES if can_grow(case) else TIMES[:1]:
        least = max(needed / times, 0.0 if times == 1 else largest(present.memory_bytes or 0.0) + 1.0)
        larger = [row for row in known if row.memory_bytes >= least]
        # One maker's roomiest device may lack the plan's software.
        roomiest = {row.vendor: row for row in sorted(larger, key=lambda row: row.memory_bytes)}.values()
        if any(case.evaluate(_instead(case, row, times)).fits for row in roomiest):
            tried = case.feasible(_instead(case, row, times) for row in larger)
            return next((candidate for candidate in tried if candidate.fits), None)
    return None


def _order(row: Accelerator) -> tuple[bool, int, float]:
    return row.is_announced, row.memory_bytes, row.tdp_w or np.inf


def _instead(case: EstimatedPlan, row: Accelerator, times: int) -> Mapping[str, object]:
    return {Key.HARDWARE_NAME: row.id, Key.HARDWARE_DEVICES: times * int(case.resolved.cluster.devices)}


# What remedies do to the result, for those that do something to it.
ROUNDS_MORE = "Lower precision: check quality first."

OTHER_DATA = "The model then trains on a shorter context."
OTHER_BATCH = "This changes the optimization: check convergence."


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to change."""

    code: str  # stable name; of several remedies with one code the best is shown
    title: str
    change: Mapping[str, object] = field(default_factory=dict)
    caution: str = ""
    replaces_choice: bool = False  # whether it is for the user to go beyond what a mode chose, too

    @property
    def moves_hardware(self) -> bool:
        """Whether it asks for other hardware, or for more or less of it."""
        return any(path.startswith("hardware.") for path in self.change)

    @property
    def is_gentle(self) -> bool:
        """Whether it leaves results and hardware as they are."""
        return not self.caution and not self.moves_hardware
