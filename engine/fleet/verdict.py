"""Whether to move: the alternatives in order, the verdict with its reasons, and what is recommended."""

from __future__ import annotations

from collections.abc import Sequence

from capacity_tui.engine.fleet.alternative import Alternative, Migration
from capacity_tui.engine.fleet.assumptions import assumed
from capacity_tui.engine.numeric import mean


def judged(current: Alternative, found: Sequence[Alternative]) -> Migration:
    """Return alternatives in order, with a verdict over them.

    Args:
        current: the machine where the job is.
        found: the others, in any order.
    """
    ordered = tuple(sorted(found, key=_order))
    best = next((each for each in ordered if each.fits and _saves(each)), None)
    if best is None:
        return Migration(current, ordered, "stay", ("nothing that holds the job saves enough to be worth moving",))
    assert best.saving_percent is not None  # noqa: S101 - it saves
    share = f"{mean(best.saving_percent.value):.0f} %"
    return Migration(current, ordered, "move", (f"{best.count} x {best.instance} saves {share} of the same work",))


def _saves(each: Alternative) -> bool:
    return each.saving_percent is not None and mean(each.saving_percent.value) >= assumed("least_saving_percent")


def _order(each: Alternative) -> tuple[bool, bool, float, float]:
    saving = each.saving_percent
    return (
        not each.fits,
        saving is None,
        0.0 if saving is None else -mean(saving.value),
        each.short_bytes,
    )
