"""What moves a figure most, as a table with bars, as Markdown and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from capacity_tui.engine.present.parts import Part, TextPart, parts_as_markdown, table_part
from capacity_tui.engine.present.pictures.text_charts import ASCII_BARS, BLOCKS
from capacity_tui.engine.present.results import picked, plan_value_text
from capacity_tui.engine.solve import RATIO, Narrowing, Sensitivity, Swing
from capacity_tui.engine.units import format_percent, format_quantity

TITLES = {"knob": "Fields, one step", "unknown": "Unknowns, end to end"}
TORNADO_HEADS = ("Lowest", "Highest", "Lowest with", "Highest with")
BAR_WIDTH = 24


def tornado_headline(sensitivity: Sensitivity, plan_name: str) -> str:
    """Return the figure and its range in a sentence."""
    ends = f" ({sensitivity.figure.range_text})" if sensitivity.figure.range_text else ""
    return f"{sensitivity.figure.title} of {plan_name}: {sensitivity.figure.text}{ends}"


def measurement_advice(sensitivity: Sensitivity, plan_name: str) -> str:
    """Return what to measure next in a sentence."""
    best = sensitivity.measure_next
    if best is None:
        return "No measurement of this program would narrow the range."
    unit = sensitivity.figure.metric.unit
    narrowed, now = (
        f"{format_quantity(low, unit)} to {format_quantity(high, unit)}"
        for low, high in ((best.narrowed_low, best.narrowed_high), (best.low, best.high))
    )
    return (
        f"Measure next: {best.measurement.what}. With it the range is at best {narrowed}, instead of {now}: "
        f"{format_percent(best.share)} narrower. {_command(best, plan_name)}"
    )


def sensitivity_as_data(sensitivity: Sensitivity, plan_name: str) -> dict[str, object]:
    """Return what moves a figure as plain data, under the names that scripts rely on."""
    return {
        "of": sensitivity.figure.metric.key,
        "value": sensitivity.value,
        "unit": sensitivity.figure.metric.unit,
        "rows": [
            {
                **picked(swing, "kind", "key", "label", "now"),
                "from": swing.start,
                "to": swing.end,
                **picked(swing, "unit", "low", "high", "swing"),
            }
            for swing in sensitivity.swings
        ],
        "measure_next": None
        if sensitivity.measure_next is None
        else _narrowing_as_data(sensitivity.measure_next, plan_name),
    }


def sensitivity_as_markdown(sensitivity: Sensitivity, plan_name: str, top: int) -> str:
    """Return what moves a figure as Markdown."""
    _, *parts = sensitivity_parts(sensitivity, plan_name, top)
    return parts_as_markdown(tornado_headline(sensitivity, plan_name), parts)


def sensitivity_parts(sensitivity: Sensitivity, plan_name: str, top: int, ascii_only: bool = False) -> Iterator[Part]:
    """Yield the figure, what moves it with bars on one scale, and what to measure next."""
    yield TextPart(tornado_headline(sensitivity, plan_name), "strong")
    unit = sensitivity.figure.metric.unit
    for kind, title in TITLES.items():
        swings = [swing for swing in sensitivity.swings if swing.kind == kind]
        shown = swings[:top]
        if not shown:
            continue
        scale = _Scale(sensitivity.value, shown, ascii_only)
        rows = (
            (
                *(swing.label, scale.bar(swing)),
                *(format_quantity(figure, unit) for figure in (swing.low, swing.high)),
                *(_value(swing, value) for value in (swing.start, swing.end)),
            )
            for swing in shown
        )
        yield table_part((title, "", *TORNADO_HEADS), rows, range(2, 2 + len(TORNADO_HEADS)), kept=(0,), spare=(1,))
        if len(swings) > top:
            yield TextPart(f"and {len(swings) - top} more with less effect", "quiet")
    yield TextPart(measurement_advice(sensitivity, plan_name))


def _narrowing_as_data(best: Narrowing, plan_name: str) -> dict[str, object]:
    return {
        "kind": best.measurement.kind,
        "what": best.measurement.what,
        "command": _command(best, plan_name),
        "range": {"low": best.low, "high": best.high},
        "narrowed": {"low": best.narrowed_low, "high": best.narrowed_high},
        "narrower_percent": 100.0 * best.share,
    }


def _command(best: Narrowing, plan_name: str) -> str:
    return best.measurement.command.replace("PLAN", plan_name)


def _value(swing: Swing, value: object) -> str:
    if swing.unit == RATIO:
        return f"× {value:.2f}"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g} {swing.unit}".rstrip()
    return f"{plan_value_text(value)} {swing.unit}".rstrip()


class _Scale:
    """A logarithmic axis with the figure of the plan as it stands, and the swings that are drawn on it."""

    def __init__(self, value: float, swings: Sequence[Swing], ascii_only: bool) -> None:
        self._glyphs = ASCII_BARS if ascii_only else BLOCKS
        ends = [value, *(swing.low for swing in swings), *(swing.high for swing in swings)]
        self._low, self._high = self._column(min(ends)), self._column(max(ends))
        self._value = self._cell(value)

    def bar(self, swing: Swing) -> str:
        """Return the cells from the lowest to the highest value."""
        first, last = self._cell(swing.low), self._cell(swing.high)
        cells = [self._glyphs.parts[-1] if first <= cell <= last else " " for cell in range(BAR_WIDTH)]
        cells[self._value] = self._glyphs.limit
        return "".join(cells)

    def _cell(self, value: float) -> int:
        share = (self._column(value) - self._low) / ((self._high - self._low) or 1.0)
        return round(share * (BAR_WIDTH - 1))

    def _column(self, value: float) -> float:
        return math.log(max(value, 1e-300))
