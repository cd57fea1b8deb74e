"""Scalability: step time, speed-up and communication over device counts and batch sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from capacity_tui.engine.choose.space.grid import powers_of_two
from capacity_tui.engine.choose.whatif.trials import EstimatedPlan, Trial, has_room, re_estimate, unit_seconds
from capacity_tui.engine.estimate.bottleneck import NETWORK
from capacity_tui.engine.estimate.result import Estimate, Scaling
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.field_lists import model_sizes

Parallelism = Literal["data", "model"]


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one batch size and kind of parallelism, by rising device count.

    Attributes:
        batch: samples of a step.
        parallelism: data or model.
        points: the points.
    """

    batch: int
    parallelism: Parallelism
    points: tuple[Scaling, ...]

    @property
    def network_from(self) -> int | None:
        """Devices from which on communication limits; None if it does nowhere."""
        return next((point.devices for point in self.points if point.limited_by == "network"), None)


def scalability(case: EstimatedPlan) -> tuple[Scaling, ...]:
    """Return the points a plan asks for; none where it does not ask.

    The batch stays the same over all device counts (strong scaling). Points that cannot be, such as a batch
    smaller than the replicas, are left out. What is fitted in one go has none, and only transformers are divided.
    """
    wanted = case.plan.scalability
    if not wanted.enabled or case.plan.task == "fit":
        return ()
    divisible = case.resolved.shape is not None
    asked: tuple[tuple[Parallelism, bool], ...] = (
        ("data", wanted.data_parallel),
        ("model", wanted.model_parallel and divisible),
    )
    kinds = [kind for kind, on in asked if on]
    batches = wanted.batch_sizes or (_own_batch(case),)
    return tuple(
        point for kind in kinds for batch in batches for point in _curve(case, _device_counts(case, kind), batch, kind)
    )


def curves(points: Iterable[Scaling]) -> tuple[Curve, ...]:
    """Return points as curves."""

    def group(point: Scaling) -> tuple[str, int]:
        return point.parallelism, point.batch

    return tuple(
        Curve(batch, found[0].parallelism, tuple(found))
        for (_, batch), members in groupby(points, group)
        if (found := list(members))
    )


def _device_counts(case: EstimatedPlan, kind: Parallelism) -> tuple[int, ...]:
    """Return the counts the plan gives; where it gives none, powers of two around its own."""
    wanted = case.plan.scalability
    parallel, devices = case.plan.parallelism, int(case.resolved.cluster.devices)
    least = int(parallel.tp or 1) * int(parallel.pp or 1) * parallel.cp if kind == "data" else 1
    if "device_counts" in case.wanted.scalability.model_fields_set or devices <= max(wanted.device_counts):
        return tuple(sorted(set(wanted.device_counts)))
    return tuple(least * size for size in powers_of_two(2.0 * devices / least))


def _curve(case: EstimatedPlan, counts: Iterable[int], batch: int, kind: Parallelism) -> Iterator[Scaling]:
    found = [(count, trial) for count in counts if (trial := _fastest(case, _spread(case, count, batch, kind)))]
    # One sample's device-seconds where they are fewest: usually on the fewest devices, unless these waste the most.
    least = min((count * unit_seconds(trial.estimate) for count, trial in found), default=0.0)
    for count, trial in found:
        efficiency = least / (count * unit_seconds(trial.estimate))
        yield Scaling(
            devices=count,
            batch=batch,
            step_seconds=mean(trial.estimate.computation.step_seconds.value),
            speedup=efficiency * count,
            efficiency=efficiency,
            communication_share=communication_share(trial.estimate),
            parallelism=kind,
            fits=_fits(trial),
            limited_by=trial.estimate.bottleneck.kind,
        )


def _fastest(case: EstimatedPlan, changes: Iterable[Mapping[str, object]]) -> Trial | None:
    trials = [trial for change in changes if (trial := re_estimate(case, change))]
    return min(trials, key=lambda trial: unit_seconds(trial.estimate), default=None)


def communication_share(estimate: Estimate) -> float:
    """Return the share of a step that waits for other devices, pipeline bubbles included."""
    parts = estimate.computation.parts
    waits = sum(mean(parts.get(part, 0.0)) for part in NETWORK)
    return waits / mean(estimate.computation.step_seconds.value)


def _spread(case: EstimatedPlan, devices: int, batch: int, kind: Parallelism) -> Iterator[Mapping[str, object]]:
    """Yield the changes that run a batch on so many devices."""
    change: dict[str, object] = {"hardware.devices": devices}
    parallel, per_node = case.plan.parallelism, int(case.resolved.cluster.direct_devices)
    if case.resolved.shape is None:
        yield from ({**change, **shared} for shared in _batches(case, batch, devices))
        return
    model = int(parallel.tp or 1) * int(parallel.pp or 1) * parallel.cp
    if kind == "model":
        heads = int(case.resolved.shape.heads)
        widest = max(per_node, int(parallel.tp or 1))
        tensor = max(size for size in powers_of_two(min(devices, widest)) if heads % size == 0 and devices % size == 0)
        model = devices
        alone = dict.fromkeys(model_sizes(), 1)
        change |= {**alone, "parallelism.tp": tensor, "parallelism.pp": devices // tensor}
    yield from ({**change, **shared} for shared in _batches(case, batch, max(1, devices // model)))


def _batches(case: EstimatedPlan, batch: int, replicas: int) -> Iterator[Mapping[str, object]]:
    """Yield the changes to a batch of all replicas.

    Where the plan's micro-batch does not divide a replica's share, smaller ones waste less of the last pass and more
    on further passes: the fastest counts.
    """
    if case.plan.task == "infer":
        yield {"inference.batch": max(1, batch // replicas)}
        return
    share = max(1, batch // replicas)
    micro_batch = int(case.plan.training.micro_batch)
    sizes = [micro_batch]
    if share < micro_batch or batch % (micro_batch * replicas):
        sizes = [size for size in (*powers_of_two(micro_batch), micro_batch) if size <= share]
    for size in dict.fromkeys(sizes):
        yield {"training.global_batch": batch, "training.micro_batch": size}


def _own_batch(case: EstimatedPlan) -> int:
    if case.plan.task == "infer":
        return int(case.plan.inference.batch) * int(case.plan.parallelism.dp or 1)
    return int(case.plan.training.global_batch or case.plan.training.micro_batch)


def _fits(trial: Trial) -> bool | None:
    return None if trial.estimate.fits is None else has_room(trial.estimate)
