"""What would make a job fit where it does not: formats, methods, memory of the host, a larger machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.modes.serving_formats import FORMATS, WEIGHTS
from capacity_tui.engine.choose.modes.ways_out import ways_out
from capacity_tui.engine.fleet.migration.alternative import Alternative, Remedy
from capacity_tui.engine.fleet.migration.reached import Job, Least
from capacity_tui.engine.plan.plan import AUTO, Plan


class Remedies:
    """Finds remedies; what was tried on one machine serves all that are alike but for the size of their memory.

    Args:
        job: the job.
        plan: the same as the user gave it: what was written is not changed.
        catalog: facts.
    """

    def __init__(self, job: Job, plan: Plan, catalog: Catalog) -> None:
        self._job, self._plan, self._catalog = job, plan, catalog
        self._known: dict[tuple[object, ...], list[tuple[str, Least]]] = {}
        self._further: dict[tuple[object, ...], Iterator[tuple[str, Least]]] = {}

    def of(self, found: Alternative, capacity: float, alike: tuple[object, ...]) -> tuple[Remedy, ...]:
        """Return what helps on a machine, the least harmful first, up to the first that is enough.

        Args:
            found: the machine, on which the job does not fit.
            capacity: bytes of one of its devices.
            alike: what machines have in common that need the same memory.
        """
        remedies: list[Remedy] = []
        for words, least in self._ways(found, alike):
            short = max(0.0, least.needed_bytes - capacity)
            hardware = {path: found.set[path] for path in ("hardware.name", "hardware.devices")}
            remedies.append(Remedy(words, {**least.set, **hardware}, short))
            if not short:
                return (remedies[-1],)
        # Where nothing is enough, what comes nearest is told.
        return tuple(sorted(remedies, key=lambda each: each.short_bytes)[:1])

    def _ways(self, found: Alternative, alike: tuple[object, ...]) -> Iterator[tuple[str, Least]]:
        """Yield what was tried on machines that are alike, then what is tried now: no more than is asked for."""
        known = self._known.setdefault(alike, [])
        yield from known
        further = self._further.setdefault(alike, self._needs(found))
        for each in further:
            known.append(each)
            yield each

    def _needs(self, found: Alternative) -> Iterator[tuple[str, Least]]:
        """Yield what may be given up, in training one thing more each time, with the least that is needed then."""
        is_served = self._job.plan.task == "infer"
        together: dict[str, object] = {}
        said: list[str] = []
        for words, change in self._served() if is_served else self._trained():
            together |= change
            said = [words] if is_served else [*said, words]
            least = self._job.least(found.set, together)
            if least is not None:
                yield ", ".join(said), Least(least.needed_bytes, {**together, **least.set})

    def _served(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        rows = self._catalog.engine_rows(self._job.plan.inference.engine)
        tried = next((row.tried_weights for row in rows if row.tried_weights), FORMATS)
        own = self._job.plan.inference.weights_format
        for name in tried:
            if name != own:
                yield f"weights in {name}", {WEIGHTS: name}

    def _trained(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        # Sequences stay as long as they are: what is learned from shorter ones is another thing.
        for way in ways_out(self._plan, 0, self._catalog):
            if way.sets:
                yield way.words, way.sets
            elif any(path.endswith("offload") for path in way.opens):
                yield way.words, dict.fromkeys(way.opens, AUTO)


def with_larger_machines(found: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Return alternatives, those that do not hold the job with the cheapest one of their provider that does.

    Args:
        found: all alternatives, in any order.
    """
    holding = [each for each in found if each.fits and each.usd_month is not None]
    cheapest: dict[str, Alternative] = {}
    for each in sorted(holding, key=lambda each: each.usd_month or 0.0):
        cheapest.setdefault(each.provider, each)
    return tuple(_with_larger(each, cheapest.get(each.provider)) for each in found)


def _with_larger(each: Alternative, larger: Alternative | None) -> Alternative:
    if each.fits or larger is None:
        return each
    remedy = Remedy(f"{larger.count} x {larger.instance} holds it", larger.set)
    return replace(each, remedies=(*each.remedies, remedy))
