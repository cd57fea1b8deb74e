"""The ledger of first looks: what was predicted of published runs before anybody here had read them.

A row is written once, by the program as it stood before the source was added, and is never written again: refits,
new terms and new ranges leave it as it is. What it says of errors and ranges is therefore what an unseen run gets.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import median

import numpy as np

from capacity_tui.engine.record import dataclass

_FILE = "measurements/first_looks.csv"

_NEAREST_LIMIT = 1e-9
"""Share by which a figure may lie beyond a range that is kept in five digits."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """A published figure, and what was predicted of it before its source was read.

    Attributes:
        source: publisher.
        run: its row among the publisher's.
        kind: what was run, as ``load`` or ``qlora``.
        release: of the software, where the publisher gives it.
        quantity: the figure: ``step_seconds``, ``allocated_bytes`` ...
        measured: in the quantity's unit.
        predicted: in the same; None where the program said that the load cannot be served.
        low: lower end of the range.
        high: upper end.
        commit: of the program that predicted.
    """

    source: str
    run: str
    kind: str
    release: str
    quantity: str
    measured: float
    predicted: float | None
    low: float | None
    high: float | None
    commit: str

    @property
    def residual(self) -> float | None:
        """Natural logarithm of predicted over measured."""
        return None if self.predicted is None else math.log(self.predicted / self.measured)

    @property
    def is_inside(self) -> bool:
        """Whether the range holds what was measured."""
        if self.low is None or self.high is None:
            return False
        return self.low * (1 - _NEAREST_LIMIT) <= self.measured <= self.high * (1 + _NEAREST_LIMIT)


@dataclass(frozen=True, slots=True)
class FirstSight:
    """How near predictions of one figure came, on runs that nobody had seen.

    Attributes:
        quantity: the figure.
        kind: what was run.
        runs: how many.
        publishers: of how many.
        median_error: of the runs, relative.
        publisher_error: mean of the publishers' own medians.
        bias: median of predicted over measured, less one.
        inside: share of runs in their range.
        inside_by_publisher: mean of the publishers' shares.
        width: median of high over low.
        unserved: runs of which was said that they cannot be served.
    """

    quantity: str
    kind: str
    runs: int
    publishers: int
    median_error: float
    publisher_error: float
    bias: float
    inside: float
    inside_by_publisher: float
    width: float
    unserved: int


@cache
def first_looks() -> tuple[FirstLook, ...]:
    """Return the ledger."""
    text = (files("capacity_tui.profiles") / _FILE).read_text(encoding="utf-8")
    return tuple(_look(row) for row in csv.DictReader(text.splitlines()))


def first_sights(looks: Iterable[FirstLook]) -> tuple[FirstSight, ...]:
    """Return how near predictions came, by figure and by what was run."""
    groups: dict[tuple[str, str], list[FirstLook]] = {}
    for look in looks:
        groups.setdefault((look.quantity, look.kind), []).append(look)
    return tuple(_sight(quantity, kind, group) for (quantity, kind), group in sorted(groups.items()))


def predictive_factor(medians: Sequence[float], scatter: float) -> float:
    """Return the factor up and down within which eight in ten runs of a further publisher lie.

    A publisher's runs are off by an effect of its own and by their scatter; the effect of the next one is as uncertain
    as K publishers leave it: ``exp(t(K-1, 0.9) * sqrt((1 + 1/K) * tau^2 + s^2))``, Student's t as few are known.

    Args:
        medians: median residual of each publisher, natural logarithms.
        scatter: standard deviation of residuals around them.

    Raises:
        ValueError: fewer than two publishers.
    """
    count = len(medians)
    if count < 2:
        raise ValueError("a spread of publishers takes two")
    between = float(np.var(medians, ddof=1)) * (1 + 1 / count)
    return math.exp(_t_quantile(count - 1) * math.sqrt(between + scatter**2))


def _t_quantile(degrees: int) -> float:
    """Return the 90th percentile of Student's t (Abramowitz and Stegun 26.7.5, expansion around the normal's)."""
    z = 1.2815515655446004  # the normal's
    if degrees == 1:
        return math.tan(0.4 * math.pi)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))


def _sight(quantity: str, kind: str, looks: Sequence[FirstLook]) -> FirstSight:
    by_source: dict[str, list[FirstLook]] = {}
    for look in looks:
        by_source.setdefault(look.source, []).append(look)
    residuals = [look.residual for look in looks if look.residual is not None]
    errors = {source: [_error(look) for look in rows] for source, rows in by_source.items()}
    widths = [look.high / look.low for look in looks if look.high and look.low]
    return FirstSight(
        quantity,
        kind,
        len(looks),
        len(by_source),
        median(error for rows in errors.values() for error in rows),
        sum(map(median, errors.values())) / len(errors),
        math.expm1(median(residuals)) if residuals else math.nan,
        sum(look.is_inside for look in looks) / len(looks),
        sum(sum(look.is_inside for look in rows) / len(rows) for rows in by_source.values()) / len(by_source),
        median(widths) if widths else math.nan,
        sum(look.predicted is None for look in looks),
    )


def _error(look: FirstLook) -> float:
    return math.inf if look.residual is None else abs(math.expm1(look.residual))


def _look(row: Mapping[str, str]) -> FirstLook:
    predicted, low, high = (float(row[name]) if row[name] else None for name in ("predicted", "low", "high"))
    return FirstLook(
        source=row["source"],
        run=row["run"],
        kind=row["kind"],
        release=row["release"],
        quantity=row["quantity"],
        measured=float(row["measured"]),
        predicted=predicted,
        low=low,
        high=high,
        commit=row["commit"],
    )
