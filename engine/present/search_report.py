"""What a search found, for people and for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from capacity_tui.engine.estimate import METRICS, figure, part_label, usual_words
from capacity_tui.engine.estimate import Answer as NeededAnswer
from capacity_tui.engine.keys import Key
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import all_fields, short_name
from capacity_tui.engine.present.parts import Part, TablePart, TextPart, table_part
from capacity_tui.engine.present.results import (
    column_figures,
    column_head,
    column_text,
    picked,
    plan_value_text,
    result_as_dict,
    shown_figure,
    to_builtins,
)
from capacity_tui.engine.solve import Candidate, CheckedConstraint
from capacity_tui.engine.solve.need import GROWING, LAYERS, READS, Needed
from capacity_tui.engine.solve.search import Answer, SearchResult, unit_of
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.units import format_count, format_number, format_percent, format_quantity
from capacity_tui.engine.verdict import Verdict

# What a configuration runs, and on what, has a column of its own; of the rest only what is not plain.
_OWN_COLUMNS = (Key.MODEL_NAME, Key.HARDWARE_NAME, Key.HARDWARE_DEVICES)

_MOST_REASONS = 8


def search_as_dict(answer: Answer) -> dict[str, object]:
    """Return what a search found as plain data, under the names that scripts rely on."""
    return {
        **picked(answer, "evaluated", "valid", "fitting", "seconds", "plans_per_second", "complete", "goal"),
        "compared": list(answer.compared),
        "varied": dict(answer.varied),
        "rejected": to_builtins(answer.rejected),
        "missed": to_builtins(answer.missed),
        "top": [_result_as_dict(entry) for entry in answer.top],
        "pareto": list(answer.pareto),
    }


def _result_as_dict(search_result: SearchResult) -> dict[str, object]:
    return {
        "set": to_builtins(dict(search_result.set)),
        "fits": search_result.fits,
        "verdict": search_result.verdict.value,
        "figures": to_builtins({key: shown_figure(key, value) for key, value in search_result.figures.items()}),
        "dominated_by": search_result.dominated_by,
        "price_source": search_result.price_source,
    }


def search_parts(answer: Answer) -> Iterator[Part]:
    """Yield the best configurations, and what the search looked at."""
    if answer.top:
        yield _best_table(answer)
    else:
        yield TextPart("nothing fits and keeps every limit", "bad")
    yield from (TextPart(line) for line in search_lines(answer))
    for title, reasons in (("impossible", answer.rejected), ("over a limit", answer.missed)):
        if reasons:
            rows = ((format_number(reason.count), reason.rule, reason.example) for reason in reasons[:_MOST_REASONS])
            yield table_part((title, "why", "such as"), rows, (0,))


def _best_table(answer: Answer) -> TablePart:
    """Return the best of a search as a table: what it runs on, the goal, settings that were varied, other figures."""
    varied = {path for path, _ in answer.varied}
    paths = tuple(path for path in dict.fromkeys(path for entry in answer.top for path in entry.set) if path in varied)
    own = tuple(path for path in _OWN_COLUMNS if path in paths)
    settings = tuple(path for path in paths if path not in own)
    figures = _figures(answer)
    front = set(answer.pareto)

    def row(rank: int, search_result: SearchResult) -> tuple[str, ...]:
        mark = "*" if rank in front else " "
        values_set = ((path, search_result.set.get(path)) for path in settings)
        settings_text = ", ".join(
            f"{short_name(path)} {_value(value)}" for path, value in values_set if not _is_plain(path, value)
        )
        goal, *others = (_number(key, search_result.figures.get(key), key == answer.goal) for key in figures)
        behind = "" if search_result.dominated_by is None else f"row {search_result.dominated_by + 1}"
        values = (_value(search_result.set.get(path)) for path in own)
        return (f"{rank + 1}{mark}", *values, goal, *([settings_text or "-"] if settings else []), *others, behind)

    goal, *others = (column_head(key) for key in figures) if figures else ("",)
    heads = ("", *map(short_name, own), goal, *(["settings"] if settings else []), *others, "beaten by")
    rows = tuple(row(index, entry) for index, entry in enumerate(answer.top))
    kept = 2 + len(own) + bool(settings)
    right = (0, 1 + len(own), *range(kept, kept + len(others)))
    return TablePart(heads, rows, right, tuple(range(kept)))


def search_lines(answer: Answer) -> Iterator[str]:
    """Yield what a search looked at, and what excluded how much of it."""
    result = format_number(answer.fitting)
    speed = format_count(answer.plans_per_second)
    possible = f"{format_number(answer.valid)} of {format_number(answer.evaluated)} configurations are possible"
    yield f"{possible}, {result} of them fit and keep every limit; {answer.seconds:.1f} s, {speed} a second"
    if not answer.complete:
        yield f"stopped after {format_percent(answer.share_done)} of the search: the best so far"
    if answer.varied:
        axes = (f"{short_name(path)} ({count})" for path, count in answer.varied)
        yield f"varied: {', '.join(axes)}; best by {label_of(answer.goal)}"
    if answer.top:
        compared = ", ".join(map(label_of, answer.compared))
        yield f"* Pareto front: nothing in the list is better in all of {compared}"
        yield from _price_lines(answer)


def _price_lines(answer: Answer) -> Iterator[str]:
    """Yield whose prices the rows have, and of when."""
    rows: dict[str, list[int]] = {}
    for number, entry in enumerate(answer.top, 1):
        if entry.price_source:
            rows.setdefault(entry.price_source, []).append(number)
    if len(rows) == 1:
        yield f"price: {next(iter(rows))}"
    elif rows:
        sources = (f"{source} (row {', '.join(map(str, numbers))})" for source, numbers in rows.items())
        yield f"prices: {'; '.join(sources)}"


def progress_text(answer: Answer) -> str:
    """Return how far a search is, and its best so far, on one line."""
    counts = (f"{format_number(answer.valid)} tried", f"{format_number(answer.fitting)} fit")
    done = ", ".join((format_percent(answer.share_done), *counts))
    if not answer.top or answer.goal not in answer.top[0].figures:
        return done
    best = format_quantity(mean(answer.top[0].figures[answer.goal].value), unit_of(answer.goal))
    return f"{done}; {label_of(answer.goal)} {best} so far; ctrl-c stops"


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
    known = {key for entry in answer.top for key in entry.figures}
    return tuple(dict.fromkeys((answer.goal, *answer.compared, *column_figures(known)) if known else ()))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return format_count(value) if value >= 1e6 else f"{value:g}"
    return "" if value is None else str(value)


_WHOLE = 0.1  # From this share of a limit on, tenths of a percent say nothing


def needed_as_dict(needed: Needed, answer: NeededAnswer | None) -> dict[str, object]:
    """Return an answer as plain data, under the names that scripts rely on.

    Args:
        answer: the whole answer of the plan with the value; None where no value keeps the limits.
    """
    shown = needed.best or needed.nearest
    data: dict[str, object] = {
        "solve": needed.solve,
        "value": needed.value,
        "set": None if needed.best is None else dict(needed.best.change),
        "limits": {} if shown is None else {constraint.key: _limit(constraint) for constraint in shown.constraints},
        "binding": needed.binding,
        "goal": None if needed.goal is None else needed.goal.figure,
        "neighbour": _candidate_data(needed, needed.neighbour),
        "nearest": _candidate_data(needed, needed.nearest),
        "monotone": needed.is_monotonic,
        **picked(needed, "evaluated", "seconds", "complete"),
        "remarks": list(remarks(needed)),
        "result": None if answer is None else result_as_dict(answer.plan, answer.estimate),
    }
    return {key: to_builtins(value) for key, value in data.items()}


def needed_parts(needed: Needed, named: Callable[[str], str] = str) -> Iterator[Part]:
    """Yield the lines of an answer: the value, each limit beside what is reached, and what the next value breaks.

    Args:
        named: returns what a field is called, by its path; as it stands for those who type it.
    """
    shown = needed.best or needed.nearest
    if needed.best is None:
        yield TextPart(f"no {named(needed.solve)} keeps the limits", "strong")
    else:
        other_changes = {path: value for path, value in needed.best.change.items() if path != needed.solve}
        others = "".join(f", {named(path)} = {plan_value_text(value)}" for path, value in other_changes.items())
        yield TextPart(f"{named(needed.solve)} = {_value_text(needed.solve, needed.value)}{others}", "strong")
    if shown is not None and needed.best is None:
        yield TextPart(f"nearest: {_change_text(shown, named)}")
    if shown is not None:
        heads = ("limit", "value", "range", "at most / at least", "")
        rows = [_row(constraint, shown) for constraint in shown.constraints]
        yield table_part(heads, rows, (1, 2, 3), kept=(0, 1, 3, 4))
    for line in remarks(needed, named):
        yield TextPart(line)


def remarks(needed: Needed, named: Callable[[str], str] = str) -> Iterator[str]:
    """Yield what to know of an answer: what the next value breaks, what to relax, and what was not looked at."""
    if not needed.complete:
        yield "stopped before everything was tried: this is the best so far"
    if needed.best is None:
        if needed.nearest is not None:
            yield from (_relaxed(violation, needed.nearest) for violation in needed.nearest.violations)
        return
    beyond = needed.neighbour
    if beyond is not None:
        why = "; ".join(_broken(violation, beyond) for violation in beyond.violations) or beyond.fault
        yield f"next {_change_text(beyond, named)}: {why}"
    elif needed.ended_by == READS:
        yield "the model's context ends here: memory and limits would allow more"
    elif needed.ended_by == LAYERS:
        yield "these are all layers of the model"
    elif needed.ended_by in GROWING:
        yield f"the limit of {needed.ended_by} pays for no more tokens; another size would learn less from them"
    elif needed.ended_by:
        yield f"no limit reached: {named(needed.ended_by)} is at the end of its range"
    elif needed.goal is not None:
        yield f"nothing with a better {label_of(needed.goal.figure)} keeps the limits"
    if not needed.is_monotonic:
        yield "not monotone: some values between others that hold fail, since layouts differ"
    if needed.best.filled is not None and needed.best.filled.estimate.verdict is Verdict.TIGHT:
        yield f"it holds as estimated; {needed.best.filled.estimate.verdict_text}"


def _limit(constraint: CheckedConstraint) -> dict[str, object]:
    value = constraint.constraint.reached
    ends = {} if value is None or mean(value.low) == mean(value.high) else {"low": value.low, "high": value.high}
    limit = {"most": constraint.most} if constraint.most is not None else {"least": constraint.least}
    return {**limit, "value": constraint.value, **ends, "holds": constraint.holds}


def _candidate_data(needed: Needed, candidate: Candidate | None) -> dict[str, object] | None:
    if candidate is None:
        return None
    broken: list[Mapping[str, object]] = [
        {
            "figure": violation.key,
            **_limit(violation),
            "missed_by": violation.violation,
            "relax_to": violation.bound_value,
        }
        for violation in candidate.violations
    ]
    return {
        "value": needed.value_of(candidate),
        "set": dict(candidate.change),
        "broken": broken,
        "fault": candidate.fault or None,
    }


def _row(constraint: CheckedConstraint, of: Candidate) -> tuple[str, ...]:
    sign, value = ("<=", constraint.most) if constraint.most is not None else (">=", constraint.least)
    bound = f"{sign} {_written(value or 0.0, constraint)}"
    reached, state = constraint.constraint.reached, "holds" if constraint.holds else _missed_by(constraint)
    spread = reached is not None and mean(reached.low) < mean(reached.high)
    low, high = (mean(reached.low), mean(reached.high)) if reached is not None else (0.0, 0.0)
    ends = f"{_written(low, constraint)} to {_written(high, constraint)}" if spread else ""
    return _label(constraint, of), _text(constraint), ends, bound, state


def _broken(constraint: CheckedConstraint, of: Candidate) -> str:
    """Say what of a limit is not kept: the end of the range that counts, or the figure itself."""
    is_end = constraint.bound_value is not None and constraint.bound_value != constraint.value
    end = f" at the {'upper' if constraint.most is not None else 'lower'} end of its range" if is_end else ""
    return f"{_label(constraint, of)} {_end_text(constraint)}{end}, {_missed_by(constraint)}"


def _relaxed(constraint: CheckedConstraint, of: Candidate) -> str:
    """Say to what a limit would have to be relaxed."""
    if constraint.bound_value is None or not np.isfinite(constraint.bound_value):
        return f"{_label(constraint, of)}: {_text(constraint)}, no value of this limit can be kept"
    word = "at most" if constraint.most is not None else "at least"
    return f"{_label(constraint, of)}: {word} {_end_text(constraint)} would do"


def _label(constraint: CheckedConstraint, of: Candidate) -> str:
    """Return what a figure is called in the words of the run."""
    return (
        figure(of.estimate, constraint.key).metric.label if constraint.key in METRICS else constraint.constraint.label
    )


def _text(constraint: CheckedConstraint) -> str:
    return "n/a" if constraint.value is None else _written(constraint.value, constraint)


def _end_text(constraint: CheckedConstraint) -> str:
    return "n/a" if constraint.bound_value is None else _written(constraint.bound_value, constraint)


def _written(value: float, constraint: CheckedConstraint) -> str:
    return format_quantity(value, constraint.constraint.unit) if np.isfinite(value) else "unbounded"


def _missed_by(constraint: CheckedConstraint) -> str:
    if not np.isfinite(constraint.violation):
        return "missed"
    missed = format_percent(constraint.violation, 1 if constraint.violation < _WHOLE else 0)
    return f"{missed} {'over' if constraint.most is not None else 'short'}"


def _change_text(candidate: Candidate, named: Callable[[str], str]) -> str:
    return ", ".join(f"{named(path)} {plan_value_text(value)}" for path, value in candidate.change.items())


def _value_text(path: str, value: object) -> str:
    known = all_fields().get(path)
    unit = f" {known.knob.unit}" if known is not None and known.knob.unit else ""
    return f"{plan_value_text(value)}{unit}"
