"""What a job reaches on some devices: the settings that a search finds for it there, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import Catalog, Instance
from capacity_tui.engine.choose.search.question import Goal, Limit, Question
from capacity_tui.engine.choose.search.search import search
from capacity_tui.engine.choose.search.spaces import Prepared, spaces_of
from capacity_tui.engine.choose.space.grid import Axis, powers_of_two
from capacity_tui.engine.cluster.resolve_cluster import resolve_cluster
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate.estimate import estimate_resolved
from capacity_tui.engine.estimate.figures import figures_of
from capacity_tui.engine.estimate.resolve import resolve_plan
from capacity_tui.engine.estimate.result import Estimate
from capacity_tui.engine.fleet.migration.question import SERVED, JobKind
from capacity_tui.engine.models.families import family_of
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan.edit import edited, with_values
from capacity_tui.engine.plan.plan import HardwareSection, Plan, PricingSection
from capacity_tui.engine.uncertainty.intervals import Interval

if TYPE_CHECKING:
    from capacity_tui.engine.cluster.cluster import Cluster
    from capacity_tui.engine.machine.machine import Machine

BATCH, REPLICAS = "inference.batch", "parallelism.dp"
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
        figures: figures of the estimate by result key; none where it does not fit, or cannot be there.
        estimate: the estimate itself; None where that has not been asked for, or there is none.
        short_bytes: what the fullest device lacks at least; 0 where it fits.
        host_bytes: host memory for each device when this was found; None where unknown.
        refusal: why it cannot be there at all; empty where it can, or lacks memory alone.
        missed: the limits of latency that no settings keep, in words; empty where all are kept.
        replicas: copies of the model that work apart from each other.
        zero: which states these copies shard among them, 0 for none.
    """

    devices: int
    set: Mapping[str, object]
    figures: Mapping[str, Interval] = field(default_factory=dict)
    estimate: Estimate | None = None
    short_bytes: float = 0.0
    host_bytes: float | None = None
    refusal: str = ""
    missed: str = ""
    replicas: int = 1
    zero: int = 0

    @property
    def fits(self) -> bool:
        """Whether it fits."""
        return bool(self.figures)

    @property
    def work(self) -> Interval | None:
        """Work a second: requests, tokens or samples."""
        return next((self.figures[key] for key in (UNDER_LOAD, ANSWERED, WORKED) if key in self.figures), None)

    def holds_with(self, host_bytes: float | None) -> bool:
        """Whether the same was found on devices that are alike but for the host memory of each."""
        if host_bytes == self.host_bytes:
            return True
        if not self.fits:
            return self.short_bytes > 0.0
        needed = self.figures.get("memory.host_bytes")
        return host_bytes is None or needed is None or mean(needed.high) <= host_bytes


@dataclass(frozen=True, slots=True)
class Least:
    """Settings that need the least memory.

    Attributes:
        needed_bytes: bytes of the fullest device.
        set: the settings, hardware included.
    """

    needed_bytes: float
    set: Mapping[str, object]


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
        self._is_served = plan.task == "infer" and family_of(plan.model.name, catalog).kind == "transformer"
        self._axes = self._batches(is_batch_open)
        self._limits = tuple(_limits(self.plan)) if self._is_served else ()
        self._known: dict[tuple[object, ...], list[Reached]] = {}

    @property
    def is_replicated(self) -> bool:
        """Whether more machines mean more copies of the model that work apart from each other."""
        return self.plan.task == "infer"

    def on(self, row: Instance, devices: int) -> Reached:
        """Return what the job reaches on so many devices of instances of one kind."""
        cluster = resolve_cluster(HardwareSection(name=row.id, devices=devices), PricingSection(), self._catalog)
        return self._once(("on",), row, cluster, lambda: self._searched(row.id, cluster))

    def here(self, cluster: Cluster) -> Reached:
        """Return what the job reaches on the plan's own hardware, with settings of the search's choice."""
        found = self._searched("", cluster)
        if not found.fits:
            return found
        return replace(self._estimated(found.set, found, cluster), set=found.set)

    def settled(self, reached: Reached, row: Instance, devices: int) -> Reached:
        """Return what was found with its estimate, on as many devices of the same kind or on more of them."""
        if not reached.fits:
            return reached
        cluster = resolve_cluster(HardwareSection(name=row.id, devices=devices), PricingSection(), self._catalog)
        layout = {path: value for path, value in reached.set.items() if not path.startswith("hardware.")}
        change = {**layout, **_on(row.id, devices)}
        key = tuple(sorted((path, str(value)) for path, value in layout.items()))
        return self._once(key, row, cluster, lambda: self._estimated(change, reached, cluster))

    def _once(self, what: tuple[object, ...], row: Instance, cluster: Cluster, find: Callable[[], Reached]) -> Reached:
        """Return what was found before on devices that are alike, else find it."""
        before = self._known.setdefault((*what, *_alike(cluster)), [])
        host = None if cluster.host_memory_bytes is None else mean(cluster.host_memory_bytes)
        found = next((each for each in before if each.holds_with(host)), None)
        if found is None:
            found = replace(find(), host_bytes=host)
            before.append(found)
        return replace(found, set={**found.set, "hardware.name": row.id})

    def _searched(self, name: str, cluster: Cluster) -> Reached:
        devices = int(cluster.devices)
        question = Question(
            self.plan,
            vary=self._axes,
            hardware=(name,) if name else (),
            devices=(devices,) if name else (),
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
            return Reached(devices, answer.top[0].set, answer.top[0].figures, missed=missed)
        least, capacity = self._least_reserved(question), cluster.device.memory_bytes
        if least is None or capacity is None:
            refusal = next((each.rule for each in answer.rejected), "no layout of it can be")
            return Reached(devices, _on(name, devices), refusal=refusal)
        return Reached(devices, _on(name, devices), short_bytes=max(0.0, least.needed_bytes - mean(capacity)))

    def _estimated(self, change: Mapping[str, object], reached: Reached, cluster: Cluster) -> Reached:
        plan = edited(self.plan, change, self._catalog).plan
        resolved = resolve_plan(plan, self._catalog, self._machine, cluster=cluster)
        estimate = estimate_resolved(resolved, self._catalog)
        change = {**change, REPLICAS: resolved.plan.parallelism.dp}
        found = estimated(resolved.plan, estimate, change)
        return replace(found, missed=reached.missed)

    def least(self, hardware: Mapping[str, object], change: Mapping[str, object]) -> Least | None:
        """Return the settings that need the least memory once a change is made; None where nothing can be.

        Args:
            hardware: name and number of the devices.
            change: what changes besides.
        """
        name, devices = str(hardware["hardware.name"]), int(str(hardware["hardware.devices"]))
        try:
            plan = edited(self.plan, change, self._catalog).plan
            question = Question(plan, vary=self._axes, hardware=(name,), devices=(devices,))
            return self._least_reserved(question)
        except CapacityError:
            return None

    def _least_reserved(self, question: Question) -> Least | None:
        """Return the settings of which the fullest device needs the least; None where none can be."""
        best: Least | None = None
        for _, prepared in spaces_of(question, self._catalog, self._machine).all():
            if not isinstance(prepared, Prepared):
                continue
            for piece in prepared.space.pieces():
                block = piece()
                value = block.value(RESERVED)
                if value is None:
                    continue
                needs = np.broadcast_to(np.where(block.possible, value, np.inf), block.grid.shape).ravel()
                place = int(np.argmin(needs))
                if np.isfinite(needs[place]) and (best is None or needs[place] < best.needed_bytes):
                    values = prepared.space.settled(block.grid.at(place))
                    best = Least(float(needs[place]), {**prepared.change, **values})
        return best

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


def estimated(plan: Plan, estimate: Estimate, change: Mapping[str, object]) -> Reached:
    """Return what a settled plan reaches where it fits, and what it lacks where it does not.

    Args:
        plan: with nothing open.
        estimate: its estimate.
        change: what makes it of the plan that was asked about.
    """
    memory, fits, short = estimate.memory, estimate.fits is not False, 0.0
    if not fits and memory.capacity_bytes is not None:
        short = max(0.0, mean(memory.reserved_bytes.value) - mean(memory.capacity_bytes))
    return Reached(
        devices=int(mean(estimate.computation.devices)),
        set=change,
        figures=figures_of(estimate) if fits else {},
        estimate=estimate,
        short_bytes=short,
        replicas=_number(plan.parallelism.dp, 1),
        zero=_number(plan.parallelism.zero, 0),
    )


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _without_layout(plan: Plan) -> Plan:
    """Return a plan whose layout is open: another machine wants another one."""
    served = ("parallelism.tp", "parallelism.pp") if plan.task == "infer" else ()
    return with_values(plan, dict.fromkeys((*served, REPLICAS)))


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
    """Return what tells clusters apart that reach different things: not what they are called, nor their price.

    What joins nodes tells those apart that have several; host memory is looked at by itself.
    """
    levels = cluster.levels if cluster.devices > cluster.direct_devices else cluster.direct
    links = tuple((level.devices, level.bandwidth, level.hop_seconds, level.is_direct) for level in levels)
    return (cluster.device.id, cluster.part, cluster.devices, links)
