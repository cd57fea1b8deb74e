"""What the engine tells of the storage of a plan, in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterator

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.present.storage import disk_bytes
from capacity_tui.engine.storage.training import StoragePlan, storage_plan
from capacity_tui.engine.units import format_bandwidth, format_bytes, format_count, format_percent, format_seconds
from capacity_tui.tui.shown.compared import Row

_OPEN = "n/a (the job's length is open)"


def stored_rows(machine: Machine | None, found: Answer, catalog: Catalog) -> tuple[Row, ...]:
    """Return what a plan keeps and moves; nothing where it reads and saves nothing.

    Args:
        machine: what was detected; None for nothing.
        found: the plan with its estimate.
        catalog: facts.
    """
    try:
        return tuple(_rows(storage_plan(found, machine, catalog)))
    except PlanError:
        return ()


def _rows(found: StoragePlan) -> Iterator[Row]:
    yield from _data(found)
    yield from _checkpoints(found)
    yield from _room(found)


def _data(found: StoragePlan) -> Iterator[Row]:
    supply, arrival = found.supply, found.arrival
    size = _OPEN if supply.bytes is None else format_bytes(float(supply.bytes))
    many = "" if supply.units is None else f"{format_count(float(supply.units))} {found.content.holds}"
    yield Row("data", "Data set", size, interval=many, help=f"The data of the job as {supply.format.name}.")
    own = found.sources[0]
    yield Row("read", "read", format_bandwidth(own.needed), indent=1, help="What a node reads of them while it works.")
    for source in found.sources:
        place = source.tier.place or source.tier.id
        yield Row(
            *(f"read.{place}", place if source is own else f"or {place}", format_bandwidth(source.bandwidth)),
            share=source.needed / source.bandwidth,
            interval="" if source.is_enough else "too slow",
            indent=2,
            help=f"What a node could read from there ({source.tier.name}), and how much of that it takes.",
        )
    waits = format_seconds(arrival.waiting_seconds) if arrival.waiting_seconds else "never"
    arriving = format_seconds(max(arrival.reading_seconds, arrival.decoding_seconds))
    yield Row(
        *("waits", "a step waits", waits),
        interval=f"{arrival.slower} {arriving}",
        indent=1,
        help="How long the devices wait for the data of a step: reading or decoding that takes longer than their own "
        f"work on it, {format_seconds(arrival.working_seconds)}.",
    )


def _checkpoints(found: StoragePlan) -> Iterator[Row]:
    saved = found.checkpoints
    yield Row(
        *("checkpoint", "Checkpoint", format_bytes(saved.bytes)),
        interval=f"×{saved.kept} = {format_bytes(saved.kept_bytes)}",
        help="Weights that are trained, their exact copy and the optimizer's states; so many are kept at once.",
    )
    yield Row(
        *("saving", "saved every", format_seconds(saved.interval_seconds)),
        interval=f"in {format_seconds(saved.save_seconds)}, {saved.tier.name}",
        indent=1,
        help=f"{format_seconds(saved.best_interval_seconds)} between two checkpoints lose least, with an interruption "
        f"of the job every {format_seconds(saved.failure_seconds)}.",
    )
    yield Row(
        *("stall", "stall", format_percent(saved.stall_share, 2)),
        interval=f"{format_percent(saved.lost_share, 2)} with losses",
        indent=1,
        help="Time in which the training waits for checkpoints, over that of its work; and that with what is lost.",
    )


def _room(found: StoragePlan) -> Iterator[Row]:
    host, memory = found.answer.resolved.cluster.host, found.memory
    needed, free = disk_bytes(found), host.disk_free_bytes
    yield Row(
        *("disk", "Disk", format_bytes(needed)),
        share=needed / free if free else None,
        interval=_of(needed, free, " free"),
        help="Data where they are kept on the disk of a node, and all checkpoints that are kept at once.",
    )
    yield Row(
        *("memory", "Host memory", format_bytes(memory.total)),
        share=memory.total / memory.capacity if memory.capacity else None,
        interval=_of(memory.total, memory.capacity),
        help="Main memory of a node: workers that load data, batches they keep ready, caches, what is offloaded.",
    )


def _of(needed: float, room: float | None, what: str = "") -> str:
    """Return what there is room for, and whether that is too little; nothing where it is unknown."""
    return f"of {format_bytes(room)}{what}{': too little' if needed > room else ''}" if room else ""
