"""What a job reaches on some devices: the settings that a search finds for it there, and what they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, Instance
from capacity_tui.engine.choose.search.best import figures_of
from capacity_tui.engine.choose.search.question import Goal, Limit, Question
from capacity_tui.engine.choose.search.search import search
from capacity_tui.engine.choose.search.spaces import Prepared, spaces_of
from capacity_tui.engine.choose.space.grid import Axis, powers_of_two
from capacity_tui.engine.cluster.resolve_cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_resolved
from capacity_tui.engine.estimate.resolve import ResolvedPlan, resolve_plan
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.fleet.question import SERVED, JobKind
from capacity_tui.engine.models.families import family_of
from capacity_tui.engine.plan.edit import edited, with_values
from capacity_tui.engine.plan.plan import AUTO, HardwareSection, Plan, PricingSection
from capacity_tui.engine.uncertainty.intervals import Interval

if TYPE_CHECKING:
    from capacity_tui.engine.cluster.cluster import Cluster
    from capacity_tui.engine.machine.machine import Machine

BATCH = "inference.batch"
RESERVED = "memory.reserved_bytes"
# Work a second, by what a plan does: under a load what could be answered, else what is answered.
UNDER_LOAD = "computation.infer.largest_requests_per_second"
ANSWERED = "computation.infer.requests_per_second"
WORKED = "computation.tokens_per_second"
MOST_REQUESTS = 1024
"""Requests of one replica that are tried at once where nobody waits for an answer."""
_LIMITED = {
    "ttft_seconds": ("time_to_first_token_percentile_seconds", "time_to_first_token_seconds"),
    "tpot_seconds": ("time_per_output_token_percentile_seconds", "time_per_output_token_seconds"),
}


@dataclass(frozen=True, slots=True)
class Reached:
    """What a job reaches on some devices.

    Attributes:
        devices: how many.
        set: the change that makes the plan this one; of what does not fit the hardware alone.
        resolved: the plan with nothing open; None where it does not fit, or cannot be there.
        estimate: its estimate; None likewise.
        short_bytes: what the fullest device lacks at least; 0 where it fits.
        refusal: why it cannot be there at all; empty where it can, or lacks memory alone.
        missed: the limit of latency that no settings keep, in words; empty where all are kept.
    """

    devices: int
    set: Mapping[str, object]
    resolved: ResolvedPlan | None = None
    estimate: Estimate | None = None
    short_bytes: float = 0.0
    refusal: str = ""
    missed: str = ""

    @property
    def fits(self) -> bool:
        """Whether it fits."""
        return self.estimate is not None

    @property
    def figures(self) -> Mapping[str, Interval]:
        """Figures of the estimate by result key; none where there is none."""
        return {} if self.estimate is None else figures_of(self.estimate)

    @property
    def work(self) -> Interval | None:
        """Work a second: requests, tokens or samples."""
        known = self.figures
        return next((known[key] for key in (UNDER_LOAD, ANSWERED, WORKED) if key in known), None)


class Job:
    """A job that is tried on devices one after the other; devices that are alike are tried once.

    Args:
        plan: the job as it is settled where it runs now.
        kind: what it is.
        is_batch_open: whether the requests of a replica at once are chosen for every machine.
        catalog: facts.
        machine: the detected machine.
    """

    def __init__(
        self, plan: Plan, kind: JobKind, catalog: Catalog, machine: Machine | None, *, is_batch_open: bool
    ) -> None:
        self._catalog, self._machine = catalog, machine
        self.kind = kind
        self.plan = _without_layout(plan)
        kinds = family_of(plan.model.name, catalog).kind
        self._is_served = plan.task == "infer" and kinds == "transformer"
        self._axes = self._batches(is_batch_open)
        self._limits = tuple(_limits(self.plan)) if self._is_served else ()
        self._known: dict[tuple[object, ...], Reached] = {}

    @property
    def is_replicated(self) -> bool:
        """Whether more machines mean more copies of the model that work apart from each other."""
        return self.plan.task == "infer"

    def on(self, row: Instance, devices: int) -> Reached:
        """Return what the job reaches on so many devices of instances of one kind."""
        section = HardwareSection(name=row.id, devices=devices)
        key = _alike(resolve_cluster(section, PricingSection(), self._catalog))
        if key not in self._known:
            self._known[key] = self._searched(row.id, devices)
        found = self._known[key]
        return replace(found, set={**found.set, "hardware.name": row.id})

    def spread(self, reached: Reached, row: Instance, devices: int) -> Reached:
        """Return the same settings on more devices of the same kind, every further one holding further replicas."""
        return self._estimated({**reached.set, "hardware.name": row.id, "hardware.devices": devices}, reached.missed)

    def _searched(self, name: str, devices: int) -> Reached:
        question = Question(
            self.plan,
            vary=self._axes,
            hardware=(name,),
            devices=(devices,),
            limits=self._limits,
            goal=Goal(self._work_key(), "more"),
            top=1,
        )
        missed = ""
        try:
            answer = search(question, self._catalog, self._machine)
            if not answer.top and self._limits:
                answer = search(replace(question, limits=()), self._catalog, self._machine)
                missed = " and ".join(limit.words for limit in self._limits)
        except CapacityError as error:
            return Reached(devices, _on(name, devices), refusal=error.title)
        if answer.top:
            return self._estimated(answer.top[0].set, missed)
        least = self._least_reserved(question)
        capacity = resolve_cluster(
            HardwareSection(name=name, devices=devices), PricingSection(), self._catalog
        ).device.memory_bytes
        short = 0.0 if least is None or capacity is None else max(0.0, least - float(np.max(capacity)))
        refusal = "" if least is not None else next((each.rule for each in answer.rejected), "no layout of it can be")
        return Reached(devices, _on(name, devices), short_bytes=short, refusal=refusal)

    def _estimated(self, change: Mapping[str, object], missed: str) -> Reached:
        resolved = resolve_plan(edited(self.plan, change, self._catalog).plan, self._catalog, self._machine)
        estimate = estimate_resolved(resolved, self._catalog)
        return Reached(int(resolved.cluster.devices), change, resolved, estimate, missed=missed)

    def _least_reserved(self, question: Question) -> float | None:
        """Return the least that the fullest device needs, of all settings that can be; None where none can."""
        least: list[float] = []
        for _, prepared in spaces_of(question, self._catalog, self._machine).all():
            if not isinstance(prepared, Prepared):
                continue
            for block in prepared.space.figures():
                needs = block.value(RESERVED)
                if needs is not None:
                    possible = np.where(block.possible, needs, np.inf)
                    least.append(float(possible.min()))
        found = min(least, default=np.inf)
        return found if np.isfinite(found) else None

    def _batches(self, is_open: bool) -> tuple[Axis, ...]:
        """Return the requests of a replica at once that are tried; a load decides them by itself."""
        inference = self.plan.inference
        if not self._is_served or inference.request_rate is not None or inference.concurrency is not None:
            return ()
        if not is_open:
            return (Axis(BATCH, (inference.batch,)),)
        waited_for = self._catalog.modes["balanced"].served.batch_range[1]
        most = int(waited_for or MOST_REQUESTS) if self.kind == SERVED else MOST_REQUESTS
        return (Axis(BATCH, powers_of_two(most)),)

    def _work_key(self) -> str:
        if not self._is_served:
            return WORKED
        inference = self.plan.inference
        loaded = inference.request_rate is not None or inference.concurrency is not None
        return UNDER_LOAD if loaded else ANSWERED


def _without_layout(plan: Plan) -> Plan:
    """Return a plan whose layout is open: another machine wants another one."""
    if plan.task == "infer":
        return with_values(plan, dict.fromkeys(("parallelism.tp", "parallelism.pp", "parallelism.dp")))
    return with_values(plan, {"parallelism.dp": AUTO})


def _limits(plan: Plan) -> list[Limit]:
    loaded = plan.inference.request_rate is not None or plan.inference.concurrency is not None
    found: list[Limit] = []
    for name, (under_load, alone) in _LIMITED.items():
        most = getattr(plan.inference, name)
        if most is not None:
            found.append(Limit(f"computation.infer.{under_load if loaded else alone}", most=float(most)))
    return found


def _on(name: str, devices: int) -> Mapping[str, object]:
    return {"hardware.name": name, "hardware.devices": devices}


def _alike(cluster: Cluster) -> tuple[object, ...]:
    """Return what tells clusters apart that reach different things: not what they are called, nor their price."""
    levels = tuple((level.devices, level.bandwidth, level.hop_seconds, level.is_direct) for level in cluster.levels)
    return (cluster.device.id, cluster.part, cluster.devices, levels, cluster.host_memory_bytes)
