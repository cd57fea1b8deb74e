"""Explanations of figures as text: formulas with their numbers, sources, assumptions and the strongest lever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from capacity_tui.engine.catalog import nearest
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import Derivation, Input, interval_text
from capacity_tui.engine.explain import Explanation, Sum, Term
from capacity_tui.engine.machine import Machine
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.present.parts import Part, Section, SectionsPart, TextPart
from capacity_tui.engine.present.results import picked
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.solve import Explained, Lever, change_text, explain
from capacity_tui.engine.units import format_percent, format_quantity

if TYPE_CHECKING:
    from capacity_tui.engine.present.pictures.charts import Picture

BETWEEN = "/"  # What stands between a result key and the names of inputs to follow
_MOST_TERMS = 12
_MOST_NUMBERS = 6
_MOST_STEPS = 10
_EXPLAINED_TERMS = 2  # Of the largest terms so many show the formula behind them
_TEXT_KEYS = ("key", "title", "formula", "result", "interval", "lever")


@dataclass(frozen=True, slots=True)
class FormulaInput:
    """One number that went into a formula, and where it came from."""

    name: str  # its symbol, or what it is called
    text: str  # its value with its unit
    source: str = ""  # what it is, and how it is known
    # the formula it comes from; None where it was given, or is a figure
    step: FormulaStep | None = field(default=None, compare=False, repr=False)
    key: str = ""  # result key of the figure it is, which has an explanation of its own; empty for others


@dataclass(frozen=True, slots=True)
class FormulaStep:
    """One formula on the way to a number, with the numbers put in."""

    formula: str  # the formula, by the names of what is put in
    result: str  # what came out, with its unit
    inputs: tuple[FormulaInput, ...] = ()  # what was put in
    source: str = ""  # where the formula comes from


@dataclass(frozen=True, slots=True)
class ExplanationText:
    """Where one number comes from."""

    key: str  # what was asked for
    title: str  # what the number is called
    formula: str  # how it is computed
    result: str = ""  # the number as shown
    inputs: tuple[FormulaInput, ...] = ()  # what was put into the formula
    sources: tuple[str, ...] = ()  # where formulas, constants and interval come from
    assumptions: tuple[str, ...] = ()  # what was not given
    interval: str = ""  # the range of the number
    lever: str = ""  # what would improve it most
    remarks: tuple[str, ...] = ()  # what no formula says
    steps: tuple[FormulaStep, ...] = ()  # the formulas that its inputs come from
    picture: Picture | None = None  # what it is a part of, as something to draw


def explanation_text(explained: Explained, mode: str = "") -> ExplanationText:
    """Return an explanation of a figure as text; the title names the mode whose figure it is."""
    explanation = explained.explanation
    main, *others = _steps(explanation) or [FormulaStep("", "")]
    return ExplanationText(
        key=explanation.key,
        title=f"{explanation.figure.title} ({mode})" if mode else explanation.figure.title,
        formula=main.formula,
        result=explanation.figure.text,
        inputs=main.inputs,
        sources=_sources(explanation),
        assumptions=explanation.assumed,
        interval=interval_text(explanation.figure.value),
        lever=_lever(explained.lever),
        remarks=explanation.remarks,
        steps=tuple(others[:_MOST_STEPS]),
    )


def explanation_parts(shown: ExplanationText) -> Iterator[Part]:
    """Yield why a figure is what it is: its parts, formulas with their numbers, sources, strongest lever."""
    yield TextPart(f"{shown.result} ({shown.interval})" if shown.interval else shown.result, "strong", shown.title)
    yield from (TextPart(remark) for remark in shown.remarks)
    for step in (FormulaStep(shown.formula, shown.result, shown.inputs), *shown.steps):
        if step.formula:
            yield TextPart(f"{step.formula} = {step.result}", "strong")
            rows = tuple((f"  {entry.name}", entry.text, entry.source) for entry in step.inputs)
            yield SectionsPart(("value", "what it is"), (Section("", rows),), has_aside=True)
    if shown.lever:
        yield TextPart(f"Strongest lever: {shown.lever}")
    yield from (TextPart(f"Assumed: {assumption}", "quiet") for assumption in shown.assumptions)
    yield from (TextPart(f"Source: {source}", "quiet") for source in shown.sources)


def explanation_as_dict(shown: ExplanationText) -> dict[str, object]:
    """Return an explanation as plain data; what gives a number that was put in is named by it among the steps."""

    def put_in(entries: Iterable[FormulaInput]) -> list[dict[str, object]]:
        return [picked(entry, "name", "text", "source", "key") for entry in entries]

    steps = [
        {"formula": step.formula, "result": step.result, "inputs": put_in(step.inputs), "source": step.source}
        for step in shown.steps
    ]
    return (
        picked(shown, *_TEXT_KEYS)
        | {"inputs": put_in(shown.inputs), "steps": steps}
        | {name: list(getattr(shown, name)) for name in ("sources", "assumptions", "remarks")}
    )


def followed(shown: ExplanationText, entry: FormulaInput) -> ExplanationText:
    """Return where a number that was put into a formula comes from; a figure is explained by its own key instead."""
    step = entry.step or FormulaStep("", entry.text)
    given = () if entry.step else ("an input, not computed",)
    return ExplanationText(
        key=shown.key,
        title=entry.name,
        formula=step.formula,
        result=entry.text,
        inputs=step.inputs,
        sources=(step.source,) if step.source else (),
        remarks=tuple(text for text in (entry.source, *given) if text),
        steps=tuple(dict.fromkeys(_below(step)))[1 : _MOST_STEPS + 1],
    )


def explain_along(plan: Plan, path: str, machine: Machine | None = None) -> ExplanationText:
    """Explain a figure, or a number that was put into its formulas.

    Args:
        path: result key of the figure, and behind strokes the names of what to follow: ``cost.usd/step_seconds``.
        machine: what was detected, for plans that run on ``detected`` hardware.

    Raises:
        PlanError: no result has that key, or nothing of that name is put in.
    """
    key, *names = path.split(BETWEEN)
    shown = explanation_text(explain(plan, key, machine))
    for name in names:
        entry = _input_named(shown, name)
        shown = explanation_text(explain(plan, entry.key, machine)) if entry.key else followed(shown, entry)
    return shown


def _input_named(shown: ExplanationText, name: str) -> FormulaInput:
    """Return what was put into the formulas of an explanation under a name, the first that is."""
    entries = (*shown.inputs, *(entry for step in shown.steps for entry in step.inputs))
    known = {entry.name: entry for entry in reversed(entries)}
    if name not in known:
        names = nearest(name, known) or [entry.name for entry in shown.inputs]
        hint = f"known: {', '.join(names)}" if names else "it has no inputs"
        raise PlanError(f"nothing is called {name!r} in {shown.title}"[:200], hint=hint)
    return known[name]


def _steps(explanation: Explanation) -> list[FormulaStep]:
    """Return the formulas behind a figure, its own first, then those that the numbers put in come from."""
    summed = [] if explanation.sum is None else [_sum(explanation.sum)]
    derived = [step for root in explanation.derivations for step in _below(derived_step(root, explanation.sum))]
    opened = [
        step
        for root, name in _largest(explanation).items()
        for step in _below(replace(derived_step(root), formula=f"{name}: {root.formula}"))
    ]
    is_sum = explanation.sum is not None and not explanation.sum.name
    ordered = [*summed, *derived, *opened] if is_sum else [*derived, *summed, *opened]
    return list(dict.fromkeys(ordered))


def _largest(explanation: Explanation) -> dict[Derivation, str]:
    """Return the equations behind the largest terms, each with the name of its term."""
    largest = explanation.terms[:_EXPLAINED_TERMS]
    return {term.derivation: term.name for term in largest if term.derivation is not None}


def _below(step: FormulaStep) -> Iterator[FormulaStep]:
    """Yield a step, then those that the numbers put into it come from."""
    yield step
    for entry in step.inputs:
        if entry.step is not None:
            yield from _below(entry.step)


def derived_step(root: Derivation, total: Sum | None = None) -> FormulaStep:
    """Return an equation as it was evaluated as a step, with those that the numbers put in come from.

    Args:
        total: a sum; the symbol that stands for it is the figure which that sum is.
    """
    inputs = tuple(_input(entry, total) for entry in root.inputs)
    return FormulaStep(root.formula, format_quantity(mean(root.result), root.unit), inputs, root.source)


def _input(entry: Input, total: Sum | None) -> FormulaInput:
    source = f"{entry.meaning} ({entry.provenance})" if entry.provenance else entry.meaning
    step = None if entry.derivation is None else derived_step(entry.derivation, total)
    key = total.key if total is not None and entry.name == total.name and step is None else ""
    return FormulaInput(entry.name, _value(entry.value, entry.unit), source, step, key)


def _value(value: object, unit: str) -> str:
    """Return what was put into a formula: a number, a few of many, or words."""
    if isinstance(value, int | float):
        return format_quantity(float(value), unit)
    if isinstance(value, np.ndarray):
        numbers = [format_quantity(float(number), unit) for number in value.flat[:_MOST_NUMBERS]]
        more = value.size - len(numbers)
        return ", ".join([*numbers, f"and {more} more"] if more else numbers)
    return str(value)


def _sum(result: Sum) -> FormulaStep:
    shown, rest = result.terms[:_MOST_TERMS], result.terms[_MOST_TERMS:]
    inputs = [_term(term, result.unit) for term in shown]
    if rest:
        others = format_quantity(sum(term.value for term in rest), result.unit)
        inputs.append(FormulaInput(f"and {len(rest)} more", others))
    total = format_quantity(sum(term.value for term in result.terms), result.unit)
    formula = f"{result.name} = the sum of its parts" if result.name else "the sum of its parts"
    return FormulaStep(formula, total, tuple(inputs))


def _term(term: Term, unit: str) -> FormulaInput:
    derived = None if term.derivation is None else derived_step(term.derivation)
    step = derived if term.sum is None else _sum(term.sum)
    return FormulaInput(term.name, format_quantity(term.value, unit), term.detail, step, term.key)


def _sources(explanation: Explanation) -> tuple[str, ...]:
    interval = f"interval: {explanation.interval_basis}" if explanation.interval_basis else ""
    roots = (*explanation.derivations, *_largest(explanation))
    texts = (*_formula_sources(roots), interval, explanation.calibration)
    return tuple(dict.fromkeys(text for text in texts if text))


def _formula_sources(derivations: Iterable[Derivation]) -> Iterator[str]:
    for derivation in derivations:
        yield derivation.source
        yield from _formula_sources(entry.derivation for entry in derivation.inputs if entry.derivation is not None)


def _lever(lever: Lever | None) -> str:
    if lever is None:
        return ""
    sign = "+" if lever.change > 0 else ""
    also = f", with {change_text(lever.also)}" if lever.also else ""
    moved = f"{sign}{format_percent(lever.change)}"
    return f"{lever.label} {lever.before} → {lever.after} ({lever.field}{also}): {moved}"
