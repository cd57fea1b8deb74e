"""Which size for a budget: each model gets as many tokens as the limits pay for, and the least expected loss wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from capacity_tui.engine.catalog import Catalog
from capacity_tui.engine.choose.candidates.candidate import Candidate
from capacity_tui.engine.choose.candidates.reached import CheckedConstraint
from capacity_tui.engine.choose.need.bounds import NAME, PARAMETERS, TIME, USD
from capacity_tui.engine.choose.need.names import Choice
from capacity_tui.engine.choose.need.trials import Evaluator
from capacity_tui.engine.choose.search.question import Goal, Limit
from capacity_tui.engine.estimate import LOSS, learned
from capacity_tui.engine.keys import Figure, Key
from capacity_tui.engine.plan import AUTO, Plan

GROWING = (TIME, USD, Figure.COST_USD_SPOT, Figure.ENERGY_KWH, Figure.ENERGY_USD)
"""Figures of a job that grow in step with its tokens."""
# What is left of a limit where a last, partly filled step breaks it.
_LESS = 0.995


def is_budget(path: str, plan: Plan, goal: Goal, limits: Iterable[Limit]) -> bool:
    """Whether a question is which size a budget is for: the tokens are open, and the loss decides."""
    named = path in (NAME, PARAMETERS) and goal.figure == LOSS
    return named and plan.training.tokens == AUTO and any(map(_pays, limits))


def affordable_choices(choices: Iterable[Choice], limits: Iterable[Limit], catalog: Catalog) -> Iterator[Choice]:
    """Yield the models that a scaling law is of, with the loss that the limits pay for at best.

    Args:
        choices: models, with the time and cost of their usual tokens at best.
    """
    paying = [limit for limit in limits if _pays(limit)]
    law = next(iter(catalog.scaling_laws.values()))
    usual = catalog.modes["balanced"].tokens_per_parameter
    for choice in choices:
        row = catalog.architectures.find(str(choice.change[NAME]))
        if row.kind != "decoder" or row.experts:
            continue
        shares = [(limit.most or 0.0) / choice.best[limit.figure] for limit in paying if limit.figure in choice.best]
        best = {key: value for key, value in choice.best.items() if key not in GROWING}
        size = choice.best.get(PARAMETERS, 0.0)
        if shares and size:
            best[LOSS] = float(learned(law, size, usual * size * min(shares))[LOSS])
        yield replace(choice, best=best)


def with_paid_tokens(choice: Choice, trials: Evaluator) -> Candidate:
    """Return a model with as many tokens as the limits pay for."""
    tried = trials.evaluate(choice.change)
    for kept in (1.0, _LESS):
        shares = [
            constraint.most / constraint.bound_value
            for constraint in tried.constraints
            if _grows(constraint) and constraint.bound_value and constraint.most
        ]
        if tried.filled is None or not shares:
            return tried
        tokens = kept * min(shares) * float(tried.filled.plan.training.tokens or 0)
        change = {**choice.change, Key.TRAINING_TOKENS: _floor(tokens)}
        tried = trials.evaluate(change)
        if tried.holds:
            break
    return tried


def budget_of(candidate: Candidate) -> str:
    """Return the result key of the limit that ends the tokens of an answer."""
    paid = [constraint for constraint in candidate.constraints if _grows(constraint)]
    return max(paid, key=lambda constraint: constraint.violation).key if paid else ""


def _grows(constraint: CheckedConstraint) -> bool:
    return constraint.surely and constraint.most is not None and constraint.key in GROWING


def _pays(limit: Limit) -> bool:
    return limit.most is not None and limit.figure in GROWING


def _floor(tokens: float) -> float:
    """Return a number of tokens cut to three digits."""
    power = 10.0 ** (len(f"{tokens:.0f}") - 3)
    return max(1.0, float(tokens // power) * power)
