"""Checkpoints of a training: how large one is, how long saving takes, and how often that pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import StorageTier
from capacity_tui.engine.estimate import Answer, checkpoint_period, checkpoint_seconds, equation, interruption_surplus
from capacity_tui.engine.estimate.data import LOCAL, tier_of
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.numeric import Number, mean
from capacity_tui.engine.solve.advice import KEPT_CHECKPOINTS
from capacity_tui.engine.units import GIGA, HOUR_SECONDS

SHARED = "network"
FAILURE = "device-hours-between-failures"
RESTART = "restart-after-failure"
SHARDED = 1
"""From this stage of ZeRO on every replica writes a part."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a training saves of itself.

    Attributes:
        bytes: of one checkpoint: weights that are trained, their exact copy and the optimizer's states.
        kept: how many are kept at once, the one that is being written among them.
        tier: where they are written.
        writers: nodes that write side by side.
        save_seconds: seconds in which one is saved.
        failure_seconds: mean seconds between interruptions of the job.
        best_interval_seconds: seconds of work between two that lose least.
        interval_seconds: the plan's, as given or chosen.
        count: how many the job writes; None where its length is open.
        stall_share: time in which the training waits for them, over the time of the work.
        lost_share: that, and work lost to interruptions, likewise.
    """

    bytes: float
    kept: int
    tier: StorageTier
    writers: float
    save_seconds: float
    failure_seconds: float
    best_interval_seconds: float
    interval_seconds: float
    count: float | None
    stall_share: float
    lost_share: float

    @property
    def kept_bytes(self) -> float:
        """Bytes of all that are kept at once."""
        return self.kept * self.bytes


@equation(
    "size = trained · parameters · (weight + copy + states)",
    unit="B",
    source="what a framework saves to go on exactly where it stopped",
    units={"weight": "B", "copy": "B", "states": "B"},
)
def checkpoint_bytes(trained: Number, parameters: Number, weight: Number, copy: Number, states: Number) -> Number:
    """Bytes of one checkpoint, over all devices.

    Args:
        trained: share of the parameters that is trained; a frozen base is not written.
        parameters: parameters of the model.
        weight: bytes of a weight.
        copy: bytes of its exact copy, 0 if none.
        states: bytes of the optimizer's states of it.
    """
    return trained * parameters * (weight + copy + states)


def checkpoints_of(found: Answer, job_seconds: float | None, catalog: Catalog) -> Checkpoints:
    """Return the checkpoints of an estimated training.

    Args:
        found: the training.
        job_seconds: how long it takes; None where that is open.
        catalog: rates and assumptions.
    """
    resolved, plan = found.resolved, found.plan
    cluster = resolved.cluster
    nodes = max(1.0, mean(cluster.devices) / mean(cluster.per_node))
    parallel = plan.parallelism
    model = float(parallel.tp or 1) * float(parallel.pp or 1) * float(parallel.cp)
    is_shared_out = int(parallel.zero or 0) >= SHARDED
    writers = nodes if is_shared_out else min(nodes, float(np.ceil(model / mean(cluster.per_node))))
    tier = tier_of(LOCAL if nodes == 1 else SHARED, cluster, catalog)
    size = _bytes(found, catalog)
    save = mean(checkpoint_seconds(size / writers, (tier.write_gbs or tier.read_gbs) * GIGA))
    risk = cluster.price.interruptions if plan.pricing.spot else None
    failure = _failure_seconds(mean(cluster.devices), catalog) if risk is None else risk.seconds_between
    restart = catalog.assumptions[RESTART].value if risk is None else risk.restart_seconds
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


def _failure_seconds(devices: float, catalog: Catalog) -> float:
    return catalog.assumptions[FAILURE].value * HOUR_SECONDS / devices


def _bytes(found: Answer, catalog: Catalog) -> float:
    resolved = found.resolved
    if resolved.shape is not None:
        run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, catalog)
        each = (run.numerics.element_bytes, run.numerics.master_bytes, run.numerics.optimizer.state_bytes)
        return mean(checkpoint_bytes(run.trained_of_all, run.counts.total, *each))
    parts, zero = found.estimate.memory.parts, int(found.plan.parallelism.zero or 0)
    shard = float(found.plan.parallelism.shard or 1)
    weights = mean(parts.get("weights", 0.0)) * (shard if zero > 1 + 1 else 1.0)
    states = (mean(parts.get("optimizer", 0.0)) + mean(found.estimate.memory.host_bytes)) * (shard if zero else 1.0)
    return weights + states
