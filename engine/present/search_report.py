"""What a search found, for people and for scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capacity_tui.engine.estimate import METRICS, part_label, usual_words
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import all_fields, short_name
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.figure_columns import column_figures, column_head, column_text
from capacity_tui.engine.solve.search import Answer, Rejected, SearchResult, unit_of
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_count, format_number, format_percent, format_quantity

# What a configuration runs, and on what, has a column of its own; of the rest only what is not plain.
_OWN_COLUMNS = (Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES)


@dataclass(frozen=True, slots=True)
class SearchTable:
    """The best of a search as a table.

    Attributes:
        heads: names of the columns: number, model and hardware, goal, settings, other figures, what dominates a row.
        rows: their cells.
        right: numbers of the columns that are flush right.
        kept: how many columns from the left always stay.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...]
    kept: int


def search_as_dict(answer: Answer) -> dict[str, object]:
    """Return what a search found as plain data, under the names that scripts rely on."""
    return {
        "evaluated": answer.evaluated,
        "valid": answer.valid,
        "fitting": answer.fitting,
        "seconds": answer.seconds,
        "plans_per_second": answer.plans_per_second,
        "complete": answer.complete,
        "goal": answer.goal,
        "compared": list(answer.compared),
        "varied": dict(answer.varied),
        "rejected": to_builtins(answer.rejected),
        "missed": to_builtins(answer.missed),
        "top": [_found(each) for each in answer.top],
        "pareto": list(answer.pareto),
    }


def _found(found: SearchResult) -> dict[str, object]:
    return {
        "set": to_builtins(dict(found.set)),
        "fits": found.fits,
        "verdict": found.verdict.value,
        "figures": to_builtins(dict(found.figures)),
        "dominated_by": found.dominated_by,
    }


def search_table(answer: Answer) -> SearchTable:
    """Return the best of a search as a table: what it runs on, the goal, settings that were varied, other figures."""
    varied = {path for path, _ in answer.varied}
    paths = tuple(path for path in dict.fromkeys(path for found in answer.top for path in found.set) if path in varied)
    own = tuple(path for path in _OWN_COLUMNS if path in paths)
    settings = tuple(path for path in paths if path not in own)
    figures = _figures(answer)
    front = set(answer.pareto)

    def row(place: int, found: SearchResult) -> tuple[str, ...]:
        mark = "*" if place in front else " "
        said = ((path, found.set.get(path)) for path in settings)
        told = ", ".join(f"{short_name(path)} {_value(value)}" for path, value in said if not _is_plain(path, value))
        goal, *others = (_number(key, found.figures.get(key), key == answer.goal) for key in figures)
        behind = "" if found.dominated_by is None else f"row {found.dominated_by + 1}"
        values = (_value(found.set.get(path)) for path in own)
        return (f"{place + 1}{mark}", *values, goal, *([told or "-"] if settings else []), *others, behind)

    goal, *others = (column_head(key) for key in figures) if figures else ("",)
    heads = ("", *map(short_name, own), goal, *(["settings"] if settings else []), *others, "behind")
    rows = tuple(row(place, found) for place, found in enumerate(answer.top))
    kept = 2 + len(own) + bool(settings)
    right = (0, 1 + len(own), *range(kept, kept + len(others)))
    return SearchTable(heads, rows, right, kept)


def search_lines(answer: Answer) -> Iterator[str]:
    """Yield what a search looked at, and what excluded how much of it."""
    found = format_number(answer.fitting)
    speed = format_count(answer.plans_per_second)
    tried = f"{format_number(answer.valid)} of {format_number(answer.evaluated)} configurations can be"
    yield f"{tried}, {found} of them fit and keep every limit; {answer.seconds:.1f} s, {speed} a second"
    if not answer.complete:
        yield f"stopped after {format_percent(answer.share_done)} of the search: the best so far"
    if answer.varied:
        axes = (f"{short_name(path)} ({count})" for path, count in answer.varied)
        yield f"varied: {', '.join(axes)}; best by {label_of(answer.goal)}"
    if answer.top:
        compared = ", ".join(map(label_of, answer.compared))
        yield f"* nothing in the list is better in all of: {compared}"


def progress_text(answer: Answer) -> str:
    """Return how far a search is, and its best so far, on one line."""
    counts = (f"{format_number(answer.valid)} tried", f"{format_number(answer.fitting)} fit")
    tried = ", ".join((format_percent(answer.share_done), *counts))
    if not answer.top or answer.goal not in answer.top[0].figures:
        return tried
    best = format_quantity(mean(answer.top[0].figures[answer.goal].value), unit_of(answer.goal))
    return f"{tried}; {label_of(answer.goal)} {best} so far; ctrl-c stops"


def reason_rows(reasons: tuple[Rejected, ...]) -> list[tuple[str, str, str]]:
    """Return reasons that excluded something as rows: how many, why, and an example."""
    return [(format_number(each.count), each.rule, each.example) for each in reasons]


def figure_text(key: str, value: Interval) -> str:
    """Return a figure of a search with its range in its unit."""
    unit = unit_of(key)
    middle, low, high = (mean(end) for end in (value.value, value.low, value.high))
    if low == high:
        return format_quantity(middle, unit)
    return f"{format_quantity(middle, unit)} ({format_quantity(low, unit)} to {format_quantity(high, unit)})"


def label_of(key: str) -> str:
    """Return what a figure is called, whatever the run."""
    if key not in METRICS:
        return part_label(key.rpartition(".")[2])
    metric = METRICS[key]
    return usual_words(metric.brief or metric.label)


def _is_plain(path: str, value: object) -> bool:
    """Whether a value is the plainest of its field: nothing split, shared, recomputed or moved elsewhere."""
    known = all_fields().get(path)
    if known is not None and known.knob.kind == "choice":
        return value in ("none", 0)
    return value is False or value is None or (not isinstance(value, bool) and value == 1)


def _number(key: str, value: Interval | None, ranged: bool) -> str:
    if value is None:
        return ""
    return figure_text(key, value) if ranged else column_text(key, mean(value.value))


def _figures(answer: Answer) -> tuple[str, ...]:
    known = {key for found in answer.top for key in found.figures}
    return tuple(dict.fromkeys((answer.goal, *answer.compared, *column_figures(known)) if known else ()))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return format_count(value) if value >= 1e6 else f"{value:g}"
    return "" if value is None else str(value)
