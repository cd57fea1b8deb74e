"""Checkpoints of a training: how large one is, how long saving takes, and how often that pays."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import Catalog, counted
from capacity_tui.engine.catalog.rows import StorageTier
from capacity_tui.engine.errors import Place, PlanError
from capacity_tui.engine.estimate import (
    Answer,
    checkpoint_period,
    checkpoint_seconds,
    estimate_plan,
    failure_interval,
    formula,
    interruption_surplus,
)
from capacity_tui.engine.estimate.data import LOCAL, MEMORY, Content, Supply, tier_of
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import DataPhase, DataSection, Plan, edited
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.advice import KEPT_CHECKPOINTS
from capacity_tui.engine.units import GIGA

SHARED = "network"
SHARDED = 1  # From this stage of ZeRO on every replica writes a part


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a training saves of itself."""

    bytes: float  # of one checkpoint: weights that are trained, their exact copy and the optimizer's states
    kept: int  # how many are kept at once, the one that is being written among them
    tier: StorageTier  # where they are written
    writers: float  # nodes that write side by side
    save_seconds: float  # seconds in which one is saved
    failure_seconds: float  # mean seconds between interruptions of the job
    best_interval_seconds: float  # seconds of work between two that lose least
    interval_seconds: float  # the plan's, as given or chosen
    count: float | None  # how many the job writes; None where its length is open
    stall_share: float  # time in which the training waits for them, over the time of the work
    lost_share: float  # that, and work lost to interruptions, likewise

    @property
    def kept_bytes(self) -> float:
        """Bytes of all that are kept at once."""
        return self.kept * self.bytes


checkpoint_bytes = formula()


def checkpoints_of(answer: Answer, job_seconds: float | None, catalog: Catalog) -> Checkpoints:
    """Return the checkpoints of an estimated training, which takes so long; None where that is open."""
    resolved, plan = answer.resolved, answer.plan
    cluster = resolved.cluster
    nodes = max(1.0, mean(cluster.devices) / mean(cluster.per_node))
    parallel = plan.parallelism
    model = float(parallel.tp or 1) * float(parallel.pp or 1) * float(parallel.cp)
    is_shared_out = int(parallel.zero or 0) >= SHARDED
    writers = nodes if is_shared_out else min(nodes, float(np.ceil(model / mean(cluster.per_node))))
    tier = tier_of(LOCAL if nodes == 1 else SHARED, cluster, catalog)
    size = _bytes(answer, catalog)
    save = mean(checkpoint_seconds(size / writers, (tier.write_gbs or tier.read_gbs) * GIGA))
    risk = cluster.price.interruptions if plan.pricing.spot else None
    failures = cluster.failures
    failure = mean(failure_interval(cluster.devices, failures.device_hours.value))
    failure, restart = (
        (failure, failures.restart_seconds.value) if risk is None else (risk.seconds_between, risk.restart_seconds)
    )
    best = mean(checkpoint_period(save, failure))
    given = plan.recovery.checkpoint_every
    interval = float(given) if isinstance(given, int | float) else best
    return Checkpoints(
        bytes=size,
        kept=KEPT_CHECKPOINTS,
        tier=tier,
        writers=writers,
        save_seconds=save,
        failure_seconds=failure,
        best_interval_seconds=best,
        interval_seconds=interval,
        count=None if job_seconds is None else max(1.0, float(np.ceil(job_seconds / interval))),
        stall_share=save / interval,
        lost_share=mean(interruption_surplus(interval, save, restart, failure)),
    )


def _bytes(answer: Answer, catalog: Catalog) -> float:
    resolved = answer.resolved
    if resolved.shape is not None:
        run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
        result = (run.numerics.element_bytes, run.numerics.master_bytes, run.numerics.optimizer.state_bytes)
        return mean(checkpoint_bytes(run.trained_of_all, run.counts.total, *result))
    parts, zero = answer.estimate.memory.parts, int(answer.plan.parallelism.zero or 0)
    shard = float(answer.plan.parallelism.shard or 1)
    weights = mean(parts.get("weights", 0.0)) * (shard if zero > 1 + 1 else 1.0)
    states = (mean(parts.get("optimizer", 0.0)) + mean(answer.estimate.memory.host_bytes)) * (shard if zero else 1.0)
    return weights + states


WORKER = "loader-worker-bytes"
TOKEN_BYTES = counted("captured-input-bytes")
FP32_BYTES = 4.0
PINNED = 2.0  # Batches that wait in pinned memory for each device: one that is copied, one that comes next


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes of main memory on one node."""

    workers: float  # of the loader's processes themselves
    prefetched: float  # of the batches that they keep ready
    pinned: float  # of the batches that wait for the devices
    shuffle_buffer: float  # of the samples that streams draw from
    cache: float  # of the data set, where main memory is its cache
    offloaded: float  # of what the training keeps there: states, parameters, activations
    capacity: float | None  # what the node has; None where unknown

    @property
    def total(self) -> float:
        return sum((self.workers, self.prefetched, self.pinned, self.shuffle_buffer, self.cache, self.offloaded))

    @property
    def fits(self) -> bool | None:
        """Whether the node has as much; None where that is unknown."""
        return None if self.capacity is None else self.total <= self.capacity


waiting_bytes = formula()


def sample_bytes(content: Content) -> float:
    """Return the bytes of one sample as tensors: tokens with those to predict, or numbers of 32 bits."""
    if content.holds == "tokens":
        return mean(content.units_per_sample) * TOKEN_BYTES
    return mean(content.numbers) * FP32_BYTES


def host_memory_of(answer: Answer, supply: Supply, content: Content, catalog: Catalog) -> HostMemory:
    """Return the main memory that a training and its data take on each node."""
    cluster, data = answer.resolved.cluster, answer.plan.data
    devices = min(mean(cluster.per_node), mean(cluster.devices))
    workers, sample = supply.workers, sample_bytes(content)
    batch = float(answer.plan.training.micro_batch)
    host = cluster.host_memory_bytes
    processor = cluster.device.is_processor
    return HostMemory(
        workers=devices * workers * catalog.assumptions[WORKER].value * 1e9,
        prefetched=mean(waiting_bytes(devices, workers * _number(data, "prefetch"), batch, sample)),
        pinned=0.0 if processor else mean(waiting_bytes(devices, PINNED, batch, sample)),
        shuffle_buffer=mean(waiting_bytes(devices, max(workers, 1.0), _number(data, "shuffle_buffer"), sample)),
        cache=mean(supply.bytes) if data.cache == MEMORY and supply.bytes is not None else 0.0,
        offloaded=devices * mean(answer.estimate.memory.host_bytes),
        capacity=None if host is None else mean(host) * devices,
    )


def _number(data: DataSection, name: str) -> float:
    value = getattr(data, name)
    return float(value) if isinstance(value, int) else 0.0


@dataclass(frozen=True, slots=True)
class PhaseEstimate:
    """One phase of a training."""

    phase: DataPhase  # its name, its share and what changes in it
    plan: Plan  # the plan of the phase alone
    tokens: float  # tokens it trains on
    step_seconds: float
    seconds: float  # seconds of the phase
    fits: bool | None  # whether it fits


def phase_plans(plan: Plan) -> tuple[tuple[DataPhase, Plan], ...]:
    """Return the phases of a settled plan with the plan of each.

    Raises:
        PlanError: a change of a phase is none that the plan takes, or the job has no length in tokens.
    """
    phases = plan.data.phases
    if not phases or phases == AUTO:
        return ()
    tokens = plan.training.tokens
    if tokens is None or tokens == AUTO:
        hint = "give training.tokens"
        raise PlanError("phases share out tokens, and the plan has none", hint=hint, place=Place(field=Key.DATA_PHASES))
    return tuple((phase, _plan_of(plan, phase, float(tokens))) for phase in phases)


def phase_estimates(answer: Answer, machine: Machine | None, catalog: Catalog) -> tuple[PhaseEstimate, ...]:
    """Return the phases of an estimated training, each estimated by itself; CapacityError where one cannot be."""
    estimates = []
    for phase, plan in phase_plans(answer.plan):
        estimate = estimate_plan(plan, machine, catalog).estimate
        step = mean(estimate.computation.step_seconds.value)
        steps = mean(estimate.computation.steps or 0.0)
        tokens = float(str(plan.training.tokens))
        estimates.append(PhaseEstimate(phase, plan, tokens, step, step * steps, estimate.fits))
    return tuple(estimates)


def _plan_of(plan: Plan, phase: DataPhase, tokens: float) -> Plan:
    change = {Key.DATA_PHASES: [], Key.TRAINING_TOKENS: phase.share * tokens, **phase.changes}
    try:
        return edited(plan, change).plan
    except PlanError as error:
        place = Place(field=f"data.phases.{phase.name}")
        raise PlanError(error.title, error.detail, error.hint, place) from error
