"""The answer to a question asked backwards, as plain data and as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from capacity_tui.engine.estimate import METRICS, Answer, figure
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import all_fields
from capacity_tui.engine.present.as_builtins import to_builtins
from capacity_tui.engine.present.parts import Part, TextPart, table_part
from capacity_tui.engine.present.plan_values import plan_value_text
from capacity_tui.engine.present.results import result_as_dict
from capacity_tui.engine.solve import Candidate, CheckedConstraint
from capacity_tui.engine.solve.need import GROWING, READS, Needed
from capacity_tui.engine.units import format_percent, format_quantity
from capacity_tui.engine.verdict import Verdict

# From this share of a limit on, tenths of a percent say nothing.
_WHOLE = 0.1


def needed_as_dict(needed: Needed, answer: Answer | None) -> dict[str, object]:
    """Return an answer as plain data, under the names that scripts rely on.

    Args:
        needed: what was found.
        answer: the whole answer of the plan with the value; None where no value keeps the limits.
    """
    shown = needed.best or needed.nearest
    found: dict[str, object] = {
        "solve": needed.solve,
        "value": needed.value,
        "set": None if needed.best is None else dict(needed.best.change),
        "limits": {} if shown is None else {each.key: _limit(each) for each in shown.constraints},
        "binding": needed.binding,
        "goal": None if needed.goal is None else needed.goal.figure,
        "neighbour": _tried(needed, needed.neighbour),
        "nearest": _tried(needed, needed.nearest),
        "monotone": needed.is_monotonic,
        "tried": needed.tried,
        "seconds": needed.seconds,
        "complete": needed.complete,
        "remarks": list(remarks(needed)),
        "result": None if answer is None else result_as_dict(answer.plan, answer.estimate),
    }
    return {key: to_builtins(value) for key, value in found.items()}


def needed_parts(needed: Needed) -> Iterator[Part]:
    """Yield the lines of an answer: the value, each limit beside what is reached, and what the next value breaks."""
    shown = needed.best or needed.nearest
    if needed.best is None:
        yield TextPart(f"no {needed.solve} keeps the limits", "strong")
    else:
        beside = {path: value for path, value in needed.best.change.items() if path != needed.solve}
        others = "".join(f", {path} = {plan_value_text(value)}" for path, value in beside.items())
        yield TextPart(f"{needed.solve} = {_value_text(needed.solve, needed.value)}{others}", "strong")
    if shown is not None and needed.best is None:
        yield TextPart(f"nearest: {_change_text(shown)}")
    if shown is not None:
        heads = ("limit", "value", "range", "at most / at least", "")
        rows = [_row(each, shown) for each in shown.constraints]
        yield table_part(heads, rows, (1, 2, 3), kept=(0, 1, 3, 4))
    for line in remarks(needed):
        yield TextPart(line)


def remarks(needed: Needed) -> Iterator[str]:
    """Yield what to know of an answer: what the next value breaks, what to relax, and what was not looked at."""
    if not needed.complete:
        yield "stopped before everything was tried: this is the best so far"
    if needed.best is None:
        if needed.nearest is not None:
            yield from (_relaxed(each, needed.nearest) for each in needed.nearest.violations)
        return
    beyond = needed.neighbour
    if beyond is not None:
        why = "; ".join(_broken(each, beyond) for each in beyond.violations) or beyond.fault
        yield f"next {_change_text(beyond)}: {why}"
    elif needed.ended_by == READS:
        yield "the model reads no more: memory and limits would let it go on"
    elif needed.ended_by in GROWING:
        yield f"{_title(needed.ended_by)} pays for no more tokens; with them another size is expected to learn less"
    elif needed.ended_by:
        yield f"no limit ends it: the range of {needed.ended_by} does"
    elif needed.goal is not None:
        yield f"no limit ends it: it has the best {needed.goal.figure} of what was tried"
    if not needed.is_monotonic:
        yield "not monotone: some values beside it fail that lie between others that hold, since layouts differ"
    if needed.best.filled is not None and needed.best.filled.estimate.verdict is Verdict.TIGHT:
        yield f"{needed.best.filled.estimate.verdict_text}: it holds as estimated, not at the far end of its range"


def _title(key: str) -> str:
    return f"the limit of {key}"


def _limit(each: CheckedConstraint) -> dict[str, object]:
    value = each.constraint.reached
    ends = {} if value is None or mean(value.low) == mean(value.high) else {"low": value.low, "high": value.high}
    limit = {"most": each.most} if each.most is not None else {"least": each.least}
    return {**limit, "value": each.value, **ends, "holds": each.holds}


def _tried(needed: Needed, tried: Candidate | None) -> dict[str, object] | None:
    if tried is None:
        return None
    broken: list[Mapping[str, object]] = [
        {"figure": each.key, **_limit(each), "missed_by": each.violation, "relax_to": each.bound_value}
        for each in tried.violations
    ]
    return {"value": needed.value_of(tried), "set": dict(tried.change), "broken": broken, "fault": tried.fault or None}


def _row(each: CheckedConstraint, of: Candidate) -> tuple[str, ...]:
    sign, value = ("<=", each.most) if each.most is not None else (">=", each.least)
    bound = f"{sign} {_written(value or 0.0, each)}"
    reached, state = each.constraint.reached, "holds" if each.holds else _missed_by(each)
    spread = reached is not None and mean(reached.low) < mean(reached.high)
    low, high = (mean(reached.low), mean(reached.high)) if reached is not None else (0.0, 0.0)
    ends = f"{_written(low, each)} to {_written(high, each)}" if spread else ""
    return _label(each, of), _text(each), ends, bound, state


def _broken(each: CheckedConstraint, of: Candidate) -> str:
    """Say what of a limit is not kept: the end of the range that counts, or the figure itself."""
    is_end = each.bound_value is not None and each.bound_value != each.value
    end = f" at the {'upper' if each.most is not None else 'lower'} end of its range" if is_end else ""
    return f"{_label(each, of)} {_end_text(each)}{end}, {_missed_by(each)}"


def _relaxed(each: CheckedConstraint, of: Candidate) -> str:
    """Say to what a limit would have to be relaxed."""
    if each.bound_value is None or not np.isfinite(each.bound_value):
        return f"{_label(each, of)}: {_text(each)}, no limit of it can be kept"
    word = "at most" if each.most is not None else "at least"
    return f"{_label(each, of)}: {word} {_end_text(each)} would do"


def _label(each: CheckedConstraint, of: Candidate) -> str:
    """Return what a figure is called in the words of the run."""
    return figure(of.estimate, each.key).metric.label if each.key in METRICS else each.constraint.label


def _text(each: CheckedConstraint) -> str:
    return "n/a" if each.value is None else _written(each.value, each)


def _end_text(each: CheckedConstraint) -> str:
    return "n/a" if each.bound_value is None else _written(each.bound_value, each)


def _written(value: float, each: CheckedConstraint) -> str:
    return format_quantity(value, each.constraint.unit) if np.isfinite(value) else "without end"


def _missed_by(each: CheckedConstraint) -> str:
    if not np.isfinite(each.violation):
        return "missed"
    return f"missed by {format_percent(each.violation, 1 if each.violation < _WHOLE else 0)}"


def _change_text(tried: Candidate) -> str:
    return ", ".join(f"{path} {plan_value_text(value)}" for path, value in tried.change.items())


def _value_text(path: str, value: object) -> str:
    known = all_fields().get(path)
    unit = f" {known.knob.unit}" if known is not None and known.knob.unit else ""
    return f"{plan_value_text(value)}{unit}"
