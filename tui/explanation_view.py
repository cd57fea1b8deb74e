"""The engine's explanations in the words of the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from capacity_tui.engine.api import (
    Derivation,
    Explained,
    Lever,
    ModePlan,
    SumOfTerms,
    format_percent,
    format_quantity,
    interval_text,
)
from capacity_tui.engine.api import EquationInput as EngineInput
from capacity_tui.engine.api import Explanation as EngineExplanation
from capacity_tui.tui.view import Explanation, Input, Step

_MOST_TERMS = 12
_MOST_NUMBERS = 6
_MOST_STEPS = 10
_EXPLAINED_TERMS = 2
"""Of the largest terms so many show the formula behind them."""


def reason(filled: ModePlan, mode: str, key: str) -> Explanation | None:
    """Return why a mode chose a setting; None for a key that is a figure."""
    if key.partition(".")[0] not in {"training", "parallelism", "inference", "model"}:
        return None
    given = "the plan says so"
    why = filled.reasons.get(key, given)
    value = filled.plan.value(key)
    return Explanation(
        key=key,
        title=f"{key} ({mode})",
        formula=why,
        result="" if value is None else str(value),
        lever="" if why != given else "backspace on the field lets the modes choose, where they can",
    )


def explanation(explained: Explained, mode: str = "") -> Explanation:
    """Return an explanation of a figure, of one mode where it is named."""
    found = explained.explanation
    main, *others = _steps(found) or [Step("", "")]
    return Explanation(
        key=found.key,
        title=f"{found.figure.title} ({mode})" if mode else found.figure.title,
        formula=main.formula,
        result=found.figure.text,
        inputs=main.inputs,
        sources=_sources(found),
        assumptions=found.assumed,
        interval=interval_text(found.figure.value),
        lever=_lever(explained.lever),
        remarks=found.remarks,
        steps=tuple(others[:_MOST_STEPS]),
    )


def _steps(found: EngineExplanation) -> list[Step]:
    """Return the formulas behind a figure, its own first, then those that the numbers put in come from."""
    summed = [] if found.sum is None else [_sum(found.sum)]
    derived = [step for root in found.derivations for step in _opened(root)]
    opened = [step for root, name in _largest(found).items() for step in _opened(root, f"{name}: ")]
    is_sum = found.sum is not None and not found.sum.name
    ordered = [*summed, *derived, *opened] if is_sum else [*derived, *summed, *opened]
    return list(dict.fromkeys(ordered))


def _largest(found: EngineExplanation) -> dict[Derivation, str]:
    """Return the equations behind the largest terms, each with the name of its term."""
    largest = found.terms[:_EXPLAINED_TERMS]
    return {term.derivation: term.name for term in largest if term.derivation is not None}


def _opened(root: Derivation, title: str = "") -> Iterator[Step]:
    """Yield an equation, then those that the numbers put into it come from."""
    inputs = tuple(_input(entry) for entry in root.inputs)
    yield Step(title + root.formula, format_quantity(float(np.mean(root.result)), root.unit), inputs)
    for entry in root.inputs:
        if entry.derivation is not None:
            yield from _opened(entry.derivation)


def _input(entry: EngineInput) -> Input:
    source = f"{entry.meaning} ({entry.told})" if entry.told else entry.meaning
    return Input(entry.name, _value(entry.value, entry.unit), source)


def _value(value: object, unit: str) -> str:
    """Return what was put into a formula: a number, a few of many, or words."""
    if isinstance(value, int | float):
        return format_quantity(float(value), unit)
    if isinstance(value, np.ndarray):
        numbers = [format_quantity(float(number), unit) for number in value.flat[:_MOST_NUMBERS]]
        more = value.size - len(numbers)
        return ", ".join([*numbers, f"and {more} more"] if more else numbers)
    return str(value)


def _sum(found: SumOfTerms) -> Step:
    """Return a sum as a step, its smallest terms together."""
    shown, rest = found.terms[:_MOST_TERMS], found.terms[_MOST_TERMS:]
    inputs = [Input(term.name, format_quantity(term.value, found.unit), term.detail) for term in shown]
    if rest:
        others = format_quantity(sum(term.value for term in rest), found.unit)
        inputs.append(Input(f"and {len(rest)} more", others))
    total = format_quantity(sum(term.value for term in found.terms), found.unit)
    formula = f"{found.name} = the sum of its parts" if found.name else "the sum of its parts"
    return Step(formula, total, tuple(inputs))


def _sources(found: EngineExplanation) -> tuple[str, ...]:
    interval = f"interval: {found.interval_basis}" if found.interval_basis else ""
    roots = (*found.derivations, *_largest(found))
    texts = (*_formula_sources(roots), interval, found.calibration)
    return tuple(dict.fromkeys(text for text in texts if text))


def _formula_sources(derivations: Iterable[Derivation]) -> Iterator[str]:
    for derivation in derivations:
        yield derivation.source
        yield from _formula_sources(entry.derivation for entry in derivation.inputs if entry.derivation is not None)


def _lever(lever: Lever | None) -> str:
    if lever is None:
        return ""
    sign = "+" if lever.change > 0 else ""
    return f"{lever.label} {lever.before} → {lever.after} ({lever.field}): {sign}{format_percent(lever.change)}"
