"""Fit the constants of the physics to published runs, and judge the fit on publishers it has not seen.

The constants that may move are declared in ``profiles/fitting.yaml``: each with the value that operator timings
give it and how far it may stray from it. Residuals are logarithms of predicted over measured; every publisher
counts at most once however many rows it has, and outliers weigh less (Cauchy).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity_tui.engine.accuracy.cases import CalibrationRun
from capacity_tui.engine.accuracy.constants import Constant
from capacity_tui.engine.catalog import Catalog

if TYPE_CHECKING:
    from capacity_tui.engine.catalog.rows.base import Row
    from capacity_tui.engine.catalog.table import Table

Floats = NDArray[np.float64]
Predict = Callable[[CalibrationRun, Catalog], float]

# A residual of this size weighs half as much as a small one.
RESIDUAL_SCALE = 0.10
# Independent observations that one publisher's rows are worth, and the rows at which half of that is reached.
WORTH, HALF_WORTH = 12.0, 4.0
STEP, LARGEST_MOVE = 0.02, 0.25
TABLES = {"efficiency": "efficiencies", "frameworks": "frameworks"}


def to_theta(constant: Constant, value: float) -> float:
    """Return how far a value is from the prior, as a logarithm (of what is left to 1, for shares hidden)."""
    if constant.hidden:
        return float(np.log((1.0 - value) / (1.0 - constant.prior)))
    return float(np.log(value / constant.prior))


def from_theta(constant: Constant, theta: float) -> float:
    """Return the value at a distance from the prior, inside its limits."""
    moved = float(np.exp(theta))
    value = 1.0 - (1.0 - constant.prior) * moved if constant.hidden else constant.prior * moved
    return float(np.clip(value, constant.low, constant.high))


def current_value(constant: Constant, catalog: Catalog) -> float:
    """Return what the catalogue holds for a constant (in its first row)."""
    row = getattr(catalog, TABLES[constant.table])[constant.rows[0]]
    name, _, key = constant.field.partition(".")
    found = getattr(row, name)
    if isinstance(found, tuple):
        return float(found[int(key)])
    return float(found[key] if key else found)


def overlaid(catalog: Catalog, values: Mapping[Constant, float]) -> Catalog:
    """Return the catalogue with other values for some constants."""
    changed = copy.copy(catalog)
    for table, attribute in TABLES.items():
        known: Table[Row] = getattr(catalog, attribute)
        rows: dict[str, Row] = {}
        for constant, value in values.items():
            for row_id in constant.rows if constant.table == table else ():
                rows[row_id] = _with_value(rows.get(row_id, known[row_id]), constant.field, value)
        changed.__dict__[attribute] = known.with_rows(rows)
    return changed


def _with_value(row: Row, field: str, value: float) -> Row:
    name, _, key = field.partition(".")
    found: object = value
    whole = getattr(row, name)
    if isinstance(whole, tuple):
        found = tuple(value if str(place) == key else old for place, old in enumerate(whole))
    elif key:
        found = {**whole, key: value}
    return row.model_copy(update={name: found})


@dataclass(frozen=True)
class Problem:
    """What is fitted.

    Attributes:
        cases: runs with what was measured.
        constants: what may move.
        predict: figure of a case with a catalogue, in the unit of its measurement.
        catalog: everything that does not move.
    """

    cases: Sequence[CalibrationRun]
    constants: Sequence[Constant]
    predict: Predict
    catalog: Catalog

    def residuals(self, theta: Floats, chosen: Sequence[int] | None = None) -> Floats:
        """Return ln(predicted / measured) of all cases, or of those chosen by index."""
        values = {c: from_theta(c, t) for c, t in zip(self.constants, theta, strict=True)}
        catalog = overlaid(self.catalog, values)
        cases = self.cases if chosen is None else [self.cases[index] for index in chosen]
        return np.array([np.log(self.predict(case, catalog) / case.measurement.value) for case in cases])

    def jacobian(self, theta: Floats, base: Floats) -> Floats:
        """Return the derivative of every residual by every constant, by differences."""
        found = np.zeros((len(self.cases), len(self.constants)))
        for column, constant in enumerate(self.constants):
            touched = [index for index, case in enumerate(self.cases) if case.touched_by(constant)]
            moved = theta.copy()
            moved[column] += STEP
            if touched:
                found[touched, column] = (self.residuals(moved, touched) - base[touched]) / STEP
        return found

    def start(self) -> Floats:
        """Return the values in the catalogue, as distances from the priors."""
        return np.array([to_theta(c, current_value(c, self.catalog)) for c in self.constants])

    def weights(self, left_out: str = "") -> Floats:
        """Return the weight of every case, so that each publisher counts at most once."""
        keys = [case.measurement.source_key for case in self.cases]
        count = {key: keys.count(key) for key in set(keys)}
        return np.array([0.0 if key == left_out else WORTH / (count[key] + HALF_WORTH) for key in keys])


def loss(residuals: Floats, theta: Floats, weights: Floats, spreads: Floats) -> float:
    """Return what the fit minimises: robust residuals, and distance from the priors."""
    rough = np.log1p((residuals / RESIDUAL_SCALE) ** 2)
    return float(np.sum(weights * rough) + np.sum((theta / spreads) ** 2))


def gauss_newton_move(residuals: Floats, jacobian: Floats, theta: Floats, weights: Floats, spreads: Floats) -> Floats:
    """Return the next move of the constants, with residuals reweighted by their size."""
    strength = weights / (RESIDUAL_SCALE**2 + residuals**2)
    curvature = jacobian.T @ (jacobian * strength[:, None]) + np.diag(1.0 / spreads**2)
    slope = jacobian.T @ (strength * residuals) + theta / spreads**2
    return np.clip(-np.linalg.solve(curvature, slope), -LARGEST_MOVE, LARGEST_MOVE)


@dataclass(frozen=True)
class Fit:
    """A fitted problem.

    Attributes:
        problem: what was fitted.
        theta: distances of the constants from their priors.
        residuals: of all cases, at the fit.
        unseen: of every case, with its publisher left out of the fit.
    """

    problem: Problem
    theta: Floats
    residuals: Floats
    unseen: Floats

    @property
    def values(self) -> dict[Constant, float]:
        """Fitted values."""
        return {c: from_theta(c, t) for c, t in zip(self.problem.constants, self.theta, strict=True)}


def fit(problem: Problem, iterations: int = 5) -> Fit:
    """Fit the constants, then once more without each publisher (from the same derivatives)."""
    spreads = np.array([constant.spread for constant in problem.constants])
    weights = problem.weights()
    theta = problem.start()
    residuals = problem.residuals(theta)
    jacobian = problem.jacobian(theta, residuals)
    for _ in range(iterations):
        move = gauss_newton_move(residuals, jacobian, theta, weights, spreads)
        theta, residuals, improved = _shorter(problem, theta, move, residuals, weights, spreads)
        if not improved:
            break
        jacobian = problem.jacobian(theta, residuals)
    unseen = _left_out(problem, theta, residuals, jacobian, spreads)
    return Fit(problem, theta, residuals, unseen)


def _shorter(
    problem: Problem, theta: Floats, move: Floats, residuals: Floats, weights: Floats, spreads: Floats
) -> tuple[Floats, Floats, bool]:
    """Take the move, halved until it improves the fit."""
    before = loss(residuals, theta, weights, spreads)
    for _ in range(4):
        tried = problem.residuals(theta + move)
        if loss(tried, theta + move, weights, spreads) < before - 1e-3:
            return theta + move, tried, True
        move = move / 2.0
    return theta, residuals, False


def _left_out(problem: Problem, theta: Floats, residuals: Floats, jacobian: Floats, spreads: Floats) -> Floats:
    """Return residuals of every case with constants fitted to the other publishers only."""
    keys = [case.measurement.source_key for case in problem.cases]
    unseen = residuals.copy()
    for key in dict.fromkeys(keys):
        weights = problem.weights(left_out=key)
        moved, linear = theta.copy(), residuals.copy()
        for _ in range(6):
            move = gauss_newton_move(linear, jacobian, moved, weights, spreads)
            moved = moved + move
            linear = linear + jacobian @ move
        own = [index for index, other in enumerate(keys) if other == key]
        unseen[own] = problem.residuals(moved, own)
    return unseen
