"""What would make a job fit where it does not: formats, methods, memory of the host, a larger machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.cluster import Device
from capacity_tui.engine.estimate.serving import why_not_read
from capacity_tui.engine.fleet.migration.alternative import Alternative, Remedy
from capacity_tui.engine.fleet.migration.throughput import Job
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.modes import WEIGHTS, fallbacks

# What rounds least of the formats that halve weights of 16 bits; engines advise others besides.
_EIGHT_BITS = ("int8", "fp8")


class Remedies:
    """Finds remedies: changes with which planning the job on the same machine makes it fit.

    Args:
        job: the job; what the user wrote of it is not changed.
    """

    def __init__(self, job: Job, catalog: Catalog) -> None:
        self._job, self._plan, self._catalog = job, job.plan, catalog

    def of(self, alternative: Alternative, device: Device) -> tuple[Remedy, ...]:
        """Return what helps on a machine, the least harmful first, up to the first that is enough.

        Where nothing is enough, what comes nearest is returned.

        Args:
            alternative: the machine, on which the job does not fit.
            device: what it has.
        """
        ways = list(self._ways(device))
        furthest = self._remedy(alternative, *ways[-1]) if ways else None
        # The last goes furthest: where that is not enough, nothing before it is.
        if furthest is not None and not furthest.is_enough:
            return (furthest,)
        tried = (self._remedy(alternative, *way) for way in ways[:-1])
        enough = next((remedy for remedy in tried if remedy is not None and remedy.is_enough), furthest)
        return () if enough is None else (enough,)

    def _remedy(self, alternative: Alternative, words: str, change: Mapping[str, object]) -> Remedy | None:
        """Return a change with what is still missing then; None where it does not help."""
        reached = self._job.with_change({**alternative.set, **change})
        helps = not reached.is_short or reached.short_bytes < alternative.short_bytes
        if reached.filled is None or not helps:
            return None
        return Remedy(words, reached.set, reached.short_bytes, is_enough=not reached.is_short)

    def _ways(self, device: Device) -> Iterator[tuple[str, Mapping[str, object]]]:
        """Yield what may be given up: of serving one thing at a time, in training one thing more each time."""
        if self._plan.task == "infer":
            yield from self._served(device)
            return
        together: dict[str, object] = {}
        applied: list[str] = []
        for words, change in self._trained():
            together |= change
            applied.append(words)
            yield ", ".join(applied), dict(together)

    def _served(self, device: Device) -> Iterator[tuple[str, Mapping[str, object]]]:
        inference, formats = self._job.settled.inference, self._catalog.quantizations
        rows = self._catalog.engine_rows(inference.engine)
        lighter = next((row.lighter_weights for row in rows if row.lighter_weights), ())
        own = formats.find(inference.weights_format).bits_per_weight or 0.0
        for name in dict.fromkeys((*_EIGHT_BITS, *lighter)):
            row = formats.find(name)
            is_read = not why_not_read(row, inference.engine, device, self._catalog)
            if is_read and (row.bits_per_weight or own) < own:
                yield f"weights in {name}", {WEIGHTS: name}

    def _trained(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        # Sequences stay as long as they are: what is learned from shorter ones is another thing.
        for way in fallbacks(self._plan, 0, self._catalog):
            if way.sets:
                yield way.words, way.sets
            elif any(path.endswith("offload") for path in way.opens):
                yield way.words, dict.fromkeys(way.opens, AUTO)


def with_larger_machines(alternatives: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Return alternatives, those that do not hold the job with the cheapest one of their provider that does.

    Args:
        alternatives: all alternatives, in any order.
    """
    holding = [alternative for alternative in alternatives if alternative.fits and alternative.usd_month is not None]
    cheapest: dict[str, Alternative] = {}
    for entry in sorted(holding, key=lambda item: item.usd_month or 0.0):
        cheapest.setdefault(entry.provider, entry)
    return tuple(_with_larger(alternative, cheapest.get(alternative.provider)) for alternative in alternatives)


def _with_larger(alternative: Alternative, larger: Alternative | None) -> Alternative:
    if alternative.fits or larger is None:
        return alternative
    remedy = Remedy(f"{larger.count} x {larger.instance} holds it", larger.set)
    return replace(alternative, remedies=(*alternative.remedies, remedy))
