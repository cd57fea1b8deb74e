"""Explanations of figures as text: formulas with their numbers, sources, assumptions and the strongest lever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from capacity_tui.engine.choose.answers import Explained
from capacity_tui.engine.choose.whatif.lever import Lever
from capacity_tui.engine.estimate.equation import Derivation, Input
from capacity_tui.engine.estimate.figures import interval_text
from capacity_tui.engine.explain.explain import Explanation
from capacity_tui.engine.explain.terms import Sum
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.units import format_percent, format_quantity

_MOST_TERMS = 12
_MOST_NUMBERS = 6
_MOST_STEPS = 10
_EXPLAINED_TERMS = 2
"""Of the largest terms so many show the formula behind them."""


@dataclass(frozen=True, slots=True)
class FormulaInput:
    """One number that went into a formula, and where it came from."""

    name: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class FormulaStep:
    """One formula on the way to a number, with the numbers put in."""

    formula: str
    result: str
    inputs: tuple[FormulaInput, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplanationText:
    """Where one number comes from.

    Attributes:
        key: what was asked for.
        title: what the number is called.
        formula: how it is computed.
        result: the number as shown.
        inputs: what was put into the formula.
        sources: where formulas, constants and interval come from.
        assumptions: what was not given.
        interval: the range of the number.
        lever: what would improve it most.
        remarks: what no formula says.
        steps: the formulas that its inputs come from.
    """

    key: str
    title: str
    formula: str
    result: str = ""
    inputs: tuple[FormulaInput, ...] = ()
    sources: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    interval: str = ""
    lever: str = ""
    remarks: tuple[str, ...] = ()
    steps: tuple[FormulaStep, ...] = ()


def explanation_text(explained: Explained, mode: str = "") -> ExplanationText:
    """Return an explanation of a figure as text.

    Args:
        explained: the explanation.
        mode: the mode whose figure it is, for the title.
    """
    found = explained.explanation
    main, *others = _steps(found) or [FormulaStep("", "")]
    return ExplanationText(
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


def _steps(found: Explanation) -> list[FormulaStep]:
    """Return the formulas behind a figure, its own first, then those that the numbers put in come from."""
    summed = [] if found.sum is None else [_sum(found.sum)]
    derived = [step for root in found.derivations for step in _opened(root)]
    opened = [step for root, name in _largest(found).items() for step in _opened(root, f"{name}: ")]
    is_sum = found.sum is not None and not found.sum.name
    ordered = [*summed, *derived, *opened] if is_sum else [*derived, *summed, *opened]
    return list(dict.fromkeys(ordered))


def _largest(found: Explanation) -> dict[Derivation, str]:
    """Return the equations behind the largest terms, each with the name of its term."""
    largest = found.terms[:_EXPLAINED_TERMS]
    return {term.derivation: term.name for term in largest if term.derivation is not None}


def _opened(root: Derivation, title: str = "") -> Iterator[FormulaStep]:
    """Yield an equation, then those that the numbers put into it come from."""
    inputs = tuple(_input(entry) for entry in root.inputs)
    yield FormulaStep(title + root.formula, format_quantity(mean(root.result), root.unit), inputs)
    for entry in root.inputs:
        if entry.derivation is not None:
            yield from _opened(entry.derivation)


def _input(entry: Input) -> FormulaInput:
    source = f"{entry.meaning} ({entry.told})" if entry.told else entry.meaning
    return FormulaInput(entry.name, _value(entry.value, entry.unit), source)


def _value(value: object, unit: str) -> str:
    """Return what was put into a formula: a number, a few of many, or words."""
    if isinstance(value, int | float):
        return format_quantity(float(value), unit)
    if isinstance(value, np.ndarray):
        numbers = [format_quantity(float(number), unit) for number in value.flat[:_MOST_NUMBERS]]
        more = value.size - len(numbers)
        return ", ".join([*numbers, f"and {more} more"] if more else numbers)
    return str(value)


def _sum(found: Sum) -> FormulaStep:
    """Return a sum as a step, its smallest terms together."""
    shown, rest = found.terms[:_MOST_TERMS], found.terms[_MOST_TERMS:]
    inputs = [FormulaInput(term.name, format_quantity(term.value, found.unit), term.detail) for term in shown]
    if rest:
        others = format_quantity(sum(term.value for term in rest), found.unit)
        inputs.append(FormulaInput(f"and {len(rest)} more", others))
    total = format_quantity(sum(term.value for term in found.terms), found.unit)
    formula = f"{found.name} = the sum of its parts" if found.name else "the sum of its parts"
    return FormulaStep(formula, total, tuple(inputs))


def _sources(found: Explanation) -> tuple[str, ...]:
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
