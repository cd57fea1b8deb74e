"""Machines for a job of a larger size, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.growth import SizedJob, SizedMachines
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import NOT_AVAILABLE, format_count, format_number, format_quantity, format_seconds

_HEADS = ("machines", "cores", "RAM", "cost", "$/h", "storage")
_RIGHT = (1, 2, 3, 4, 5)


def sized_jobs_as_data(jobs: Sequence[SizedJob]) -> list[object]:
    """Return what jobs need as plain data."""
    return [to_builtins(each) for each in jobs]


def sized_job_parts(job: SizedJob) -> Iterator[Part]:
    """Yield what a job needs as lines and a table."""
    yield TextPart()
    head = f"For n = {format_count(job.n)} in {format_seconds(job.deadline_seconds)} you need"
    split = f", split into {job.parts} parts that run side by side" if job.parts > 1 else ""
    yield TextPart(f"{head}{split}:", "strong")
    of_each = " each" if job.parts > 1 else ""
    yield TextPart(f"cores     {format_number(job.cores)}")
    yield TextPart(f"memory    {_ranged(job.memory_bytes, 'B')}{of_each if job.memory_bytes else ''}")
    yield TextPart(f"storage   {_ranged(job.storage_bytes, 'B')}")
    yield TextPart(f"time      {_ranged(job.seconds, 's')}{of_each}")
    if job.database is not None:
        base = job.database
        stored, held = format_quantity(base.storage_bytes, "B"), format_quantity(base.memory_bytes, "B")
        with_cores = f", {base.cores} cores" if base.cores else ""
        yield TextPart(f"database  {base.kind}, {stored}, {held} RAM{with_cores}: {base.reason}")
    if not job.machines:
        yield TextPart("No instance of processors alone holds a part of it.", "strong")
        return
    yield table_part(_HEADS, map(_cells, job.machines), _RIGHT)
    yield TextPart("The cheapest of each provider; a core is taken to be as fast as those here.", "quiet")
    yield TextPart(f"price: {job.machines[0].price_source}", "quiet")


def _cells(each: SizedMachines) -> tuple[str, ...]:
    return (
        f"{each.count} x {each.instance}",
        format_number(each.cores),
        format_quantity(each.memory_bytes, "B"),
        _ranged(each.usd, "USD"),
        format_quantity(each.usd_per_hour, "USD"),
        format_quantity(each.storage_usd, "USD"),
    )


def _ranged(figure: Interval | None, unit: str) -> str:
    if figure is None:
        return f"{NOT_AVAILABLE} (not measured)"
    value, low, high = (format_quantity(mean(end), unit) for end in (figure.value, figure.low, figure.high))
    return f"{value} ({low} to {high})"
