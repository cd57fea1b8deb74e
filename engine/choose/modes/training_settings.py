"""Open fields of training a transformer: the wish, and layout and settings that stay inside a mode's memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows.modes import Mode
from capacity_tui.engine.choose.candidates import (
    CHECKPOINTING,
    LARGEST_MICRO_BATCH,
    Choice,
    Evaluated,
    candidates,
    each,
    evaluate,
    layouts,
    powers_of_two,
)
from capacity_tui.engine.choose.modes.filled import Reasons, Values, budget_text, memory_budget
from capacity_tui.engine.cluster.cluster import Cluster
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.plan.edit import with_values
from capacity_tui.engine.plan.layout_rules import Layout, plan_layout
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.units import format_bytes, format_count

if TYPE_CHECKING:
    from capacity_tui.engine.machine.machine import Machine

# What is wanted of a job, the same in all modes so that they compare the same job.
WISH = ("training.seq_len", "training.tokens", "training.global_batch")


@dataclass(frozen=True, slots=True)
class Searched:
    """The settings a search chose.

    Attributes:
        values: what was chosen.
        reasons: why.
        inside: whether they stay inside the mode's memory.
        fits: whether they fit the device and its host at all.
        needed: bytes of the fullest device.
    """

    values: Values
    reasons: Reasons
    inside: bool
    fits: bool
    needed: float


@dataclass(frozen=True, slots=True)
class Search:
    """What stays the same from one search to the next.

    Attributes:
        plan: the plan as the user gave it.
        settled: the same with placeholders where it is open.
        mode: whose figures decide.
        catalog: facts.
        machine: the detected machine, where there is one.
    """

    plan: Plan
    resolved: ResolvedPlan
    mode: Mode
    catalog: Catalog
    machine: Machine | None

    def before(self, wanted: tuple[str, ...]) -> tuple[Values, Reasons]:
        """Choose what memory does not decide: precision and sequence."""
        values: Values = {}
        reasons: Reasons = {}
        device, shape = self.resolved.cluster.device, self.resolved.shape
        if "training.precision" in wanted:
            native = device.native("bf16")
            values["training.precision"] = native
            reasons["training.precision"] = f"widest range of the 16-bit types {device.name} runs natively"
            if native == "fp32":
                reasons["training.precision"] = f"{device.name} has no 16-bit matrix units"
        if "training.seq_len" in wanted:
            context = 0.0 if shape is None else float(shape.max_context)
            upper = self.mode.sequence_range[1] or 2 * (self.mode.sequence_range[0] or 1024)
            values["training.seq_len"] = int(min(upper, context or upper))
            reasons["training.seq_len"] = f"upper end of the mode's range, within a context of {context:,.0f}"
        return values, reasons

    def settings(self, base: Values, wanted: tuple[str, ...]) -> Searched:
        """Choose the fastest settings that stay inside the mode's memory.

        Args:
            base: values besides the plan's own, which the search leaves alone.
            wanted: paths of the fields it may set.
        """
        resolved = resolve_plan(with_values(self.resolved.plan, base), self.catalog, self.machine, self.resolved)
        assert resolved.shape is not None  # noqa: S101 - only transformers come here
        run = transformer_run(resolved.plan, resolved.shape, resolved.cluster, self.catalog)
        layout = plan_layout(resolved.plan, resolved.shape, self.catalog)
        batch = self.plan.training.global_batch
        layout = replace(layout, global_batch=float(batch) if isinstance(batch, int) else 0.0)
        if isinstance(batch, int):
            run = replace(run, global_batch=float(batch))
        options = _options(self.plan, run, wanted, self.mode, layout)
        replica_batch = None if "training.global_batch" not in wanted else self.mode.replica_batch
        evaluated = evaluate(run, candidates(options), replica_batch)
        index, inside, fits = best(evaluated, run.cluster, self.mode)
        values: Values = dict(evaluated.choices[index])
        if replica_batch is not None:
            values["training.global_batch"] = _global_batch(values, run, replica_batch)
        training = self.plan.training
        if "training.tokens" in wanted and not (training.steps or training.epochs):
            values["training.tokens"] = float(run.counts.total) * self.mode.tokens_per_parameter
        if isinstance(self.plan.parallelism.dp, int):
            values["parallelism.dp"] = self.plan.parallelism.dp
        reasons = _reasons(values, wanted, evaluated, index, inside, run, self.mode)
        return Searched({**base, **values}, reasons, inside, fits, float(evaluated.reserved[index]))


def _global_batch(values: Values, run: TransformerRun, replica_batch: int) -> int:
    tp, pp = (float(str(values.get(f"parallelism.{name}", getattr(run, name)))) for name in ("tp", "pp"))
    replicas = max(1, int(float(run.cluster.devices) / (tp * pp * float(run.cp))))
    micro_batch = int(str(values.get("training.micro_batch", int(run.micro_batch))))
    return replicas * max(replica_batch, micro_batch)


def _options(
    plan: Plan, run: TransformerRun, wanted: tuple[str, ...], mode: Mode, layout: Layout
) -> list[tuple[Choice, ...]]:
    """Return what to try for every open field that memory and speed decide."""
    options: list[tuple[Choice, ...]] = []
    if "training.micro_batch" in wanted:
        most = mode.batch_range[1] or LARGEST_MICRO_BATCH
        batch = plan.training.global_batch
        if "training.global_batch" not in wanted and isinstance(batch, int):
            most = min(most, max(1.0, batch / float(run.dp)))
        options.append(each("training.micro_batch", powers_of_two(most)))
    if "training.checkpointing" in wanted:
        options.append(each("training.checkpointing", CHECKPOINTING))
    tensor, pipeline = "parallelism.tp" in wanted, "parallelism.pp" in wanted
    if tensor or pipeline:
        replicas = plan.parallelism.dp if isinstance(plan.parallelism.dp, int) else None
        found = layouts(layout, int(run.cluster.direct_devices), tensor, pipeline, replicas)
        options.append(_with_sharding_groups(found, plan.parallelism.shard or 1, run))
    if "parallelism.zero" in wanted:
        options.append(each("parallelism.zero", (0, 1, 2, 3) if run.cluster.devices > 1 else (0,)))
    if "parallelism.offload" in wanted:
        options.append(each("parallelism.offload", ("none", "optimizer")))
    return options


def _with_sharding_groups(found: tuple[Choice, ...], shard: int, run: TransformerRun) -> tuple[Choice, ...]:
    """Return the layouts with as many replicas as a given sharding group has; all where there are none."""
    largest = float(run.cluster.devices) / shard
    wide = [choice for choice in found if _model_parallel(choice) <= largest]
    return tuple(wide) or found


def _model_parallel(choice: Choice) -> int:
    return int(str(choice["parallelism.tp"])) * int(str(choice["parallelism.pp"]))


def best(evaluated: Evaluated, cluster: Cluster, mode: Mode) -> tuple[int, bool, bool]:
    """Return the fastest candidate inside the mode's memory, whether there is one, and whether it fits at all.

    Where none stays inside, it is the smallest of those that fit, or of all. The allocator also keeps room for
    fragmentation, or for a spike of the peak, whichever is larger.
    """
    capacity, budget = cluster.device.memory_bytes, memory_budget(mode, cluster)
    inside = np.ones(len(evaluated.choices), dtype=bool)
    fits = inside.copy()
    if budget is not None and capacity is not None:
        margin = max(mode.reserve.fragmentation, mode.reserve.spikes)
        room = evaluated.allocated * (1.0 + margin) + mode.reserve.context_gb * 1e9 <= capacity
        inside = (evaluated.reserved <= budget) & (room | (cluster.device.kind == "cpu"))
        fits = evaluated.reserved <= capacity
    if cluster.host_memory_bytes is not None:
        there = float(np.max(cluster.host_memory_bytes))
        host = max(0.0, there - mode.reserve.system_gb * 1e9)
        inside &= evaluated.host <= host * mode.utilization
        fits &= evaluated.host <= there
    if not inside.any():
        index = int(np.argmin(np.where(fits, evaluated.reserved, np.inf) if fits.any() else evaluated.reserved))
        return index, False, bool(fits.any())
    # A hair less speed is worth less recomputation: settle ties, not differences.
    speed = np.where(inside, evaluated.tokens_per_second * (1.0 - 1e-6 * evaluated.recomputed), -1.0)
    return int(np.argmax(speed)), True, True


def _reasons(
    values: Values,
    wanted: tuple[str, ...],
    evaluated: Evaluated,
    index: int,
    inside: bool,
    run: TransformerRun,
    mode: Mode,
) -> Reasons:
    """Say why each value was chosen, with the figures that decided."""
    limit = budget_text(mode, run.cluster)
    used = format_bytes(float(evaluated.reserved[index]))
    speed = format_count(float(evaluated.tokens_per_second[index]))
    verdict = f"fastest of {len(evaluated.choices)} settings that stay inside {limit}: {used}, {speed} tok/s"
    if not inside:
        verdict = f"nothing of {len(evaluated.choices)} settings stays inside {limit}; this needs least: {used}"
    reasons = dict.fromkeys((path for path in values if path in wanted and path not in WISH), verdict)
    if "training.global_batch" in values:
        reasons["training.global_batch"] = f"{mode.replica_batch} sequences a replica, {mode.accumulation} accumulation"
    if "training.tokens" in values:
        ratio = f"{mode.tokens_per_parameter:g}"
        reasons["training.tokens"] = f"{ratio} tokens a parameter (Hoffmann et al. 2022; the mode's ratio)"
    return reasons
