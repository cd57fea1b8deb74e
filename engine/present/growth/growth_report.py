"""Laws of growth for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capacity_tui.engine.growth import POWER, Choice, Extrapolated, GrowthFit, Judged
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.units import format_count, format_percent, format_quantity, format_significant

_LAW_HEADS = ("law", "start", "rate", "exponent", "score", "weight")
_LAW_RIGHT = (1, 2, 3, 4, 5)
_SIZE_HEADS = ("n", "value", "from", "to")
_SIZE_RIGHT = (0, 1, 2, 3)
_LABELS = {
    "seconds": "Time",
    "peak_memory_bytes": "Peak memory",
    "disk_bytes": "Disk",
    "cpu_seconds": "CPU time",
}
_SHOWN_WEIGHT = 0.001
_WIDEST = 100.0
"""From what ratio of its ends on the range of a size that no law is decided for tells nothing."""


def growth_as_dict(fits: Sequence[GrowthFit]) -> dict[str, object]:
    """Return fits as plain data, under the names that scripts rely on: the first at the top, all in ``fits``."""
    first = fits[0]
    return {**_fit_as_dict(first), "fits": {each.figure: _fit_as_dict(each) for each in fits}}


def growth_parts(fits: Sequence[GrowthFit]) -> Iterator[Part]:
    """Yield fits as tables and lines."""
    for number, each in enumerate(fits):
        if number:
            yield TextPart()
        yield from _fit_parts(each)


def _fit_as_dict(fit: GrowthFit) -> dict[str, object]:
    choice = fit.choice
    return {
        "figure": fit.figure,
        "unit": fit.unit,
        "laws": [_law_as_dict(each) for each in choice.laws],
        "chosen": None if choice.chosen is None else choice.chosen.fitted.law.name,
        "decided": choice.decided,
        "reason": choice.reason,
        "next_size": choice.next_size,
        "noise": choice.measured.noise,
        "extrapolated": [to_builtins(each) for each in fit.extrapolated],
        "points": [{"n": size, "value": value} for size, value in fit.points],
    }


def _law_as_dict(judged: Judged) -> dict[str, object]:
    fitted = judged.fitted
    parameters = {"start": fitted.start}
    if fitted.law.grows:
        parameters["rate"] = fitted.rate
    if fitted.law is POWER:
        parameters["exponent"] = fitted.power
    return {"name": fitted.law.name, "parameters": parameters, "score": judged.score, "weight": judged.weight}


def _fit_parts(fit: GrowthFit) -> Iterator[Part]:
    choice = fit.choice
    label = _LABELS.get(fit.figure, fit.figure)
    yield TextPart(f"{label}: {_verdict(choice)}", "strong")
    if choice.chosen is not None:
        yield TextPart(_formula(choice.chosen, fit.unit))
    yield TextPart(f"{choice.reason[:1].upper()}{choice.reason[1:]}.{_advice(choice)}")
    sizes, measurements = len(choice.measured.sizes), choice.measured.measurements
    noise = format_percent(choice.measured.noise, 1)
    if choice.laws:
        yield TextPart(f"{measurements} measurements at {sizes} sizes, which spread by {noise}", "quiet")
    shown = [each for each in choice.laws if each.weight >= _SHOWN_WEIGHT or each is choice.chosen]
    if shown:
        yield table_part(_LAW_HEADS, [_law_cells(each, fit.unit, choice) for each in shown], _LAW_RIGHT)
    if len(shown) < len(choice.laws):
        left_out = ", ".join(each.fitted.law.name for each in choice.laws if each not in shown)
        yield TextPart(f"excluded: {left_out}", "quiet")
    if fit.extrapolated:
        yield table_part(_SIZE_HEADS, [_size_cells(each, fit) for each in fit.extrapolated], _SIZE_RIGHT)


def _size_cells(each: Extrapolated, fit: GrowthFit) -> tuple[str, ...]:
    """Return what a size takes; where laws that meet the measurements are too far apart, that it is not known."""
    if not fit.choice.decided and each.high > _WIDEST * each.low:
        return (format_count(each.n), *("not known",) * (len(_SIZE_HEADS) - 1))
    return (format_count(each.n), *(format_quantity(value, fit.unit) for value in (each.value, each.low, each.high)))


def _verdict(choice: Choice) -> str:
    if choice.chosen is None:
        return "not decided"
    name = choice.chosen.fitted.law.name
    return name if choice.decided else f"{name} at a guess, not decided"


def _formula(judged: Judged, unit: str) -> str:
    """Return a law with its numbers."""
    fitted = judged.fitted
    growing = {"O(log n)": "ln n", "O(n)": "n", "O(n log n)": "n ln n", "O(n^2)": "n^2", "O(n^3)": "n^3"}
    start = format_quantity(fitted.start, unit)
    if not fitted.law.grows:
        return f"{start} at any size"
    shape = growing.get(fitted.law.name, f"n^{fitted.power:.3g}")
    return f"{start} + {_rate(fitted.rate, unit)} x {shape}"


def _advice(choice: Choice) -> str:
    if choice.decided:
        return ""
    if choice.next_size is None:
        return " No larger size would tell them apart: measure the same sizes more often."
    return f" Measure n = {format_significant(choice.next_size)} next."


def _rate(rate: float, unit: str) -> str:
    """Return a factor, which may be far below what its unit is usually written with."""
    return f"{format_significant(rate)} {unit}".strip()


def _law_cells(judged: Judged, unit: str, choice: Choice) -> tuple[str, ...]:
    fitted = judged.fitted
    return (
        fitted.law.name + (" *" if judged is choice.chosen else ""),
        format_quantity(fitted.start, unit),
        _rate(fitted.rate, unit) if fitted.law.grows else "",
        f"{fitted.power:.3f}" if fitted.law is POWER else "",
        f"{judged.score:.1f}",
        format_percent(judged.weight, 1),
    )
