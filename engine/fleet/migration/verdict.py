"""Whether to move: the alternatives in order, the verdict and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.fleet.migration.alternative import Alternative, Migration, Verdict
from capacity_tui.engine.fleet.migration.question import MOST_HOURS, MigrationQuestion
from capacity_tui.engine.fleet.migration.recommendations import cost_of_work, first_machines, recommendations
from capacity_tui.engine.fleet.migration.words import money, percent
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import PERCENT, format_bytes

WHAT_COUNTS = "least_saving_percent"


def judged(question: MigrationQuestion, current: Alternative, found: Sequence[Alternative]) -> Migration:
    """Return alternatives in order, with verdict and recommendations.

    Args:
        question: the job.
        current: the machine where it is.
        found: the others, in any order.
    """
    ordered = tuple(sorted(found, key=_order if current.fits else _order_of_first))
    tuned = next((each for each in ordered if is_same_machine(each, current)), None)
    worth = tuple(each for each in ordered if is_worth_it(question, each, tuned))
    if not current.fits:
        usable = tuple(each for each in ordered if is_usable(each))
        advice = first_machines(tuned, usable)
        verdict: Verdict = "move" if usable and tuned is None else "stay"
        return Migration(current, ordered, verdict, tuple(_first_reasons(current, tuned, usable)), advice)
    advice = recommendations(question, current, ordered, worth)
    if worth:
        return Migration(current, ordered, "move", tuple(_moving(worth[0])), advice)
    return Migration(current, ordered, "stay", tuple(_staying(question, current, tuned, ordered)), advice)


def _first_reasons(current: Alternative, tuned: Alternative | None, usable: Sequence[Alternative]) -> Iterator[str]:
    """Yield why a job that does not fit where it is goes elsewhere, or not."""
    yield f"the job does not fit where it is: {format_bytes(current.short_bytes)} are missing on a device"
    if tuned is not None:
        yield f"{tuned.instance} itself holds it with other settings"
    elif usable:
        yield f"{usable[0].count} x {usable[0].instance} holds it"
    else:
        yield "no instance that was compared holds it at a bearable risk"


def is_same_machine(each: Alternative, current: Alternative) -> bool:
    """Whether an alternative is the current machine with other settings, paid as it is."""
    return (
        each.fits
        and each.instance == current.instance
        and each.count == current.count
        and each.is_spot == current.is_spot
    )


def is_usable(each: Alternative) -> bool:
    """Whether a job can do with a machine: it fits, is not too risky, and ends a month's work within a month."""
    hours = each.hours_same_work
    in_time = hours is None or mean(hours.value) <= MOST_HOURS
    return each.fits and each.risk.level != "high" and in_time


def is_worth_it(question: MigrationQuestion, each: Alternative, tuned: Alternative | None) -> bool:
    """Whether moving to a machine saves enough, surely and soon enough, at a risk that one can take.

    What other settings save without moving is no reason to move.

    Args:
        question: the job.
        each: the machine.
        tuned: the current machine with the best settings.
    """
    saving, paid = each.saving_percent, each.usd_same_work
    if saving is None or paid is None or each.break_even_hours is None or each is tuned or not is_usable(each):
        return False
    if tuned is not None and tuned.usd_same_work is not None:
        most = mean(tuned.usd_same_work.value) * (1.0 - assumed(WHAT_COUNTS) / PERCENT)
        if mean(paid.value) > most:
            return False
    soon = each.break_even_hours <= assumed("longest_break_even_months") * question.hours
    return mean(saving.value) >= assumed(WHAT_COUNTS) and mean(saving.low) > 0 and soon


def _moving(best: Alternative) -> Iterator[str]:
    saving = best.saving_percent
    assert saving is not None and best.saving_usd is not None  # noqa: S101 - it is worth it
    way = " on spot capacity" if best.is_spot else ""
    yield (
        f"{best.count} x {best.instance}{way} does the same work for {percent(saving)} less: "
        f"{money(best.saving_usd.value)} a month"
    )
    if best.break_even_hours is not None and best.move_usd is not None:
        yield f"moving costs {money(best.move_usd)} once, which {best.break_even_hours:.0f} hours of running pay back"
    yield f"risk {best.risk.level}, complexity {best.complexity.level}"


def _staying(
    question: MigrationQuestion, current: Alternative, tuned: Alternative | None, ordered: Sequence[Alternative]
) -> Iterator[str]:
    if current.usd_same_work is None:
        yield "what the current machine costs is not known, so that no saving can be: give it as pricing.usd_per_hour"
        return
    if tuned is not None and tuned.saving_percent is not None:
        own = mean(tuned.saving_percent.value)
        if own >= assumed(WHAT_COUNTS):
            yield f"other settings on {current.instance} save {percent(tuned.saving_percent)} without moving"
    others = (each for each in ordered if each is not tuned and each.saving_percent is not None)
    saving = [each for each in others if each.saving_percent is not None and mean(each.saving_percent.value) > 0]
    if not saving:
        yield "nothing that holds the job does its work for less: it is already well-optimized"
        return
    best = saving[0]
    assert best.saving_percent is not None  # noqa: S101 - chosen so
    told = f"{best.count} x {best.instance} would save {percent(best.saving_percent)}"
    if best.risk.level == "high":
        yield f"{told}, but at a high risk: {best.risk.reasons[0]}"
    elif not is_usable(best):
        hours = best.hours_same_work
        yield f"{told}, but needs {mean(hours.value) if hours else 0:.0f} hours for a month's work"
    elif mean(best.saving_percent.value) < assumed(WHAT_COUNTS):
        least = assumed(WHAT_COUNTS)
        yield f"{told}, less than the {least:g} % from where on moving is worth it: it is already well-optimized"
    elif mean(best.saving_percent.low) <= 0:
        yield f"{told}, but within the range of the estimate it may as well cost more"
    elif best.move_usd is None:
        unknown = next((part for part in best.move if part.usd is None), None)
        yield f"{told}, but what moving costs is not known{f': {unknown.detail}' if unknown else ''}"
    else:
        soon = assumed("longest_break_even_months") * question.hours
        yield f"{told}, but moving costs {money(best.move_usd)}: more than {soon:.0f} hours of running save"


def _order_of_first(each: Alternative) -> tuple[bool, bool, float, float]:
    """Order machines of a job that has none yet, whose work is compared with nothing."""
    return (not each.fits, not is_usable(each), cost_of_work(each), each.short_bytes)


def _order(each: Alternative) -> tuple[bool, bool, float, float]:
    saving = each.saving_percent
    return (
        not each.fits,
        saving is None,
        0.0 if saving is None else -mean(saving.value),
        each.short_bytes,
    )
