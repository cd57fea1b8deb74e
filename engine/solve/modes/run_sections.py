"""What a mode makes of the sections about data and about the run while it goes on, once everything else stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.estimate import Estimate, ResolvedPlan, estimate_resolved, job_seconds
from capacity_tui.engine.estimate.data import (
    LOCAL,
    MEMORY,
    NO_CACHE,
    STREAMING,
    Content,
    Supply,
    input_seconds,
    network_content,
    supply_of,
    tier_bandwidth,
    tier_of,
    transformer_content,
    usual_workers,
)
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import largest, mean
from capacity_tui.engine.plan import DataPhase, DataSection, Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO, Section, SpecValue
from capacity_tui.engine.units import format_bandwidth, format_bytes, format_count, format_percent, format_seconds

_MINUTE = 60.0
_BATTERY = "recovery.battery."
_WHERE_IT_RUNS = "decided where it runs, by its cores and its battery"
SectionT = TypeVar("SectionT", bound=Section)
_Chosen = Mapping[str, tuple[object, str]]


def with_run_policies(plan: Plan, mode: Mode, estimate: Estimate, catalog: Catalog) -> tuple[Plan, dict[str, str]]:
    """Return a plan with what is open of watching and recovery as a mode has it, and why for each path.

    What only the machine can tell, threads and steps on battery, stays open.
    """
    reasons: dict[str, str] = {}
    watch = _filled(plan.watch, "watch.", _watch(mode, catalog), reasons)
    recovery = _filled(plan.recovery, "recovery.", _recovery(mode, estimate), reasons)
    below = {"pause_below": (mode.recovery.pause_below, because(mode, mode.recovery.style))}
    battery = _filled(plan.recovery.battery, _BATTERY, below, reasons)
    reasons |= {f"{_BATTERY}{name}": _WHERE_IT_RUNS for name, value in battery if value == AUTO}
    recovery = recovery.model_copy(update={"battery": battery})
    return plan.model_copy(update={"watch": watch, "recovery": recovery}), reasons


def _filled(section: SectionT, above: str, chosen: _Chosen, reasons: dict[str, str]) -> SectionT:
    taken = {name: choice for name, choice in chosen.items() if getattr(section, name) == AUTO}
    reasons |= {f"{above}{name}": why for name, (_, why) in taken.items()}
    return section.model_copy(update={name: value for name, (value, _) in taken.items()})


def _watch(mode: Mode, catalog: Catalog) -> _Chosen:
    watch = mode.watch
    why = because(mode, watch.style)
    widths = catalog.detectors["loss_spike"].thresholds["widths"]
    return {
        "temperature_c": (watch.temperature_c, why),
        "memory_share": (watch.memory_share, why),
        "power_share": (watch.power_share, why),
        "nan": (watch.nan, why),
        "loss_spike": (widths, "what the loss-spike detector needs for few false alarms"),
    }


def _recovery(mode: Mode, estimate: Estimate) -> _Chosen:
    recovery = mode.recovery
    why = because(mode, recovery.style)
    return {
        "out_of_memory": (recovery.out_of_memory, why),
        "max_restarts": (recovery.max_restarts, why),
        "heat": (recovery.heat, why),
        "device_lost": (recovery.device_lost, why),
        "unstable": (recovery.unstable, why),
        "hang": (recovery.hang, why),
        "killed": (recovery.killed, why),
        "checkpoint_every": _checkpoint_every(mode, estimate),
    }


def _checkpoint_every(mode: Mode, estimate: Estimate) -> tuple[float, str]:
    """Return the seconds between checkpoints by the length of the job; saving is not measured yet."""
    least, most = (_MINUTE * minutes for minutes in mode.recovery.checkpoint_minutes_range)
    within = f"between {format_seconds(least)} and {format_seconds(most)}"
    steps = estimate.computation.steps
    if steps is None:
        return least, f"{because(mode, within)}; the length of the job is open"
    seconds = largest(job_seconds(steps, estimate.computation.step_seconds.value))
    share = mode.recovery.checkpoint_share
    every = float(round(min(max(share * seconds, least), most)))
    return every, because(mode, f"{format_percent(share)} of the {format_seconds(seconds)} it takes, {within}")


def because(mode: Mode, why: str) -> str:
    """Return a reason in the words of the mode that has it."""
    return f"{mode.title}: {why}"


PHASES = ("A", "B")
_LEAST_LENGTH = 128  # Tokens of the shortest sequence that a phase is worth


@dataclass(frozen=True)
class FeedState:
    """A training and its data, once its settings stand."""

    plan: Plan
    content: Content  # what the data are made of
    resolved: ResolvedPlan  # what the plan's names stand for
    mode: Mode
    catalog: Catalog
    units_per_second: float  # tokens or samples a second that the devices take while they wait for none
    units_per_step: float  # those of one step

    @cached_property
    def supply(self) -> Supply:
        """How the data reach the devices as far as they are chosen."""
        return supply_of(self.plan, self.content, self.resolved.cluster, self.catalog)

    @property
    def waiting(self) -> float:
        """Seconds of a step in which the devices would wait for their data."""
        delivery = self.supply.delivery(self.units_per_step)
        return mean(input_seconds(delivery.arriving, delivery.hidden, self.units_per_step / self.units_per_second))


def content_of(resolved: ResolvedPlan, catalog: Catalog) -> Content | None:
    """Return what the data of a training are made of; None for what reads none from a disk while it runs."""
    if resolved.plan.is_inference:
        return None
    if resolved.shape is not None:
        return transformer_content(resolved.plan, resolved.shape)
    if not resolved.family.is_network:
        return None
    from capacity_tui.engine.models.networks import NetworkSpec  # noqa: PLC0415 - of its kind alone

    spec = resolved.spec
    if not isinstance(spec, NetworkSpec):
        return None
    return network_content(spec, spec.network(catalog, resolved.family.id, trains=True))


def taken_per_second(estimate: Estimate) -> float:
    """Return the tokens or samples a second that the devices of a run take while they wait for none."""
    computation = estimate.computation
    working = computation.step_seconds.value - computation.parts.get("input", 0.0)
    return mean(computation.units_per_step / working)


def with_data_settings(
    resolved: ResolvedPlan, mode: Mode, estimate: Estimate, catalog: Catalog
) -> tuple[ResolvedPlan, Estimate, dict[str, str]]:
    """Return a plan with what is open of its data as a mode has it, its estimate, and why for each path."""
    content = content_of(resolved, catalog)
    if content is None:
        return resolved, estimate, {}
    plan, reasons = resolved.plan, dict[str, str]()
    here = FeedState(
        plan, content, resolved, mode, catalog, taken_per_second(estimate), mean(estimate.computation.units_per_step)
    )
    for choose in (_format, _source, _workers, _cache, _prefetch, _shuffle_buffer, _phases):
        for name, value, why in choose(here):
            if getattr(here.plan.data, name) == AUTO:
                reasons[f"data.{name}"] = because(mode, why)
                here = _with(here, name, value)
    if not plan.data.is_stated:
        # A format that is named has its reading in the time of a step, which the plan did not ask for.
        reasons[Key.DATA_FORMAT] = _left_open(here)
        return replace(resolved, plan=_with(here, "format", AUTO).plan), estimate, reasons
    settled = replace(resolved, plan=here.plan)
    again = estimate_resolved(settled, catalog)
    kept = [note for note in estimate.warnings if note not in again.warnings]
    return settled, replace(again, warnings=(*again.warnings, *kept)), reasons


def without_feeding(data: DataSection) -> DataSection:
    """Return a section about data without what only its loader reads."""
    usual = DataSection()
    names = ("cache", "workers", "prefetch", "shuffle_buffer", "phases")
    return data.model_copy(update={name: getattr(usual, name) for name in names})


def _with(here: FeedState, name: str, value: object) -> FeedState:
    plan = here.plan.model_copy(update={"data": here.plan.data.model_copy(update={name: value})})
    return replace(here, plan=plan)


def _left_open(here: FeedState) -> str:
    """Say what the usual format would do, where a plan says nothing of its data."""
    late, usual = here.waiting, here.supply.format.name
    effect = f"would hold up each step by {format_seconds(late)}" if late > 0 else "would hold up no step"
    return f"left open: {usual} {effect}; a format that is named counts"


_Choice = Iterator[tuple[str, object, str]]


def _format(here: FeedState) -> _Choice:
    row = here.supply.format
    yield "format", row.id, f"{row.name}, the usual form of {here.content.holds}"


def _source(here: FeedState) -> _Choice:
    """Weigh room on the disk and a shuffle of the whole against bandwidth from afar and no copy to wait for."""
    if here.plan.data.source != AUTO:
        return
    supply, cluster = here.supply, here.resolved.cluster
    row = supply.format
    needed = here.units_per_second * mean(supply.unit_bytes) / mean(supply.nodes)
    tier = tier_of(STREAMING, cluster, here.catalog)
    given = here.plan.data.read_gbs
    reached = tier_bandwidth(tier, row, cluster) if given is None else given * 1e9
    rates = f"{format_bandwidth(reached)} from the {tier.name} for {format_bandwidth(needed)} needed"
    size, free = supply.bytes, cluster.host.disk_free_bytes
    if size is not None and free is not None and mean(size) > free:
        why = f"{format_bytes(mean(size))} of data, {format_bytes(free)} free; {rates}"
        yield "source", STREAMING, f"the disk has no room: {why}; samples are shuffled in a buffer alone"
    elif here.mode.data.prefers_local or reached < here.mode.data.spare * needed:
        slow = "" if reached >= here.mode.data.spare * needed else ", too slow"
        yield "source", LOCAL, f"a disk lets all samples be shuffled; {rates}{slow}"
    else:
        yield "source", STREAMING, f"{rates}: no copy to wait for, shuffled in a buffer alone"


def _workers(here: FeedState) -> _Choice:
    supply = here.supply
    most = usual_workers(supply.cores)
    if not np.isfinite(mean(supply.core_rate)):
        yield "workers", min(here.mode.data.prefetch, most), "they only copy: nothing is to be decoded"
        return
    rate = here.units_per_second / mean(supply.devices)
    wanted = math.ceil(here.mode.data.spare * rate / mean(supply.core_rate))
    taken = f"{here.mode.data.spare:g} times the {format_count(rate)} {here.content.holds} a second of a device"
    why = f"{wanted} {'core decodes' if wanted == 1 else 'cores decode'} {taken}"
    short = "" if wanted <= most else f"; {supply.cores:g} are beside each"
    yield "workers", max(1, min(wanted, most)), f"{why}{short}"


def _cache(here: FeedState) -> _Choice:
    supply, cluster = here.supply, here.resolved.cluster
    size = None if supply.bytes is None else mean(supply.bytes)
    if size is None or mean(supply.epochs) <= 1:
        yield "cache", NO_CACHE, "the data are read once" if size is not None else "the length of the job is open"
        return
    memory = cluster.host_memory_bytes
    share = here.mode.data.cache_share
    room = None if memory is None else share * mean(memory) * mean(cluster.per_node)
    if room is not None and size <= room:
        held = f"{format_bytes(size)} go into {format_percent(share)} of a node's memory"
        yield "cache", MEMORY, f"{held}; {mean(supply.epochs):.3g} passes"
        return
    disk, free = tier_of(LOCAL, cluster, here.catalog), cluster.host.disk_free_bytes
    if here.plan.data.source != LOCAL and (free is None or size <= free) and disk.cache is not None:
        yield "cache", disk.cache, f"{format_bytes(size)} are more than memory may take; later passes read the disk"
        return
    yield "cache", NO_CACHE, f"{format_bytes(size)} are more than memory may take"


def _prefetch(here: FeedState) -> _Choice:
    if here.plan.data.workers == 0:
        yield "prefetch", 0, "without workers nothing is read ahead"
    else:
        yield "prefetch", here.mode.data.prefetch, here.mode.data.style


def _shuffle_buffer(here: FeedState) -> _Choice:
    if here.plan.data.source == LOCAL and here.supply.format.any_order:
        yield "shuffle_buffer", 0, "samples on a disk are read in any order"
    else:
        yield "shuffle_buffer", here.mode.data.shuffle_buffer, here.mode.data.style


def _phases(here: FeedState) -> _Choice:
    """Split a training in two where the plan leaves that open: short sequences first, all of the length last."""
    length, first = int(here.plan.training.seq_len), here.mode.data.first_share
    short = int(length * here.mode.data.first_length)
    if here.resolved.shape is None or here.content.holds != "tokens" or short < _LEAST_LENGTH:
        yield "phases", (), "one phase: sequences are as short as they get"
        return
    changes: dict[str, SpecValue] = {Key.TRAINING_SEQ_LEN: short}
    for name in ("micro_batch", "global_batch"):
        batch = getattr(here.plan.training, name)
        if isinstance(batch, int):  # as many tokens as before
            changes[f"training.{name}"] = batch * length // short
    phases = (
        DataPhase(name=PHASES[0], share=first, changes=changes),
        DataPhase(name=PHASES[1], share=round(1.0 - first, 6)),
    )
    yield "phases", phases, f"{format_percent(first)} of the tokens in sequences of {short}, the rest at {length}"
