"""Where nothing fits: the fallbacks that people take, the least harmful first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any

from capacity_tui.engine.catalog import Catalog, parse_shipped
from capacity_tui.engine.estimate import Note
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.changes import change_text, plain_change
from capacity_tui.engine.solve.modes.training_settings import Search, Searched
from capacity_tui.engine.solve.space.axes import Values
from capacity_tui.engine.units import format_bytes

SHORTEST = 512  # Sequences are not cut below this


@dataclass(frozen=True, slots=True)
class Fallback:
    """One thing to give up for memory."""

    words: str
    opens: tuple[str, ...] = ()  # fields that a search may then set
    sets: Mapping[str, object] = field(default_factory=dict)  # fields that it sets
    same_result: bool = False  # whether the model learns the same, so that it costs time alone

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields it touches."""
        return (*self.opens, *self.sets)


def fallbacks(plan: Plan, seq_len: int, catalog: Catalog) -> Iterator[Fallback]:
    """Yield what may be given up for a plan, in order of harm; never what the user wrote."""
    every = _every(plan.task or "", plan.training.optimizer, seq_len, catalog)
    return (way for way in every if not any(is_written(plan, path) for path in way.paths))


def touched_fields(catalog: Catalog) -> frozenset[str]:
    """Return every field that some way out touches: only there it matters whether the user wrote the default."""
    every = (way for name in catalog.optimizers for way in _every("finetune", name, 2 * SHORTEST, catalog))
    return frozenset(path for way in every for path in way.paths)


EIGHT_BIT = "eight_bit"  # Stands in a change for the variant of an optimizer with states in 8 bits


def named_change(change: Mapping[str, object], optimizer: str, catalog: Catalog) -> Mapping[str, object] | None:
    """Return a change with what its names stand for; None where an optimizer has no variant in 8 bits."""
    if change.get(Key.TRAINING_OPTIMIZER) != EIGHT_BIT:
        return change
    lighter = catalog.optimizers.find(optimizer).eight_bit
    return None if lighter is None else {**change, Key.TRAINING_OPTIMIZER: lighter}


def _every(task: str, optimizer: str, seq_len: int, catalog: Catalog) -> Iterator[Fallback]:
    for row in _rows():
        change = named_change(row.get("change", {}), optimizer, catalog)
        if row.get("task", task) == task and change is not None:
            yield Fallback(row["words"], tuple(row.get("opens", ())), change, row.get("same_result", False))
    while seq_len // 2 >= SHORTEST:
        seq_len //= 2
        yield Fallback(f"sequences of {seq_len} tokens", sets={Key.TRAINING_SEQ_LEN: seq_len})


@cache
def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parse_shipped("remedies.yaml")["fallbacks"]
    return rows


def is_written(plan: Plan, path: str) -> bool:
    """Whether the user wrote a value for a field, be it the default."""
    section, _, name = path.partition(".")
    return name in getattr(plan, section).model_fields_set and plan.value(path) not in (None, AUTO)


@dataclass(frozen=True, slots=True)
class FallbackOutcome:
    """What a search arrived at with the ways out that it took."""

    searched: Searched
    ways: tuple[Fallback, ...]  # what was given up, the least harmful first; nothing where that does not help
    needed_before: float  # bytes of the fullest device without any of it
    least: float  # bytes of the fullest device with all that was tried

    def change(self, search: Search) -> Values:
        """Return the fields that differ from what they would be, besides those the plan leaves open."""
        paths = dict.fromkeys(path for way in self.ways for path in way.paths)
        given = {path: (search.plan.value(path), search.resolved.plan.value(path)) for path in paths}
        values = self.searched.values
        return {path: values[path] for path in paths if path in values and not {AUTO, values[path]} & set(given[path])}


def with_fallbacks(search: Search, base: Values, wanted: tuple[str, ...]) -> FallbackOutcome:
    """Return the settings a search finds, going further than the open fields only where nothing fits.

    What leaves the result of training alone is tried while the mode's own share of memory is exceeded; what changes it
    only while nothing fits the device at all. Where nothing helps, the plan stays as it is wished.
    """
    first = best = search.settings(base, wanted)
    free: tuple[Fallback, ...] = ()
    given_up: tuple[Fallback, ...] = ()
    seq_len = int(str(base.get(Key.TRAINING_SEQ_LEN, search.resolved.plan.training.seq_len)))
    for way in fallbacks(search.plan, seq_len, search.catalog):
        if best.inside or (best.fits and not way.same_result):
            break
        if set(way.opens) & set(wanted):
            continue
        searched = _searched(search, base, wanted, (*free, *given_up, way))
        helps = (searched.inside, searched.fits, -searched.needed) > (best.inside, best.fits, -best.needed)
        best = searched if helps else best
        # A field that costs time alone stays open for what comes after it.
        if way.same_result and (way.opens or helps):
            free = (*free, way)
        elif helps:
            given_up = (*given_up, way)
    if not best.fits:
        return FallbackOutcome(first, (), first.needed, best.needed)
    return _trimmed(search, base, wanted, FallbackOutcome(best, (*free, *given_up), first.needed, best.needed))


def _searched(search: Search, base: Values, wanted: tuple[str, ...], ways: tuple[Fallback, ...]) -> Searched:
    values = {**base, **{path: value for way in ways for path, value in way.sets.items()}}
    return search.settings(values, (*wanted, *(path for way in ways for path in way.opens)))


def _trimmed(search: Search, base: Values, wanted: tuple[str, ...], taken: FallbackOutcome) -> FallbackOutcome:
    """Leave out what turned out not to be needed once something stronger was taken."""
    for way in taken.ways[:-1]:
        if way.opens and way.same_result:
            continue
        rest = tuple(other for other in taken.ways if other is not way)
        searched = _searched(search, base, wanted, rest)
        if searched.fits and searched.inside >= taken.searched.inside:
            taken = replace(taken, searched=searched, ways=rest)
    return taken


def explained(search: Search, taken: FallbackOutcome) -> tuple[dict[str, str], tuple[Note, ...]]:
    """Return the reasons of what was given up, and a warning that says so."""
    change = taken.change(search)
    capacity = search.resolved.cluster.device.memory_bytes
    if capacity is not None and not taken.searched.fits:
        lacks = format_bytes(taken.least - float(capacity))
        detail = f"Even with every change tried, a device needs {format_bytes(taken.least)}, {lacks} more than it has."
        others = ["a smaller model, which each mode chooses where model.name is auto", "more devices or larger ones"]
        if search.plan.training.adapter is None and not search.resolved.plan.is_inference:
            others.insert(0, "adapters on a frozen model (task finetune, training.method qlora)")
        detail += f" What helps: {'; '.join(others)}."
        return {}, (Note("nothing_fits", "Nothing makes it fit on this hardware", detail),)
    if not change:
        return {}, ()
    there = "" if capacity is None else f" of {format_bytes(float(capacity))}"
    needed = f"{format_bytes(taken.needed_before)}{there}"
    reasons = {
        path: f"{way.words}: without it a device needs {needed}"
        for way in taken.ways
        for path in way.paths
        if path in change
    }
    words = [way.words for way in taken.ways if set(way.paths) & set(change)]
    detail = f"{'; '.join(words)} ({change_text(change)}). Without them a device needs {needed}."
    holds = capacity is not None and taken.needed_before <= float(capacity)
    title = "It keeps the safety margin only with these changes" if holds else "It fits only with these changes"
    return reasons, (Note("way_out", title, detail, None, plain_change(change)),)
