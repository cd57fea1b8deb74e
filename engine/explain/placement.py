"""Where the parallel dimensions of a run lie on the levels of its cluster, and how busy the links between are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from capacity_tui.engine.cluster import Cluster, Level
from capacity_tui.engine.estimate import Answer, Collective, Part, Phase
from capacity_tui.engine.estimate.timing import members_in_node, pacing_level
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import ParallelismSection
from capacity_tui.engine.record import dataclass

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
