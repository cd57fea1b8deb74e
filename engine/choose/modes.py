"""Three plans for one wish: conservative, balanced and extreme fill what the plan leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.modes import Mode
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
from capacity_tui.engine.choose.filled import ModePlan
from capacity_tui.engine.choose.models import choose_model
from capacity_tui.engine.choose.own_parameters import choose_own_parameters
from capacity_tui.engine.estimate.estimate import Answer, estimate_plan, estimate_settled
from capacity_tui.engine.estimate.resolve import Settled, settle
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.estimate.transformer.resolve import transformer_run
from capacity_tui.engine.estimate.transformer.run import TransformerRun
from capacity_tui.engine.hardware.cluster import Cluster
from capacity_tui.engine.hardware.resolve import resolve_cluster
from capacity_tui.engine.units import format_bytes, format_count, format_percent
from capacity_tui.engine.workload.layout_rules import Layout, plan_layout
from capacity_tui.engine.workload.plan import AUTO, Plan

if TYPE_CHECKING:
    from capacity_tui.engine.hardware.machine import Machine

ModeName = Literal["conservative", "balanced", "extreme"]
MODES: tuple[ModeName, ...] = ("conservative", "balanced", "extreme")
# Before the name of a family's own parameter.
SPEC = "model.spec."
# What each open field holds while its value is still being chosen.
PLACEHOLDERS: Mapping[str, object] = {
    "training.seq_len": 2048,
    "training.micro_batch": 1,
    "training.global_batch": None,
    "training.tokens": None,
    "training.precision": "bf16",
    "training.checkpointing": "none",
    "inference.batch": 1,
    "inference.weights": "bf16",
    "parallelism.dp": None,
    "parallelism.tp": 1,
    "parallelism.pp": 1,
    "parallelism.zero": None,
    "parallelism.offload": "none",
    "model.spec.n_jobs": None,
    "model.spec.precision": None,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three plans side by side."""

    conservative: ModePlan
    balanced: ModePlan
    extreme: ModePlan


def open_fields(plan: Plan) -> tuple[str, ...]:
    """Return the plan fields that are ``auto``."""
    chosen_model = ("model.name",) if plan.model.name == AUTO else ()
    return (*chosen_model, *(path for path in PLACEHOLDERS if plan.value(path) == AUTO))


def compare(plan: Plan, machine: Machine | None = None, catalog: Catalog | None = None) -> Comparison:
    """Return conservative, balanced and extreme plans.

    Raises:
        CapacityError: the plan cannot be estimated.
    """
    facts = catalog or load_catalog()
    if plan.model.name == AUTO:
        return Comparison(*(_fill_model(plan, mode, machine, facts) for mode in MODES))
    settled = settle(_closed_for_now(plan), facts, machine)
    return Comparison(*(_fill(plan, mode, machine, facts, settled) for mode in MODES))


def fill(plan: Plan, mode_name: ModeName, machine: Machine | None = None, catalog: Catalog | None = None) -> ModePlan:
    """Fill every open field as a mode would, and estimate the result."""
    facts = catalog or load_catalog()
    if plan.model.name == AUTO:
        return _fill_model(plan, mode_name, machine, facts)
    return _fill(plan, mode_name, machine, facts, settle(_closed_for_now(plan), facts, machine))


def _closed_for_now(plan: Plan) -> Plan:
    """Return the plan with a placeholder in every open field; replicas wait for the sizes they depend on."""
    values = {path: PLACEHOLDERS[path] for path in open_fields(plan)}
    if {"parallelism.tp", "parallelism.pp"} & values.keys():
        values["parallelism.dp"] = None
    return with_values(plan, values)


def _fill(plan: Plan, mode_name: ModeName, machine: Machine | None, facts: Catalog, settled: Settled) -> ModePlan:
    """Fill the open fields of a plan that names its model; ``settled`` holds placeholders in them."""
    mode = facts.modes[mode_name]
    wanted = open_fields(plan)
    base = _closed_for_now(plan)
    budget = memory_budget(mode, settled.cluster)
    shape = settled.shape
    if settled.spec is not None and settled.plan.task != "infer":

        def estimated(values: Mapping[str, object]) -> Estimate:
            return estimate_plan(with_values(base, values), machine, facts).estimate

        values, reasons = choose_own_parameters(settled, wanted, mode, budget, estimated)
        chosen = with_values(base, values)
    elif shape is None or settled.plan.task == "infer":
        chosen, reasons = _serving(base, wanted, mode, settled.cluster, facts, machine)
    else:
        base, reasons = _before_search(base, wanted, mode, settled.cluster, float(shape.max_context))
        settled = settle(base, facts, machine, like=settled)
        run = transformer_run(settled.plan, shape, settled.cluster, facts)
        options = _options(plan, run, wanted, mode, plan_layout(settled.plan, shape, facts))
        chosen, found = _search(base, run, options, wanted, mode)
        if isinstance(plan.parallelism.dp, int):
            chosen = with_values(chosen, {"parallelism.dp": plan.parallelism.dp})
        reasons = {**reasons, **found}
    settled = settle(chosen, facts, machine, like=settled)
    return ModePlan(mode, settled.plan, estimate_settled(settled, facts), reasons, budget)


def _fill_model(plan: Plan, mode_name: ModeName, machine: Machine | None, facts: Catalog) -> ModePlan:
    """Choose the model first, then fill the rest."""
    cluster = resolve_cluster(plan.hardware, plan.pricing, facts, machine)

    def filled(named: Plan) -> ModePlan:
        return fill(named, mode_name, machine, facts)

    named, reason = choose_model(plan, facts.modes[mode_name], cluster, facts, filled)
    chosen = filled(named)
    return replace(chosen, reasons={"model.name": reason, **chosen.reasons})


def with_values(plan: Plan, values: Mapping[str, object]) -> Plan:
    """Return the plan with known-good values at dotted paths, unchecked."""
    sections: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        section, name = path.split(".", 1)
        if path.startswith(SPEC):
            spec = sections.setdefault(section, {}).setdefault("spec", dict(plan.model.spec))
            cast("dict[str, object]", spec)[path.removeprefix(SPEC)] = value
        else:
            sections.setdefault(section, {})[name] = value
    changed = {name: getattr(plan, name).model_copy(update=fields) for name, fields in sections.items()}
    return plan.model_copy(update=changed)


def memory_budget(mode: Mode, cluster: Cluster) -> float | None:
    """Return the device memory a mode allows itself: its share of what is usable."""
    capacity = cluster.device.memory_bytes
    if capacity is None:
        return None
    system = mode.reserve.system_gb * 1e9 if cluster.device.kind == "cpu" else 0.0
    return max(0.0, (float(np.max(capacity)) - system) * mode.utilization)


def _before_search(
    plan: Plan, wanted: tuple[str, ...], mode: Mode, cluster: Cluster, max_context: float
) -> tuple[Plan, dict[str, str]]:
    """Choose what memory does not decide: precision and sequence."""
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    if "training.precision" in wanted:
        native = cluster.device.native("bf16")
        values["training.precision"] = native
        reasons["training.precision"] = f"widest range of the 16-bit types {cluster.device.name} runs natively"
        if native == "fp32":
            reasons["training.precision"] = f"{cluster.device.name} has no 16-bit matrix units"
    if "training.seq_len" in wanted:
        upper = mode.sequence_range[1] or 2 * (mode.sequence_range[0] or 1024)
        values["training.seq_len"] = int(min(upper, max_context or upper))
        reasons["training.seq_len"] = f"upper end of the mode's range, within a context of {max_context:,.0f}"
    return with_values(plan, values), reasons


def _search(
    plan: Plan, run: TransformerRun, options: list[tuple[Choice, ...]], wanted: tuple[str, ...], mode: Mode
) -> tuple[Plan, dict[str, str]]:
    """Choose the fastest settings that stay inside the mode's memory."""
    replica_batch = None if "training.global_batch" not in wanted else mode.replica_batch
    evaluated = evaluate(run, candidates(options), replica_batch)
    index, fits = best(evaluated, run.cluster, mode)
    values = dict(evaluated.choices[index])
    tp, pp = (float(str(values.get(f"parallelism.{name}", getattr(run, name)))) for name in ("tp", "pp"))
    dp = max(1, int(float(run.cluster.devices) / (tp * pp * float(run.cp))))
    micro_batch = int(str(values.get("training.micro_batch", int(run.micro_batch))))
    if replica_batch is not None:
        values["training.global_batch"] = dp * max(replica_batch, micro_batch)
    tokens_given = plan.training.steps or plan.training.epochs
    if "training.tokens" in wanted and not tokens_given:
        values["training.tokens"] = float(run.counts.total) * mode.tokens_per_parameter
    return with_values(plan, values), _reasons(values, wanted, evaluated, index, fits, run, mode)


def _options(
    plan: Plan, run: TransformerRun, wanted: tuple[str, ...], mode: Mode, layout: Layout
) -> list[tuple[Choice, ...]]:
    """Return what to try for every open field that memory and speed decide."""
    options: list[tuple[Choice, ...]] = []
    if "training.micro_batch" in wanted:
        most = mode.batch_range[1] or LARGEST_MICRO_BATCH
        if "training.global_batch" not in wanted and plan.training.global_batch:
            most = min(most, max(1.0, float(plan.training.global_batch) / float(run.dp)))
        options.append(each("training.micro_batch", powers_of_two(most)))
    if "training.checkpointing" in wanted:
        options.append(each("training.checkpointing", CHECKPOINTING))
    tensor, pipeline = "parallelism.tp" in wanted, "parallelism.pp" in wanted
    if tensor or pipeline:
        replicas = plan.parallelism.dp if isinstance(plan.parallelism.dp, int) else None
        options.append(layouts(layout, int(run.cluster.per_node), tensor, pipeline, replicas))
    if "parallelism.zero" in wanted:
        options.append(each("parallelism.zero", (0, 1, 2, 3) if run.cluster.devices > 1 else (0,)))
    if "parallelism.offload" in wanted:
        options.append(each("parallelism.offload", ("none", "optimizer")))
    return options


def best(evaluated: Evaluated, cluster: Cluster, mode: Mode) -> tuple[int, bool]:
    """Return the fastest candidate inside the mode's memory, or the smallest one if none is.

    The allocator also keeps room for fragmentation, or for a spike of the peak, whichever is larger.
    """
    capacity, budget = cluster.device.memory_bytes, memory_budget(mode, cluster)
    inside = np.ones(len(evaluated.choices), dtype=bool)
    if budget is not None and capacity is not None:
        margin = max(mode.reserve.fragmentation, mode.reserve.spikes)
        room = evaluated.allocated * (1.0 + margin) + mode.reserve.context_gb * 1e9 <= capacity
        inside = (evaluated.reserved <= budget) & (room | (cluster.device.kind == "cpu"))
    if cluster.host_memory_bytes is not None:
        host = max(0.0, float(np.max(cluster.host_memory_bytes)) - mode.reserve.system_gb * 1e9)
        inside &= evaluated.host <= host * mode.utilization
    if not inside.any():
        return int(np.argmin(evaluated.reserved)), False
    # A hair less speed is worth less recomputation: settle ties, not differences.
    speed = np.where(inside, evaluated.tokens_per_second * (1.0 - 1e-6 * evaluated.recomputed), -1.0)
    return int(np.argmax(speed)), True


def _reasons(
    values: Mapping[str, object],
    wanted: tuple[str, ...],
    evaluated: Evaluated,
    index: int,
    fits: bool,
    run: TransformerRun,
    mode: Mode,
) -> dict[str, str]:
    """Say why each value was chosen, with the figures that decided."""
    budget = memory_budget(mode, run.cluster)
    share = format_percent(mode.utilization)
    limit = "no memory limit known" if budget is None else f"{format_bytes(budget)}, {share} of memory"
    used = format_bytes(float(evaluated.reserved[index]))
    speed = format_count(float(evaluated.tokens_per_second[index]))
    verdict = f"fastest of {len(evaluated.choices)} settings that stay inside {limit}: {used}, {speed} tok/s"
    if not fits:
        verdict = f"nothing of {len(evaluated.choices)} settings stays inside {limit}; this needs least: {used}"
    reasons = dict.fromkeys(
        (path for path in values if path in wanted and path not in {"training.tokens", "training.global_batch"}),
        verdict,
    )
    if "training.global_batch" in values:
        reasons["training.global_batch"] = f"{mode.replica_batch} sequences a replica, {mode.accumulation} accumulation"
    if "training.tokens" in values:
        ratio = f"{mode.tokens_per_parameter:g}"
        reasons["training.tokens"] = f"{ratio} tokens a parameter (Hoffmann et al. 2022; the mode's ratio)"
    return reasons


def _serving(
    plan: Plan,
    wanted: tuple[str, ...],
    mode: Mode,
    cluster: Cluster,
    catalog: Catalog,
    machine: Machine | None,
) -> tuple[Plan, dict[str, str]]:
    """Choose the least quantized weights that fit, then the largest batch."""
    budget = memory_budget(mode, cluster)
    reasons: dict[str, str] = {}

    def fits(trial: Plan) -> bool:
        answer: Answer = estimate_plan(trial, machine, catalog)
        return budget is None or float(np.max(answer.estimate.memory.reserved_bytes.value)) <= budget

    if "inference.weights" in wanted:
        gguf = plan.inference.engine == "llamacpp"
        formats = ("f16", "q8_0", "q6_k", "q4_k_m", "q3_k_m", "q2_k") if gguf else ("bf16", "int8", "nf4")
        trials = [with_values(plan, {"inference.weights": name}) for name in formats]
        plan = next((trial for trial in trials if fits(trial)), trials[-1])
        reasons["inference.weights"] = "least quantized format that stays inside the mode's memory"
    if "inference.batch" in wanted:
        sizes = powers_of_two(mode.batch_range[1] or 256)
        trials = [with_values(plan, {"inference.batch": size}) for size in reversed(sizes)]
        plan = next((trial for trial in trials if fits(trial)), trials[-1])
        reasons["inference.batch"] = "largest batch that stays inside the mode's memory and range"
    return plan, reasons


def closed(plan: Plan, machine: Machine | None, catalog: Catalog) -> Plan:
    """Return the plan with open fields filled as the balanced mode would."""
    if not open_fields(plan):
        return plan
    return fill(plan, "balanced", machine, catalog).plan
