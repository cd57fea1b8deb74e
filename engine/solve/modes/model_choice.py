"""Choose the model: the largest a mode allows; where nothing fits, fallbacks that people take, least harmful first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any, TypeAlias

from capacity_tui.engine.catalog import Architecture, Catalog, parse_shipped
from capacity_tui.engine.catalog.rows import Mode
from capacity_tui.engine.cluster import Cluster
from capacity_tui.engine.estimate import Note, ResolvedPlan
from capacity_tui.engine.estimate.transformer import transformer_run
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.transformer import count_parameters, matmul_per_token, output_weights, shape_of
from capacity_tui.engine.numeric import largest
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import AUTO
from capacity_tui.engine.solve.changes import change_text, plain_change
from capacity_tui.engine.solve.modes.mode_plan import ModePlan, Settled
from capacity_tui.engine.solve.modes.training_settings import Search, Searched, chosen_precision
from capacity_tui.engine.solve.space.axes import Values
from capacity_tui.engine.units import format_bytes, format_count, format_seconds
from capacity_tui.engine.verdict import Verdict

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


HOUR = 3600.0
# A mode whose hours are open above still ends: this many times their lower bound (this program's choice).
OPEN_HOURS = 4.0
ROUNDING = 1.02  # A model called 70M may have 70.4 million parameters
SMALLER = 0.95  # A size that takes too long is followed by this share of it
# Bytes of weights, gradients and states of one trained parameter at the least: 16-bit everything, 8-bit Adam.
LEAST_BYTES_PER_PARAMETER = 6.0
# Passes of a token through each weight: forwards, and backwards for inputs and weights; frozen ones need no gradients.
PASSES, LEAST_PASSES = 3.0, 2.0
MARGIN = 1.0 + 1e-6  # Sums of a search and of an estimate may differ in their last digits
Resolve: TypeAlias = Callable[[Plan], ResolvedPlan]
Settle: TypeAlias = Callable[[Plan, ResolvedPlan], Settled]


def choose_model(
    plan: Plan, mode: Mode, cluster: Cluster, catalog: Catalog, resolve: Resolve, settle: Settle
) -> tuple[ModePlan, str]:
    """Return the plan with a model in place of ``auto``, filled and estimated, and why that model was chosen.

    Args:
        resolve: returns a plan that names its model with placeholders where it is open.
        settle: returns what the mode makes of such a plan.
    """
    lower, upper = mode.training_hours_range
    hours = upper or OPEN_HOURS * (lower or 1.0)
    rows = _candidates(mode, cluster, catalog)
    named = cache(lambda name: resolve(with_values(plan, {Key.MODEL_NAME: name})))
    settled = cache(lambda name: settle(with_values(plan, {Key.MODEL_NAME: name}), named(name)))
    fastest = cache(lambda: _fastest_products(named(rows[-1].id), plan, catalog))
    for row in rows:
        if not _may_end(row, plan, mode, cluster, hours, fastest):
            continue
        candidate = settled(row.id)
        # What takes too long by its steps alone needs no estimate.
        if candidate.least_seconds > hours * HOUR * MARGIN:
            continue
        seconds = job_seconds(candidate.filled)
        if (
            candidate.filled.estimate.verdict is not Verdict.DOES_NOT_FIT
            and seconds is not None
            and seconds <= hours * HOUR
        ):
            size = format_count(float(row.params_total or 0))
            time = format_seconds(seconds)
            return candidate.filled, f"largest model that trains within the mode's {hours:g} h: {size}, {time}"
    least = mode.parameters_range[0]
    counted = cache(lambda: _by_count(least, plan, mode, hours, settled) if least else None)

    def counted_below(known: float) -> tuple[ModePlan, str] | None:
        """Return the model by count alone where it is smaller than a known one; none is smaller than the least."""
        if not least or _size(named(_count_name(least))) * ROUNDING >= known:
            return None
        model = counted()
        return model if model is not None and _size(model[0].resolved) * ROUNDING < known else None

    if (smaller := counted_below(_size(named(rows[-1].id)))) is not None:
        return smaller
    plans = (settled(row.id) for row in reversed(rows))
    smallest = next((one for one in plans if one.filled.estimate.verdict is not Verdict.DOES_NOT_FIT), None)
    if (smaller := counted_below(math.inf if smallest is None else _size(smallest.resolved))) is not None:
        return smaller
    if smallest is None:
        chosen = settled(smallest_model(catalog)).filled
        return chosen, "nothing in the mode's range fits; this is the smallest model in the catalogue"
    return _shortened(plan, smallest, hours)


def smallest_model(catalog: Catalog) -> str:
    """Return the id of the smallest language model of the catalogue."""
    return catalog.architectures.decoders[-1].id


def job_seconds(filled: ModePlan) -> float | None:
    """Return the length of the whole job; None where it is open."""
    computation = filled.estimate.computation
    return None if computation.steps is None else float(computation.steps * computation.step_seconds.value)


def _shortened(plan: Plan, smallest: Settled, hours: float) -> tuple[ModePlan, str]:
    """Return the smallest model with as many tokens as the mode's hours allow."""
    seconds, tokens = job_seconds(smallest.filled), smallest.resolved.plan.training.tokens
    if seconds is None or not isinstance(tokens, float) or plan.training.tokens != AUTO:
        return smallest.filled, "smallest model of the mode's range"
    cut = _rounded_down(tokens * hours * HOUR / seconds)
    why = f"smallest of the mode's models; all its tokens would take {format_seconds(seconds)}, cut to {hours:g} h"
    return smallest.with_tokens(cut, f"as many as end within {hours:g} h").filled, why


def _by_count(
    least: float, plan: Plan, mode: Mode, hours: float, settled: Callable[[str], Settled]
) -> tuple[ModePlan, str] | None:
    """Return the largest decoder of usual proportions that ends in time, or the mode's smallest with fewer tokens.

    None where not even that fits. Time grows as the square of the size, since tokens grow with it.
    """
    smallest = settled(_count_name(least))
    seconds = job_seconds(smallest.filled)
    if smallest.filled.estimate.verdict is Verdict.DOES_NOT_FIT or seconds is None:
        return None
    size = _rounded_down(least * math.sqrt(hours * HOUR / seconds))
    size = min(size, mode.parameters_range[1] or size)
    while size > least:
        larger = settled(_count_name(size)).filled
        taken = job_seconds(larger)
        if larger.estimate.verdict is not Verdict.DOES_NOT_FIT and taken is not None and taken <= hours * HOUR:
            why = f"no known model of the mode ends within {hours:g} h; largest decoder of usual proportions that does"
            return larger, f"{why}: {format_seconds(taken)}"
        size = _rounded_down(size * SMALLER)
    return _shortened(plan, smallest, hours)


def _size(resolved: ResolvedPlan) -> float:
    return math.inf if resolved.shape is None else largest(count_parameters(resolved.shape).total)


def _count_name(parameters: float) -> str:
    """Return the name of a decoder by the count of its parameters alone."""
    return f"{parameters / 1e6:g}M"


def _rounded_down(value: float) -> float:
    """Return a number cut to two digits, so that what it takes stays inside a limit."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / digit) * digit


def _candidates(mode: Mode, cluster: Cluster, catalog: Catalog) -> Sequence[Architecture]:
    """Return the models of the mode's range that could fit at all, largest first; the smallest known without any."""
    low, high = mode.parameters_range
    memory = cluster.device.memory_bytes
    room = math.inf if memory is None else float(memory * cluster.devices)

    def could_fit(row: Architecture) -> bool:
        size = float(row.params_total or 0)
        is_inside = (low or 0.0) / ROUNDING <= size <= (high or math.inf) * ROUNDING
        return is_inside and size * LEAST_BYTES_PER_PARAMETER <= room

    sized = catalog.architectures.decoders
    return [row for row in sized if could_fit(row)] or sized[-1:]


def _may_end(
    row: Architecture, plan: Plan, mode: Mode, cluster: Cluster, hours: float, fastest: Callable[[], float]
) -> bool:
    """Whether the operations of a training end in time at the peak of the devices and at what products sustain."""
    training = plan.training
    if any(length is not None for length in (training.steps, training.samples)):
        return True
    size, active = float(row.params_total or 0), float(row.params_active or row.params_total or 0)
    given = float(training.tokens) if isinstance(training.tokens, int | float) else None
    seconds = float(cluster.devices) * hours * HOUR
    passes = LEAST_PASSES if plan.is_finetuning else PASSES
    if (
        2.0 * passes * active * (given or size * mode.tokens_per_parameter)
        > max(cluster.device.peaks.values()) * seconds
    ):
        return False
    shape = shape_of(row)
    head = 0.0 if training.predicted_tokens is None else output_weights(shape)
    tokens = given or count_parameters(shape).total * mode.tokens_per_parameter
    flops = 2.0 * passes * (matmul_per_token(shape) - head) * tokens
    return largest(flops) <= fastest() * seconds * MARGIN


def _fastest_products(resolved: ResolvedPlan, plan: Plan, catalog: Catalog) -> float:
    """Return FLOP/s of a device that no product of a training exceeds; infinity where sizes of them were measured."""
    device, precision, shape = resolved.cluster.device, plan.training.precision, resolved.shape
    if device.efficiency.curves or shape is None:
        return math.inf
    if precision == AUTO:
        precision, _ = chosen_precision(device, catalog)
    settled = with_values(resolved.plan, {Key.TRAINING_PRECISION: precision})
    kernels = transformer_run(settled, shape, resolved.cluster, catalog).kernels
    rates = (kernels.peak * kernels.gemm_reach, kernels.attention_peak * kernels.attention_reach)
    return max(map(largest, rates)) * largest(device.efficiency.sustained)
