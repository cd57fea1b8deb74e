"""Scalability: step time, speed-up and communication over device counts and batch sizes.

Strong scaling keeps the batch over all device counts, weak scaling keeps the batch of each device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import NETWORK, Estimate, Scaling, figure
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import model_sizes
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.candidate import Candidate, EstimatedPlan
from capacity_tui.engine.solve.changes import estimate_changes, unit_seconds
from capacity_tui.engine.solve.space.axes import offered, powers_of_two
from capacity_tui.engine.units import HOUR_SECONDS
from capacity_tui.engine.verdict import Verdict

Parallelism = Literal["data", "model"]
Growth = Literal["strong", "weak"]
FARTHEST = 4096  # Devices up to which a plan is tried at least where nobody says
BEYOND = 8  # Times its own devices up to which it is tried at least


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one batch size and kind of parallelism, by rising device count."""

    batch: int  # samples of a step; of the plan's own devices where it grows with them
    parallelism: Parallelism
    points: tuple[Scaling, ...]
    growth: Growth = "strong"  # whether the batch is that of all devices or of each

    @property
    def network_from(self) -> int | None:
        """Devices from which on communication limits; None if it does nowhere."""
        return next((point.devices for point in self.points if point.limited_by == "network"), None)

    @property
    def ends_early(self) -> bool:
        """Whether the batch of a plan that grows is shared by no more devices, though more were tried."""
        return self.growth == "strong" and 2 * self.points[-1].devices <= FARTHEST

    @property
    def knee(self) -> int | None:
        """Devices with the largest product of speed-up and efficiency; None where that is the last count.

        Eager, Zahorjan and Lazowska 1989: beyond it each further device loses more efficiency than it brings speed.
        """
        holding = [point for point in self.points if point.fits is not False] or self.points
        best = max(holding, key=lambda point: point.speedup * point.efficiency, default=None)
        return None if best is None or best is self.points[-1] else best.devices


@dataclass(frozen=True, slots=True)
class ScaledRun:
    """A plan on some number of devices."""

    devices: int
    batch: int  # samples of one step over all of them
    parallelism: Parallelism
    # what to set for it, what a mode chose among it: with other devices it might choose otherwise
    change: Mapping[str, object]
    candidate: Candidate

    @property
    def device_seconds(self) -> float:
        """Seconds of all devices for one token or sample."""
        return self.devices * unit_seconds(self.candidate.estimate)


def scalability(case: EstimatedPlan) -> tuple[Scaling, ...]:
    """Return the points a plan asks for; none where it does not ask.

    Points that cannot be, such as a batch smaller than the replicas, are left out. What is fitted in one go has none,
    and only transformers are divided.
    """
    wanted = case.plan.scalability
    if not wanted.enabled or case.plan.is_fit:
        return ()
    divisible = case.resolved.shape is not None
    asked: tuple[tuple[Parallelism, bool], ...] = (
        ("data", wanted.data_parallel),
        ("model", wanted.model_parallel and divisible),
    )
    kinds = [kind for kind, on in asked if on]
    growths: tuple[Growth, ...] = ("strong", "weak") if wanted.weak else ("strong",)
    batches = wanted.batch_sizes or (_batch_of(case),)
    return tuple(
        point
        for kind in kinds
        for growth in growths
        for batch in batches
        for point in scaling_points(_runs(case, _device_counts(case, kind), batch, kind, growth), growth)
    )


def growing_runs(case: EstimatedPlan, growth: Growth) -> Iterator[ScaledRun]:
    """Yield the plan on more and more devices, at least up to ``FARTHEST``; none of what is fitted in one go.

    More devices are more replicas in the plan's own layout, as long as that can be and fits. Beyond, the model is split
    in the fastest way that fits, else in the fastest there is. What cannot be at all is left out.
    """
    if case.plan.is_fit:
        return
    batch, current = _batch_of(case), int(case.resolved.cluster.devices)
    for devices in _counts_around(case):
        run = next(_runs(case, (devices,), batch, "data", growth), None)
        if run is not None and (devices == current or run.candidate.estimate.fits is not False):
            yield run
            continue
        split = _split(case, devices, _batch_on(case, devices, batch, growth))
        better = run if split is None or (run is not None and split.candidate.estimate.fits is False) else split
        if better is not None:
            yield better


def scaling_points(runs: Iterable[ScaledRun], growth: Growth = "strong") -> tuple[Scaling, ...]:
    """Return runs by rising device count as points of a curve."""
    points = tuple(runs)
    # One sample's device-seconds where they are fewest: usually on the fewest devices, unless these waste the most, or
    # do not hold it.
    holding = [run for run in points if run.candidate.estimate.fits is not False] or points
    least = min((run.device_seconds for run in holding), default=0.0)
    before = (None, *points)[: len(points)]
    return tuple(_point(run, least, growth, last) for run, last in zip(points, before, strict=True))


def curves(points: Iterable[Scaling]) -> tuple[Curve, ...]:
    """Return points as curves: the devices of each rise, and all else that makes a curve is the same."""
    groups: list[list[Scaling]] = []
    for point in points:
        last = groups[-1][-1] if groups else None
        if last is None or _kind(point) != _kind(last) or point.devices <= last.devices:
            groups.append([])
        groups[-1].append(point)
    return tuple(Curve(group[0].batch, group[0].parallelism, tuple(group), group[0].growth) for group in groups)


def _kind(point: Scaling) -> tuple[str, str, int]:
    return point.parallelism, point.growth, point.batch if point.growth == "strong" else 0


def communication_share(estimate: Estimate) -> float:
    """Return the share of a step that waits for other devices, pipeline bubbles included."""
    parts = estimate.computation.parts
    waits = sum(mean(parts.get(part, 0.0)) for part in NETWORK)
    return waits / mean(estimate.computation.step_seconds.value)


def _point(run: ScaledRun, least: float, growth: Growth, before: ScaledRun | None) -> Scaling:
    estimate = run.candidate.estimate
    efficiency = least / run.device_seconds
    seconds, usd = _job(estimate)
    return Scaling(
        devices=run.devices,
        batch=run.batch,
        step_seconds=mean(estimate.computation.step_seconds.value),
        speedup=efficiency * run.devices,
        efficiency=efficiency,
        communication_share=communication_share(estimate),
        parallelism=run.parallelism,
        fits=run.candidate.estimate.fits,
        limited_by=estimate.bottleneck.kind,
        growth=growth,
        job_seconds=seconds,
        usd=usd,
        usd_per_hour_saved=None
        if before is None
        else _usd_per_hour_saved(_job(before.candidate.estimate), (seconds, usd)),
        price_source=estimate.cost.source,
    )


def _job(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return time and price of the whole job."""
    return figure(estimate, Figure.ESTIMATED_TRAIN_TIME_SECONDS).number, figure(estimate, Figure.COST_USD).number


def _usd_per_hour_saved(
    slower: tuple[float | None, float | None], faster: tuple[float | None, float | None]
) -> float | None:
    """Return what an hour costs that a job ends earlier; None where it does not, or a price is not known."""
    if None in slower or None in faster:
        return None
    (seconds, usd), (fewer_seconds, more_usd) = slower, faster
    saved = (float(seconds or 0.0) - float(fewer_seconds or 0.0)) / HOUR_SECONDS
    return (float(more_usd or 0.0) - float(usd or 0.0)) / saved if saved > 0 else None


def _device_counts(case: EstimatedPlan, kind: Parallelism) -> tuple[int, ...]:
    """Return the counts the plan gives; where it gives none, powers of two around its own."""
    wanted = case.plan.scalability
    devices = int(case.resolved.cluster.devices)
    least = _model_devices(case) if kind == "data" else 1
    if "device_counts" in case.wanted.scalability.model_fields_set or devices <= max(wanted.device_counts):
        return tuple(sorted(set(wanted.device_counts)))
    return tuple(least * size for size in powers_of_two(2.0 * devices / least))


def _counts_around(case: EstimatedPlan) -> tuple[int, ...]:
    """Return the plan's own count with its halves, as long as they are whole, and its doubles."""
    current = int(case.resolved.cluster.devices)
    halves = [current // size for size in powers_of_two(current) if current % size == 0]
    return tuple(sorted({*halves, *(current * size for size in powers_of_two(max(FARTHEST / current, BEYOND)))}))


def _model_devices(case: EstimatedPlan) -> int:
    """Return over how many devices the plan splits a replica."""
    parallel = case.plan.parallelism
    return int(parallel.tp or 1) * int(parallel.pp or 1) * int(parallel.cp)


def _runs(
    case: EstimatedPlan, counts: Iterable[int], batch: int, kind: Parallelism, growth: Growth
) -> Iterator[ScaledRun]:
    for count in counts:
        whole = _batch_on(case, count, batch, growth)
        fastest = min(
            case.pinned.feasible(_spread(case, count, whole, kind)),
            key=lambda candidate: unit_seconds(candidate.estimate),
            default=None,
        )
        if fastest is not None:
            yield ScaledRun(count, whole, kind, {**case.filled_values, **fastest.change}, fastest)


def _batch_on(case: EstimatedPlan, devices: int, batch: int, growth: Growth) -> int:
    current = float(case.resolved.cluster.devices)
    return batch if growth == "strong" else max(1, round(batch * devices / current))


def _split(case: EstimatedPlan, devices: int, batch: int) -> ScaledRun | None:
    """Return the fastest way to split the model over devices, one that fits where there is any."""
    pinned, changes = case.pinned, tuple(_splits(case, devices, batch))
    looks = estimate_changes(pinned.wanted, changes, case.machine, case.catalog) if changes else ()
    ranked = [
        (look.verdict is not Verdict.DOES_NOT_FIT, figure(look, Figure.TOKENS_PER_SECOND).number or 0.0, change)
        for look, change in zip(looks, changes, strict=True)
        if not isinstance(look, CapacityError)
    ]
    if not ranked:
        return None
    _, _, change = max(ranked, key=lambda entry: entry[:2])
    fastest = pinned.evaluate(change)
    if fastest.filled is None:
        return None
    return ScaledRun(devices, batch, "model", {**case.filled_values, **fastest.change}, fastest)


def _splits(case: EstimatedPlan, devices: int, batch: int) -> Iterator[Mapping[str, object]]:
    """Yield the layouts with other tensor and pipeline sizes that a batch allows."""
    shape, parallel = case.resolved.shape, case.plan.parallelism
    if shape is None:
        return
    has = {} if case.plan.is_inference else offered(case.plan, case.catalog)
    widest = min(devices, max(int(case.resolved.cluster.direct_devices), int(parallel.tp or 1)))
    for tensor in (size for size in powers_of_two(widest) if float(shape.heads) % size == 0):
        for stages in powers_of_two(min(float(shape.layers), devices / tensor)):
            replicas, rest = divmod(devices, tensor * stages * int(parallel.cp))
            sizes = {Key.PARALLELISM_TP: tensor, Key.PARALLELISM_PP: stages}
            can_be = all(size in has.get(path, (size,)) for path, size in sizes.items())
            if rest or not replicas or replicas > batch or not can_be:
                continue
            change = {Key.HARDWARE_DEVICES: devices, **sizes}
            yield from ({**change, **shared} for shared in _batches(case, batch, replicas))


def _spread(case: EstimatedPlan, devices: int, batch: int, kind: Parallelism) -> Iterator[Mapping[str, object]]:
    """Yield the changes that run a batch on so many devices."""
    change: dict[str, object] = {Key.HARDWARE_DEVICES: devices}
    per_node = int(case.resolved.cluster.direct_devices)
    if case.resolved.shape is None:
        yield from ({**change, **shared} for shared in _batches(case, batch, devices))
        return
    model = _model_devices(case)
    if kind == "model":
        heads = int(case.resolved.shape.heads)
        widest = max(per_node, int(case.plan.parallelism.tp or 1))
        tensor = max(size for size in powers_of_two(min(devices, widest)) if heads % size == 0 and devices % size == 0)
        model = devices
        alone = dict.fromkeys(model_sizes(), 1)
        change |= {**alone, Key.PARALLELISM_TP: tensor, Key.PARALLELISM_PP: devices // tensor}
    yield from ({**change, **shared} for shared in _batches(case, batch, max(1, devices // model)))


def _batches(case: EstimatedPlan, batch: int, replicas: int) -> Iterator[Mapping[str, object]]:
    """Yield the changes to a batch of all replicas.

    Where the plan's micro-batch does not divide a replica's share, smaller ones waste less of the last pass and more
    on further passes: the fastest counts.
    """
    if case.plan.is_inference:
        if replicas <= batch:
            yield {Key.INFERENCE_BATCH: batch // replicas}
        return
    share = max(1, batch // replicas)
    micro_batch = int(case.plan.training.micro_batch)
    sizes = [micro_batch]
    if share < micro_batch or batch % (micro_batch * replicas):
        sizes = [size for size in (*powers_of_two(micro_batch), micro_batch) if size <= share]
    for size in dict.fromkeys(sizes):
        yield {Key.TRAINING_GLOBAL_BATCH: batch, Key.TRAINING_MICRO_BATCH: size}


def _batch_of(case: EstimatedPlan) -> int:
    if case.plan.is_inference:
        return int(case.plan.inference.batch) * int(case.plan.parallelism.dp or 1)
    return int(case.plan.training.global_batch or case.plan.training.micro_batch)
