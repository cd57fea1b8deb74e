"""A plan on its cluster: where its parallel dimensions lie, how busy links are, and what unlike devices make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import Cluster, Level
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import Answer, Collective, Estimate, Part, Phase, estimate_resolved, resolve_plan
from capacity_tui.engine.estimate.timing import members_in_node, pacing_level
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import DeviceGroup, ParallelismSection, Plan, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.solve.changes import effect_text
from capacity_tui.engine.solve.modes.modes import fill, open_fields

if TYPE_CHECKING:
    from capacity_tui.engine.machine import Machine

_FOLLOWING = (Key.HARDWARE_DEVICES, Key.PARALLELISM_DP, Key.PARALLELISM_SHARD)
"""What follows from the devices, and is another for some of them."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """The plan with tensor parallel on the other side of the end of the fast links."""

    size: int  # tensor parallel size of the plan
    other: int
    direct: int  # devices that the fast links join
    unit: str  # what holds them: node, rack ...
    trial: Candidate  # the estimate with the other size
    effect: str
    # share of an iteration that waits for tensor parallel, in the plan and with the other size
    waited: tuple[float, float]

    @property
    def crosses(self) -> bool:
        """Whether it is the plan that crosses."""
        return self.size > self.direct


@dataclass(frozen=True, slots=True)
class GroupShare:
    """Equal devices among others."""

    group: DeviceGroup
    rate: float  # tokens or samples a second that they work through by themselves
    share: float  # of the batch with which they end at the same time as the others
    sequences: int  # the same in sequences or samples of a batch
    fits: bool | None  # whether they hold the run; None where their memory is not known


@dataclass(frozen=True, slots=True)
class Sharing:
    """Two ways to share a batch among unlike devices."""

    groups: tuple[GroupShare, ...]
    even_rate: float  # tokens or samples a second where every device has as much to do, and waits for the slowest
    unit: str  # ``token`` or ``sample``

    @property
    def balanced_rate(self) -> float:
        """Tokens or samples a second at most where each group has the share that it works through in the same time."""
        return sum(group.rate for group in self.groups)


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """A plan on its cluster."""

    answer: Answer
    placement: Placement | None  # where it lies; None where it is not divided
    # tensor parallel across the end of the fast links, or no longer across; None where neither can be
    crossing: Crossing | None
    sharing: Sharing | None  # how unlike devices share the work; None where all are alike, or not all can run it


def place_plan(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> PlacedPlan:
    """Return a plan on its cluster; the balanced mode fills what it leaves open.

    Raises:
        CapacityError: the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    resolved = (
        fill(plan, "balanced", machine, facts).resolved if open_fields(plan) else resolve_plan(plan, facts, machine)
    )
    return placed(EstimatedPlan(plan, resolved, estimate_resolved(resolved, facts), facts, machine))


def placed(case: EstimatedPlan) -> PlacedPlan:
    """Return an estimated plan on its cluster."""
    answer = Answer(case.resolved, case.estimate)
    return PlacedPlan(answer, placement_of(answer), crossing_of(case), sharing_of(case))


def crossing_of(case: EstimatedPlan) -> Crossing | None:
    """Return the plan with tensor parallel just beyond the fast links, or just inside if it is beyond them.

    None where the cluster ends before, or the model cannot be divided so.
    """
    cluster, size = case.resolved.cluster, int(case.plan.parallelism.tp or 1)
    direct = int(cluster.direct_devices)
    if case.resolved.shape is None or direct >= cluster.devices or direct < 1:
        return None
    inside = 1 << (direct.bit_length() - 1)
    other = inside if size > direct else 2 * inside
    trial = case.pinned.evaluate(case.same_batch({Key.PARALLELISM_TP: other}))
    if trial.filled is None:
        return None
    waited = _waited(case.estimate), _waited(trial.estimate)
    effect = effect_text(case.estimate, trial.estimate)
    return Crossing(size, other, direct, cluster.direct[-1].name, trial, effect, waited)


def sharing_of(case: EstimatedPlan) -> Sharing | None:
    """Return how the unlike devices of a plan would share its batch; None where all are alike, or not all can run it.

    What the groups exchange with each other is left out of their rates, so that these together are a bound.
    """
    groups = case.plan.hardware.groups
    if len(groups) < 2 or case.plan.is_fit:
        return None
    even = _group_estimate(case, groups)
    estimates = [_group_estimate(case, (group,)) for group in groups]
    if even is None or None in estimates:
        return None
    alone = [estimate for estimate in estimates if estimate is not None]
    rates = [_rate(estimate) for estimate in alone]
    batch = int(case.plan.training.global_batch or case.plan.inference.batch)
    shares = [rate / sum(rates) for rate in rates]
    return Sharing(
        tuple(
            GroupShare(group, rate, share, round(share * batch), estimate.fits)
            for group, rate, share, estimate in zip(groups, rates, shares, alone, strict=True)
        ),
        _rate(even),
        case.estimate.model.unit,
    )


def _group_estimate(case: EstimatedPlan, groups: tuple[DeviceGroup, ...]) -> Estimate | None:
    """Return the run on all devices of some groups, with their even share of the batch; None where it cannot be."""
    part, whole = (sum(group.devices for group in some) for some in (groups, case.plan.hardware.groups))
    batch = int(case.plan.training.global_batch or 1) * part / whole
    change: dict[str, object] = {
        **dict.fromkeys(_FOLLOWING),
        Key.HARDWARE_GROUPS: groups,
        Key.HARDWARE_MIXED: "all",
        Key.TRAINING_GLOBAL_BATCH: int(batch) if batch == int(batch) else None,
    }
    try:
        resolved = resolve_plan(with_values(case.plan, change), case.catalog, case.machine)
        return estimate_resolved(resolved, case.catalog)
    except CapacityError:
        return None


def _rate(estimate: Estimate) -> float:
    computation = estimate.computation
    return mean(computation.units_per_step / computation.step_seconds.value)


def _waited(estimate: Estimate) -> float:
    computation = estimate.computation
    return mean(computation.parts.get("tensor_parallel", 0.0)) / mean(computation.step_seconds.value)


_PARTS: Mapping[str, Part] = {
    "tp": "tensor_parallel",
    "cp": "context_parallel",
    "dp": "data_parallel",
    "pp": "pipeline_bubble",
    "ep": "expert_parallel",
}
"""The part of an iteration that waits for each dimension, in the order in which ranks are counted; experts last, whose
groups lie across the others."""


@dataclass(frozen=True, slots=True)
class PlacedDimension:
    """One parallel dimension."""

    name: str
    size: int  # members of one of its groups
    stride: int  # ranks between two neighbours of a group
    # into how many parts each level divides a group, from the innermost out; they multiply to the size
    ways: tuple[float, ...]
    waited: float  # share of an iteration in which devices wait for it


@dataclass(frozen=True, slots=True)
class PlacedLevel:
    """One level of the cluster as a run uses it."""

    level: Level
    holds: float  # units of the level inside it that one of its own holds; devices in the innermost
    units: float  # how many of it the run fills
    busy: float  # share of an iteration in which collectives run at the pace of its link, hidden or not
    carries: tuple[str, ...]  # dimensions whose collectives do, the busiest first


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a run lies on its cluster."""

    # the dimensions that divide anything, in the order in which ranks are counted
    dimensions: tuple[PlacedDimension, ...]
    levels: tuple[PlacedLevel, ...]  # the levels that the run fills, from the innermost out

    @property
    def hottest(self) -> PlacedLevel | None:
        """The level whose link is the busiest; None where devices exchange nothing."""
        busiest = max(self.levels, key=lambda level: level.busy, default=None)
        return busiest if busiest is not None and busiest.busy > 0 else None

    def at(self, position: int) -> tuple[tuple[str, float], ...]:
        """Return the dimensions that the level of a place divides, with the number of parts; experts left out."""
        return tuple(
            (dimension.name, dimension.ways[position])
            for dimension in self.dimensions
            if dimension.ways[position] > 1 and dimension.name != "ep"
        )


def placement_of(answer: Answer) -> Placement | None:
    """Return where an estimated plan lies on its cluster; None where it runs on one device, or is not divided."""
    cluster = answer.resolved.cluster
    levels = _filled(cluster)
    dimensions = tuple(_dimensions(answer, levels))
    if not dimensions:
        return None
    busy = _busy(answer)
    devices = float(cluster.devices)
    sizes = [1.0, *(float(level.devices) for level in levels)]
    return Placement(
        dimensions,
        tuple(
            PlacedLevel(
                level,
                holds=size / inside,
                units=devices / size,
                busy=sum(busy.get(level.name, {}).values()),
                carries=tuple(sorted(busy.get(level.name, {}), key=lambda name: -busy[level.name][name])),
            )
            for level, (inside, size) in zip(levels, pairwise(sizes), strict=True)
        ),
    )


def _filled(cluster: Cluster) -> tuple[Level, ...]:
    """Return the levels up to that which holds all devices."""
    levels: list[Level] = []
    for level in cluster.levels:
        if levels and float(levels[-1].devices) >= float(cluster.devices):
            break
        levels.append(level)
    return tuple(levels)


def _dimensions(answer: Answer, levels: tuple[Level, ...]) -> Iterator[PlacedDimension]:
    computation = answer.estimate.computation
    strides = _strides(answer.plan.parallelism)
    for name, part in _PARTS.items():
        size = int(getattr(answer.plan.parallelism, name) or 1)
        if size > 1:
            held = [1.0, *(float(members_in_node(size, strides[name], float(level.devices))) for level in levels)]
            held[-1] = float(size)
            ways = tuple(outer / inner for inner, outer in pairwise(held))
            waited = mean(computation.parts.get(part, 0.0)) / mean(computation.step_seconds.value)
            yield PlacedDimension(name, size, strides[name], ways, waited)


def _strides(section: ParallelismSection) -> Mapping[str, int]:
    """Return how many ranks lie between neighbours of each dimension: tensor, context, data, pipeline."""
    strides, ranks = {"ep": int(section.etp or 1)}, 1
    for name in _PARTS:
        if name != "ep":
            strides[name] = ranks
            ranks *= int(getattr(section, name) or 1)
    return strides


def _busy(answer: Answer) -> Mapping[str, Mapping[str, float]]:
    """Return the share of an iteration in which each level's link paces collectives, by dimension."""
    names = {part: name for name, part in _PARTS.items()}
    whole = mean(answer.estimate.computation.step_seconds.value)
    busy: dict[str, dict[str, float]] = {}
    for phase in answer.estimate.work.phases:
        for collective in phase.collectives:
            level = pacing_level(mean(collective.group), mean(collective.stride), answer.resolved.cluster)
            seconds = _seconds(collective, phase)
            if level is None or not seconds or collective.part not in names:
                continue
            shares = busy.setdefault(level.name, {})
            name = names[collective.part]
            shares[name] = shares.get(name, 0.0) + seconds / whole
    return busy


def _seconds(collective: Collective, phase: Phase) -> float:
    """Return the seconds of a collective in one iteration, hidden or not."""
    repeats = 1.0 if collective.per_step else phase.schedule.repeats
    return mean(collective.seconds * collective.count * repeats * phase.runs)
