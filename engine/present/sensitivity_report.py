"""What moves a figure most, as a table with bars, as Markdown and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from capacity_tui.engine.errors import Place
from capacity_tui.engine.estimate import figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.plan import all_fields
from capacity_tui.engine.plan.imports import ImportedSetting
from capacity_tui.engine.present.markdown import escaped, table_lines
from capacity_tui.engine.present.pictures.timeline_chart import ASCII_BARS, BLOCKS
from capacity_tui.engine.present.results import plan_value_text, result_as_dict
from capacity_tui.engine.printable import printable_lines
from capacity_tui.engine.solve import RATIO, Audit, Finding, Narrowing, Sensitivity, Swing
from capacity_tui.engine.units import format_percent, format_quantity
from capacity_tui.engine.verdict import Verdict

TITLES = {"knob": "Fields, one step", "unknown": "Unknowns, end to end"}

TORNADO_HEADS = ("Lowest", "Highest", "Lowest with", "Highest with")

BAR_WIDTH = 24


@dataclass(frozen=True, slots=True)
class TornadoRow:
    """One thing that moves a figure, in words.

    Attributes:
        label: what it is.
        bar: from the lowest to the highest figure, on one scale for a table; the line is the plan as it stands.
        figures: the lowest figure, and the highest.
        values: its value with each of them.
    """

    label: str
    bar: str
    figures: tuple[str, str]
    values: tuple[str, str]

    @property
    def cells(self) -> tuple[str, ...]:
        """Figures and values, as under ``TORNADO_HEADS``."""
        return (*self.figures, *self.values)


@dataclass(frozen=True, slots=True)
class TornadoTable:
    """Fields, or unknowns, the strongest first.

    Attributes:
        title: which they are.
        rows: the strongest.
        others: how many weaker ones are left out.
    """

    title: str
    rows: tuple[TornadoRow, ...]
    others: int


def tornado_headline(found: Sensitivity, plan_name: str) -> str:
    """Return the figure and its range in a sentence."""
    ends = f" ({found.figure.range_text})" if found.figure.range_text else ""
    return f"{found.figure.title} of {plan_name}: {found.figure.text}{ends}"


def tornado_tables(found: Sensitivity, top: int, ascii_only: bool = False) -> Iterator[TornadoTable]:
    """Yield the fields and the unknowns that move a figure most, each table on a scale of its own.

    Args:
        found: what moves it.
        top: how many rows of each.
        ascii_only: whether bars are drawn with ASCII characters alone.
    """
    unit = found.figure.metric.unit
    for kind, title in TITLES.items():
        swings = [each for each in found.swings if each.kind == kind]
        if swings:
            scale = _Scale(found.value, swings[:top], ascii_only)
            rows = (
                TornadoRow(
                    each.label,
                    scale.bar(each),
                    (format_quantity(each.low, unit), format_quantity(each.high, unit)),
                    (_value(each, each.start), _value(each, each.end)),
                )
                for each in swings[:top]
            )
            yield TornadoTable(title, tuple(rows), max(len(swings) - top, 0))


def measurement_advice(found: Sensitivity, plan_name: str) -> str:
    """Return what to measure next in a sentence."""
    best = found.measure_next
    if best is None:
        return "Nothing that this program measures would narrow the range."
    unit = found.figure.metric.unit
    narrowed, now = (
        f"{format_quantity(low, unit)} to {format_quantity(high, unit)}"
        for low, high in ((best.narrowed_low, best.narrowed_high), (best.low, best.high))
    )
    return (
        f"Measure next: {best.measurement.what}. With it the range is at best {narrowed}, in place of {now}: "
        f"{format_percent(best.share)} narrower. {_command(best, plan_name)}"
    )


def sensitivity_as_data(found: Sensitivity, plan_name: str) -> dict[str, object]:
    """Return what moves a figure as plain data, under the names that scripts rely on."""
    return {
        "of": found.figure.metric.key,
        "value": found.value,
        "unit": found.figure.metric.unit,
        "rows": [
            {
                "kind": each.kind,
                "key": each.key,
                "label": each.label,
                "now": each.now,
                "from": each.start,
                "to": each.end,
                "unit": each.unit,
                "low": each.low,
                "high": each.high,
                "swing": each.swing,
            }
            for each in found.swings
        ],
        "measure_next": None if found.measure_next is None else _narrowing_as_data(found.measure_next, plan_name),
    }


def sensitivity_as_markdown(found: Sensitivity, plan_name: str, top: int) -> str:
    """Return what moves a figure as Markdown."""
    lines = [f"# {escaped(tornado_headline(found, plan_name))}"]
    for table in tornado_tables(found, top):
        lines += table_lines(table.title, ("", *TORNADO_HEADS), ((row.label, *row.cells) for row in table.rows))
        if table.others:
            lines += ["", f"{table.others} more move it less."]
    return printable_lines("\n".join([*lines, "", escaped(measurement_advice(found, plan_name))])) + "\n"


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
    """A logarithmic axis with the figure of the plan as it stands.

    Args:
        value: that figure.
        swings: what is drawn on it.
        ascii_only: whether to draw with ASCII characters alone.
    """

    def __init__(self, value: float, swings: Sequence[Swing], ascii_only: bool) -> None:
        self._glyphs = ASCII_BARS if ascii_only else BLOCKS
        ends = [value, *(each.low for each in swings), *(each.high for each in swings)]
        self._low, self._high = self._place(min(ends)), self._place(max(ends))
        self._value = self._cell(value)

    def bar(self, swing: Swing) -> str:
        """Return the cells from the lowest to the highest value."""
        first, last = self._cell(swing.low), self._cell(swing.high)
        cells = [self._glyphs.parts[-1] if first <= cell <= last else " " for cell in range(BAR_WIDTH)]
        cells[self._value] = self._glyphs.limit
        return "".join(cells)

    def _cell(self, value: float) -> int:
        share = (self._place(value) - self._low) / ((self._high - self._low) or 1.0)
        return round(share * (BAR_WIDTH - 1))

    def _place(self, value: float) -> float:
        return math.log(max(value, 1e-300))


_TRAINED = (
    Figure.MEMORY_RESERVED_BYTES, Figure.STEP_SECONDS, Figure.TOKENS_PER_SECOND,
    Figure.ESTIMATED_TRAIN_TIME_SECONDS, Figure.COST_USD, Figure.COST_USD_PER_HOUR,
)  # fmt: skip

_SERVED = (
    Figure.MEMORY_RESERVED_BYTES, Figure.TIME_TO_FIRST_TOKEN_SECONDS,
    Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, Figure.REQUESTS_PER_SECOND,
    Figure.COST_USD_PER_HOUR, Figure.COST_USD_PER_MILLION_TOKENS,
)  # fmt: skip


def audit_as_dict(audit: Audit) -> dict[str, object]:
    """Return the whole audit as plain data."""
    imported, answer = audit.imported, audit.answer
    return {
        "files": [{"file": each.file, "tool": each.tool.name} for each in imported.readings],
        "plan": (answer.plan if answer else imported.plan).plain_data(),
        "settings": [_setting(path, setting) for path, setting in imported.settings.items()],
        "fits": answer.estimate.fits if answer else False,
        "verdict": answer.estimate.verdict.value if answer else Verdict.CANNOT_RUN.value,
        "moments": [
            {"moment": each.name, "bytes": round(each.size), "short_bytes": round(each.short)} for each in audit.moments
        ],
        "contradictions": [
            {"rule": each.code, "title": each.title, "detail": each.detail, "places": _places(each.places)}
            for each in audit.contradictions
        ],
        "wasted": [_wasted(each) for each in audit.wasted],
        "not_modelled": [
            {**_place(each.place), "why": each.why} for reading in imported.readings for each in reading.unmodelled
        ],
        "unknown": [
            {**_place(each.place), "nearest": each.why or None}
            for reading in imported.readings
            for each in reading.unknown
        ],
        "ignored": _places(place for reading in imported.readings for place in reading.ignored),
        "guessed": list(imported.guesses),
        "result": result_as_dict(answer.plan, answer.estimate) if answer else None,
    }


def setting_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return the settings of the plan as understood: what, its value, and where it comes from."""
    fields = all_fields()
    order = {path: place for place, path in enumerate(("task", *fields))}
    rows = []
    for path, setting in sorted(audit.imported.settings.items(), key=lambda entry: order.get(entry[0], 0)):
        known = fields.get(path)
        rows.append((known.knob.label if known else path, plan_value_text(setting.value), setting.words))
    return rows


def figure_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return what the run comes to: figures, each with its range."""
    if audit.answer is None:
        return []
    estimate = audit.answer.estimate
    keys = _SERVED if audit.answer.plan.task == "infer" else _TRAINED
    found = (figure(estimate, key) for key in keys)
    return [(each.metric.label, each.text, each.range_text) for each in found if each.number is not None]


def _setting(path: str, setting: ImportedSetting) -> dict[str, object]:
    return {
        "field": path,
        "value": setting.value,
        "from": setting.level,
        **_place(setting.place),
        "words": setting.words,
    }


def _place(place: Place) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "key": place.field}


def _places(places: Iterable[Place]) -> list[dict[str, object]]:
    return [_place(place) for place in places]


def _wasted(found: Finding) -> dict[str, object]:
    return {"code": found.code, "title": found.title, "detail": found.detail, "saves": dict(found.saves)}
