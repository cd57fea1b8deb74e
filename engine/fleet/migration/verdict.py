"""Whether to move: the alternatives in order, the verdict and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.catalog import Instance
from capacity_tui.engine.fleet.migration.priced import Machine
from capacity_tui.engine.fleet.migration.question import (
    MOST_HOURS,
    Alternative,
    Degree,
    Level,
    Migration,
    MigrationQuestion,
    ends,
    machines,
    money,
    percent,
    times,
)
from capacity_tui.engine.fleet.migration.recommendations import (
    NOTHING_BETTER,
    cost_of_work,
    fastest,
    first_machines,
    level_of,
    recommendations,
    replica_devices,
    spans_nodes,
    surely_faster,
)
from capacity_tui.engine.fleet.options import assumed
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import HOUR_SECONDS, PERCENT, format_bytes
from capacity_tui.engine.verdict import Verdict

WHAT_COUNTS = "least_saving_percent"


def judged(question: MigrationQuestion, current: Alternative, alternatives: Sequence[Alternative]) -> Migration:
    """Return alternatives in order, with verdict and recommendations."""
    ordered = tuple(sorted(alternatives, key=_order if current.fits else _order_of_first))
    tuned = next((alternative for alternative in ordered if is_same_machine(alternative, current)), None)
    usable = tuple(alternative for alternative in ordered if is_usable(alternative, current))
    if not current.fits:
        advice = first_machines(current, tuned, ordered, usable)
        stays = tuned is not None or any(remedy.is_enough for remedy in current.remedies[:1])
        goes_to, reasons = usable[0] if usable and not stays else None, tuple(_first_reasons(current, tuned, usable))
    else:
        worth = tuple(alternative for alternative in usable if is_worth_it(question, alternative, tuned))
        why_not = tuple(_staying(question, current, tuned, ordered))
        faster = surely_faster(current, usable)
        advice = recommendations(question, current, ordered, worth, faster, why_not)
        if question.goal == "performance":
            goes_to, reasons = fastest(faster) if faster else None, tuple(_for_speed(current, faster))
        elif worth:
            goes_to, reasons = worth[0], tuple(_moving(worth[0]))
        else:
            goes_to, reasons = None, why_not
    return Migration(current, ordered, "stay" if goes_to is None else "move", reasons, advice, goes_to)


def is_same_machine(alternative: Alternative, current: Alternative) -> bool:
    """Whether an alternative is the current machine with other settings, paid as it is."""
    return (
        alternative.fits
        and alternative.instance == current.instance
        and alternative.count == current.count
        and alternative.is_spot == current.is_spot
    )


def is_usable(alternative: Alternative, current: Alternative) -> bool:
    """Whether a job can do with a machine: it fits, is not too risky, and ends a month's work within a month.

    Nothing that fits where it is moves to where it may not fit.
    """
    hours = alternative.hours_same_work
    in_time = hours is None or mean(hours.value) <= MOST_HOURS
    is_sure = alternative.verdict is not Verdict.TIGHT or current.verdict is not Verdict.FITS
    return alternative.fits and is_sure and alternative.risk.level != "high" and in_time


def is_worth_it(question: MigrationQuestion, alternative: Alternative, tuned: Alternative | None) -> bool:
    """Whether moving to a machine that can be used saves enough, surely and soon enough.

    What other settings save without moving is no reason to move.
    """
    saving, paid = alternative.saving_percent, alternative.usd_same_work
    if saving is None or paid is None or alternative.break_even_hours is None or alternative is tuned:
        return False
    if tuned is not None and tuned.usd_same_work is not None:
        most = mean(tuned.usd_same_work.value) * (1.0 - assumed(WHAT_COUNTS) / PERCENT)
        if mean(paid.value) > most:
            return False
    soon = alternative.break_even_hours <= assumed("longest_break_even_months") * question.hours
    return mean(saving.value) >= assumed(WHAT_COUNTS) and mean(saving.low) > 0 and soon


def _first_reasons(current: Alternative, tuned: Alternative | None, usable: Sequence[Alternative]) -> Iterator[str]:
    """Yield why a job that does not fit where it is goes elsewhere, or not."""
    if current.short_bytes:
        yield f"the job does not fit on its current machine: each device is {format_bytes(current.short_bytes)} short"
    else:
        yield f"on its current machine: {current.verdict.words}, {current.reason}"
    remedy = next(iter(current.remedies), None)
    if tuned is not None:
        yield f"{tuned.instance} holds it with other settings"
    elif remedy is not None and remedy.is_enough:
        yield f"{current.instance} holds it with {remedy.words}"
    if usable:
        yield f"{machines(usable[0])} holds it as it is"
    elif tuned is None:
        yield "no instance surely holds it at an acceptable risk"


def _moving(best: Alternative) -> Iterator[str]:
    saving = best.saving_percent
    assert saving is not None and best.saving_usd is not None  # noqa: S101 - it is worth it
    yield f"{machines(best)} does the same work for {percent(saving)} less: {money(best.saving_usd.value)} a month"
    yield from _moving_needs(best)


def _moving_needs(best: Alternative) -> Iterator[str]:
    """Yield what moving to a machine takes, and what speaks against it."""
    if best.break_even_hours is not None and best.move_usd is not None:
        yield f"moving costs {money(best.move_usd)} once, which {best.break_even_hours:.0f} hours of running pay back"
    yield f"risk {best.risk.level}, complexity {best.complexity.level}"


def _for_speed(current: Alternative, faster: Sequence[Alternative]) -> Iterator[str]:
    """Yield the fastest machine of a job that is to run faster, whatever that saves."""
    if not faster:
        here = f"{current.count} x {current.instance}"
        yield f"no offer is surely faster than {here} at an acceptable risk"
        return
    best = fastest(faster)
    assert best.performance_ratio is not None  # noqa: S101 - it is faster
    yield f"{machines(best)} has {times(best.performance_ratio)} times the throughput"
    if best.usd_same_work is not None:
        saving = best.saving_percent
        less = 0.0 if saving is None else mean(saving.value)
        saved = "" if saving is None else f", {abs(less):.0f} % {'less' if less >= 0 else 'more'} than now"
        yield f"a month's work costs {money(best.usd_same_work.value)} there{saved}"
    yield from _moving_needs(best)


def _staying(
    question: MigrationQuestion, current: Alternative, tuned: Alternative | None, ordered: Sequence[Alternative]
) -> Iterator[str]:
    """Yield why no machine is worth moving to for what it saves."""
    if current.usd_same_work is None:
        yield "the price of the current machine is not known, and so no saving: give it as pricing.usd_per_hour"
        return
    if tuned is not None and tuned.saving_percent is not None:
        own = mean(tuned.saving_percent.value)
        if own >= assumed(WHAT_COUNTS):
            yield f"other settings on {current.instance} save {percent(tuned.saving_percent)} without moving"
    others = (
        alternative
        for alternative in ordered
        if alternative is not tuned and alternative.fits and alternative.saving_percent is not None
    )
    saving = [other for other in others if other.saving_percent is not None and mean(other.saving_percent.value) > 0]
    if not saving:
        yield f"no machine that holds the job is cheaper: {NOTHING_BETTER}"
        return
    best = saving[0]
    assert best.saving_percent is not None  # noqa: S101 - chosen so
    text = f"{machines(best)} would save {percent(best.saving_percent)}"
    hours = best.hours_same_work
    if best.risk.level == "high":
        yield f"{text}, but at a high risk: {best.risk.reasons[0]}"
    elif hours is not None and mean(hours.value) > MOST_HOURS:
        yield f"{text}, but needs {mean(hours.value):.0f} hours for a month's work"
    elif not is_usable(best, current):
        yield f"{text}, but may not hold the job: {best.reason}"
    elif mean(best.saving_percent.value) < assumed(WHAT_COUNTS):
        yield f"{text}, less than the {assumed(WHAT_COUNTS):g} % that make moving worthwhile: {NOTHING_BETTER}"
    elif mean(best.saving_percent.low) <= 0:
        yield f"{text}, but within the range of the estimate it may also cost more"
    elif best.move_usd is None:
        unknown = next((part for part in best.move if part.usd is None), None)
        yield f"{text}, but the migration cost is not known{f': {unknown.detail}' if unknown else ''}"
    else:
        soon = assumed("longest_break_even_months") * question.hours
        yield f"{text}, but moving costs {money(best.move_usd)}: more than {soon:.0f} hours of running save"


def _order_of_first(alternative: Alternative) -> tuple[bool, bool, float, float]:
    """Order machines of a job that has none yet, whose work is compared with nothing."""
    return (not alternative.fits, alternative.risk.level == "high", cost_of_work(alternative), alternative.short_bytes)


def _order(alternative: Alternative) -> tuple[bool, bool, float, float]:
    saving = alternative.saving_percent
    return (
        not alternative.fits,
        saving is None,
        cost_of_work(alternative) if saving is None else -mean(saving.value),
        alternative.short_bytes,
    )


def risk(alternative: Alternative, machine: Machine) -> Level:
    row = machine.row
    return level_of(
        (
            *_of_memory(machine),
            *_of_interruptions(alternative, machine),
            *_of_network(machine, row),
            *_of_speed(alternative),
            *_of_price(alternative, machine, row),
        )
    )


def _of_memory(machine: Machine) -> Iterator[tuple[Degree, str]]:
    estimate = machine.reached.estimate
    if estimate is None or estimate.memory.capacity_bytes is None or not machine.reached.fits:
        return
    capacity, needed = mean(estimate.memory.capacity_bytes), estimate.memory.reserved_bytes
    share = mean(needed.value) / capacity * PERCENT
    if share >= assumed("full_memory_percent"):
        yield "high", f"memory is full to {share:.0f} %"
    elif estimate.verdict is Verdict.TIGHT:
        yield "medium", f"memory is tight: up to {format_bytes(mean(needed.high))} of {format_bytes(capacity)}"


def _of_interruptions(alternative: Alternative, machine: Machine) -> Iterator[tuple[Degree, str]]:
    often = machine.cluster.price.interruptions
    if not alternative.is_spot or often is None:
        return
    hours = often.seconds_between / HOUR_SECONDS
    degree: Degree = "high" if hours < assumed("short_interval_hours") else "medium"
    yield degree, f"spot capacity is taken back about every {hours:.3g} h of running"
    if (
        alternative.usd_per_hour
        and alternative.usd_per_hour_spot
        and alternative.usd_per_hour_spot >= alternative.usd_per_hour
    ):
        yield "medium", "spot costs as much as on demand: there is hardly any free capacity"


def _of_network(machine: Machine, row: Instance | None) -> Iterator[tuple[Degree, str]]:
    if machine.reached.fits and spans_nodes(machine.cluster, replica_devices(machine)):
        if row is not None and row.network_link is None:
            yield ("high", f"{machine.count} instances communicate over their hosts' network, without one of their own")
        else:
            yield "medium", "nodes must communicate at the speed that their network promises"
    if row is not None and row.device_share < 1.0:
        yield "low", "a share of a device, beside other users"


def _of_speed(alternative: Alternative) -> Iterator[tuple[Degree, str]]:
    if alternative.verdict is Verdict.MISSES_LIMIT:
        yield "high", alternative.reason
    ratio = alternative.performance_ratio
    if ratio is not None and mean(ratio.low) > 0 and mean(ratio.high) / mean(ratio.low) >= assumed("wide_range"):
        yield "medium", f"its speed is uncertain: {ends(ratio)} times the current one"


def _of_price(alternative: Alternative, machine: Machine, row: Instance | None) -> Iterator[tuple[Degree, str]]:
    if row is None:
        return
    if machine.cluster.price.usd_per_hour is None:
        yield "medium", "no on-demand price is known: capacity comes in blocks, by contract or on spot"
    for quote in machine.cluster.price.rate_quotes:
        if not quote.verified:
            yield "medium", "its price is from memory, without a source"
        if quote.age.is_old:
            yield "low", f"its price is {quote.age.words}"
        if quote.remark:
            yield "low", quote.remark
    if not alternative.usd_per_hour and not alternative.usd_per_hour_spot:
        yield "high", "no price is known"
