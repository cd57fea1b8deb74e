"""A plan as one mode fills it: its shares of memory and power, its warnings, what lies outside of the mode's ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TypeAlias

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode, Range
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import (
    Estimate,
    FilledBy,
    Note,
    ResolvedPlan,
    UsedShare,
    estimate_resolved,
    job_seconds,
    job_steps,
    unsaid,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import count_parameters
from capacity_tui.engine.numeric import Number, largest
from capacity_tui.engine.plan import Plan, RecoverySection, WatchSection, with_values
from capacity_tui.engine.printable import ShownInNotebooks
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve.modes.run_sections import with_data_settings, with_run_policies, without_feeding
from capacity_tui.engine.units import (
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_power,
    format_seconds,
)

_SHARE_ROUNDING = 0.0005  # What is used beyond a share by less than this is inside


def memory_budget(mode: Mode, cluster: Cluster) -> float | None:
    """Return the device memory a mode allows itself: its share of what is usable."""
    capacity = cluster.device.memory_bytes
    if capacity is None:
        return None
    system = mode.reserve.system_gb * 1e9 if cluster.device.is_processor else 0.0
    return max(0.0, (largest(capacity) - system) * mode.utilization)


def memory_share(estimate: Estimate) -> float | None:
    """Return the share of a device's memory that a run takes; None where that is not known."""
    memory = estimate.memory
    if memory.capacity_bytes is None:
        return None
    return largest(memory.reserved_bytes.value / memory.capacity_bytes)


def power_share(estimate: Estimate, cluster: Cluster) -> float | None:
    """Return the share of a device's power limit that a run draws on average; None where that is not known."""
    watts, limit = estimate.energy.watts_average, cluster.device.tdp_watts
    known = cluster.device.known.get("tdp_watts")
    if known is not None and known.origin == "assumed":
        return None
    return None if watts is None or limit is None else largest(watts / cluster.devices) / largest(limit)


def used_shares(mode: Mode, estimate: Estimate, cluster: Cluster) -> tuple[UsedShare, ...]:
    """Return what a run uses of memory and power beside what its mode allows, as far as both are known."""
    shares = []
    memory, budget = memory_share(estimate), memory_budget(mode, cluster)
    if memory is not None and budget is not None:
        allowed = budget / largest(estimate.memory.capacity_bytes or 1.0)
        why = "no choice of the open fields keeps it inside"
        shares.append(UsedShare("memory", memory, allowed, why if memory > allowed + _SHARE_ROUNDING else ""))
    power, most = power_share(estimate, cluster), mode.power_share_range[1]
    if power is not None and most is not None:
        limit = format_power(largest(cluster.device.tdp_watts or 0.0) * most)
        why = f"settings are chosen for speed; a power limit of {limit} for each device keeps it inside, and slows it"
        shares.append(UsedShare("power", power, most, why if power > most + _SHARE_ROUNDING else ""))
    return tuple(shares)


_HOUR = 3600.0
_ROUNDING = 1.02  # Models called 70M have 70.4 million parameters; hours are no sharper than that
MICRO_BATCH, LENGTH, TOKENS, MODEL = Key.TRAINING_MICRO_BATCH, Key.TRAINING_SEQ_LEN, Key.TRAINING_TOKENS, Key.MODEL_NAME


def outside_ranges(mode: Mode, plan: Plan, estimate: Estimate, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield what a training has outside of its mode's ranges."""
    if plan.is_inference or estimate.computation.unit != "token":
        return
    training, size = plan.training, largest(estimate.model.parameters)
    given = "set in the plan"

    def why(path: str, reason: str) -> str:
        return reason if path in reasons else given

    yield from _outside(
        "parameters", size, mode.parameters_range, format_count, why(MODEL, "hardware and hours decide")
    )
    yield from _outside(
        "micro-batch",
        float(training.micro_batch),
        mode.batch_range,
        format_number,
        why(MICRO_BATCH, "others would cost memory or speed"),
    )
    yield from _outside(
        "sequence", float(training.seq_len), mode.sequence_range, format_number, reasons.get(LENGTH, given)
    )
    if isinstance(training.tokens, float):
        yield from _outside(
            "tokens a parameter",
            training.tokens / size,
            mode.tokens_per_parameter_range,
            "{:.3g}".format,
            reasons.get(TOKENS, given),
        )
    if estimate.computation.steps is not None:
        seconds = job_seconds(estimate.computation.steps, estimate.computation.step_seconds.value)
        hours = largest(seconds) / _HOUR
        yield from _outside(
            "time",
            hours,
            mode.training_hours_range,
            lambda length: format_seconds(length * _HOUR),
            "model and tokens are as large as the mode's" if MODEL in reasons else "the model is given",
        )


def reserve_text(mode: Mode) -> str:
    """Say what a mode keeps free beside the estimate."""
    reserve = mode.reserve
    return (
        f"keeps room for {format_bytes(reserve.context_gb * 1e9)} of driver context a device, for "
        f"{format_percent(reserve.fragmentation)} of fragmentation or {format_percent(reserve.spikes)} of spikes, "
        f"whichever is more, and {format_bytes(reserve.system_gb * 1e9)} of main memory for the system"
    )


def _outside(what: str, value: float, within: Range, shown: Callable[[float], str], why: str) -> Iterator[str]:
    low, high = within
    if (low or 0.0) / _ROUNDING <= value <= (float("inf") if high is None else high) * _ROUNDING:
        return
    ends = f"{shown(low or 0.0)} to {shown(high or 0.0)}"
    if low == high or high is None:
        ends = f"{shown(low or 0.0)}{' and more' if high is None else ''}"
    yield f"{what} {shown(value)}, the mode is made for {ends}: {why}"


def mode_warnings(mode: Mode, estimate: Estimate, cluster: Cluster) -> tuple[Note, ...]:
    """Return what a mode warns of where a run gives reason to; nothing of memory that it does not fit into."""
    used: dict[str, tuple[float, str]] = {}
    memory, power, limit = memory_share(estimate), power_share(estimate, cluster), cluster.device.tdp_watts
    if memory is not None and estimate.fits:
        used["memory"] = memory, f"This run: {format_percent(memory)} of memory."
    if power is not None and limit is not None:
        there = float(limit)
        detail = f"This run: {format_power(power * there)} of {format_power(there)} for each device."
        used["power"] = power, detail
    return tuple(
        Note("mode", warned.text.rstrip("."), used[warned.figure][1])
        for warned in mode.warnings
        if warned.figure in used and used[warned.figure][0] >= warned.least
    )


Reasons: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class ModePlan(ShownInNotebooks):
    """What one mode makes of a plan."""

    mode: Mode
    resolved: ResolvedPlan  # the plan with everything filled in, and what its names stand for
    estimate: Estimate
    reasons: Mapping[str, str]  # why each open field got its value
    catalog: Catalog = field(repr=False, compare=False)
    # why each field about data, and about the run while it goes on, got its value
    running: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, mode: Mode, resolved: ResolvedPlan, estimate: Estimate, reasons: Mapping[str, str], catalog: Catalog
    ) -> ModePlan:
        """Return an estimated plan with what the mode says of its data, and of the run while it goes on."""
        resolved, estimate, feeding = with_data_settings(resolved, mode, estimate, catalog)
        plan, running = with_run_policies(resolved.plan, mode, estimate, catalog)
        return cls(mode, replace(resolved, plan=plan), estimate, reasons, catalog, {**feeding, **running})

    @property
    def settings(self) -> Plan:
        """The plan without what is said of its loader and of the run while it goes on: runs alike in it are alike."""
        plan = self.plan.model_copy(update={"watch": WatchSection(), "recovery": RecoverySection()})
        return plan.model_copy(update={"data": without_feeding(plan.data)})

    @property
    def plan(self) -> Plan:
        """The plan with everything filled in."""
        return self.resolved.plan

    @property
    def annotated_estimate(self) -> Estimate:
        """The estimate with what the mode warns of, why it filled open fields as it did, and what else would fit."""
        estimate = self.estimate
        warnings = (*estimate.warnings, *mode_warnings(self.mode, estimate, self.resolved.cluster))
        basis = replace(estimate.basis, chosen=self.reasons, running=self.running, filled_by=self.filled_by)
        details = {**estimate.details, **self._room}
        assumed = unsaid(self.resolved, self.reasons)
        return replace(estimate, warnings=warnings, basis=basis, details=details, assumed=assumed)

    @property
    def _room(self) -> Mapping[str, Number]:
        """What else a plan that serves has room for."""
        if not self.plan.is_inference:
            return {}
        from capacity_tui.engine.solve.modes.field_limits import serving_room  # noqa: PLC0415 - of its kind alone

        return serving_room(self.resolved, self.catalog)

    @property
    def filled_by(self) -> FilledBy | None:
        """What the mode is and what the run uses of its shares; None where it had nothing to choose."""
        if not self.reasons:
            return None
        shares = used_shares(self.mode, self.estimate, self.resolved.cluster)
        if self.plan.is_inference:
            return FilledBy(self.mode.title, self.mode.line, shares)
        outside = outside_ranges(self.mode, self.plan, self.estimate, self.reasons)
        return FilledBy(self.mode.title, self.mode.line, shares, reserve_text(self.mode), tuple(outside))


@dataclass(frozen=True)
class Settled:
    """What one mode chose, estimated when that is first asked for."""

    mode: Mode
    resolved: ResolvedPlan  # the plan with everything filled in, and what its names stand for
    reasons: Mapping[str, str]  # why each open field got its value
    catalog: Catalog
    notes: tuple[Note, ...] = ()  # what had to be given up
    step_seconds: float | None = None  # time of a step at the least, where the settings were searched for

    @property
    def parameters(self) -> float:
        shape = self.resolved.shape
        return largest(self.filled.estimate.model.parameters) if shape is None else float(count_parameters(shape).total)

    @property
    def least_seconds(self) -> float:
        """What the whole job takes at the least; 0 where nothing is known before it is estimated."""
        return (job_steps(self.resolved.plan) or 0.0) * (self.step_seconds or 0.0)

    def with_tokens(self, tokens: float, why: str) -> Settled:
        """Return the same settings for a job of some tokens: its length decides none of them."""
        plan = with_values(self.resolved.plan, {Key.TRAINING_TOKENS: tokens})
        others = {path: reason for path, reason in self.reasons.items() if path != Key.TRAINING_TOKENS}
        reasons = {**others, Key.TRAINING_TOKENS: why}
        return replace(self, resolved=replace(self.resolved, plan=plan), reasons=reasons)

    @cached_property
    def filled(self) -> ModePlan:
        """The plan with its estimate."""
        estimate = estimate_resolved(self.resolved, self.catalog)
        estimate = replace(estimate, warnings=(*estimate.warnings, *self.notes))
        return ModePlan.of(self.mode, self.resolved, estimate, self.reasons, self.catalog)


def budget_text(mode: Mode, cluster: Cluster) -> str:
    """Return a mode's memory in words."""
    budget = memory_budget(mode, cluster)
    if budget is None:
        return "no memory limit known"
    return f"{format_bytes(budget)}, {format_percent(mode.utilization)} of memory"
