"""Which law the measurements speak for, which further size would decide it, and what jobs of other sizes take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from capacity_tui.engine.estimate import equation, formula
from capacity_tui.engine.growth.laws import (
    CONSTANT,
    LAWS,
    POWER,
    FittedLaw,
    Floats,
    MeasuredSizes,
    chosen_number,
    fit_law,
    measured_sizes,
)
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.record import dataclass

_LEAST_SIZES = 3  # With fewer, every law of two coefficients meets all of them
_LARGER = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4)
"""Times the largest size, at which a further measurement may be taken."""


@equation
def information_criterion(misfit: Number, freedom: Number, sizes: Number, fitted: Number) -> Number:
    """Criterion by which laws are compared, up to a constant: less is better, and every number fitted is charged."""
    return (freedom + sizes) * np.log1p(misfit / freedom) + 2.0 * fitted


# What few measurements add to the criterion: they meet a law of many numbers by chance.
small_sample_charge = formula()
relative_likelihood = formula()  # How likely a law is beside the best


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A fitted law with how it compares."""

    fitted: FittedLaw  # the law
    score: float  # its criterion; less is better
    weight: float  # how likely it is among all laws
    # likewise before few measurements are charged for: jobs of other sizes may go by a law that these cannot show
    possible: float


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What measured sizes say about the law of growth."""

    measured: MeasuredSizes  # what it rests on, with variances as the misfit of the best law widens them
    laws: tuple[Judged, ...]  # all of them, the likeliest first
    chosen: Judged | None  # the likeliest of those that are needed; None where there are too few sizes to tell
    decided: bool  # whether the measurements exclude the others
    reason: str  # why, or why not
    next_size: float | None  # a further size that would decide, or decide more; None where none would

    @property
    def plausible(self) -> tuple[Judged, ...]:
        """The laws by which jobs of other sizes may go: of a constant that is decided, no other."""
        if self.chosen is not None and self.decided and self.chosen.fitted.law is CONSTANT:
            return (self.chosen,)
        return self.laws


def choose_law(measured: MeasuredSizes) -> Choice:
    """Return which law measured sizes speak for."""
    count = len(measured.sizes)
    if count < _LEAST_SIZES:
        reason = (
            f"{count} {'sizes are' if count > 1 else 'size is'} too few: any law meets {'them' if count > 1 else 'it'}"
        )
        return Choice(measured, (), None, False, reason, _widened(measured))
    fitted = [fit_law(law, measured) for law in LAWS]
    judged_by = _with_misfit(measured, fitted)
    factor = float(judged_by.variances[0] / measured.variances[0])
    fitted = [replace(fit, misfit=fit.misfit / factor) for fit in fitted]
    numbers = np.array([fit.law.coefficients + 1.0 for fit in fitted])
    misfits = np.array([fit.misfit for fit in fitted])
    plain = np.asarray(information_criterion(misfits, judged_by.freedom, float(count), numbers))
    scores = plain + np.asarray(small_sample_charge(numbers, float(measured.measurements)))
    columns = (fitted, scores.tolist(), _weights(scores), _weights(plain))
    laws = [Judged(*row) for row in zip(*columns, strict=True)]
    return _decided(judged_by, tuple(sorted(laws, key=lambda law: law.score)))


def _with_misfit(measured: MeasuredSizes, fitted: Sequence[FittedLaw]) -> MeasuredSizes:
    """Return the sizes with variances that explain what the best law leaves, where repeats explain less."""
    count = len(measured.sizes)
    # Without repeats a law that has but one size to spare would say by itself how well it has to be met.
    least = 1 if measured.freedom or count == _LEAST_SIZES else 2
    free = {fit.law: count - fit.law.coefficients for fit in fitted}
    candidates = [fit for fit in fitted if free[fit.law] >= least]
    best = min(candidates, key=lambda fit: fit.misfit / free[fit.law])
    factor = best.misfit / free[best.law]
    if factor <= 1 and measured.freedom:
        return measured
    return replace(measured, variances=measured.variances * max(1.0, factor), freedom=float(free[best.law]))


def _weights(scores: Floats) -> list[float]:
    """Return how likely each law is among all of them."""
    likely = np.asarray(relative_likelihood(scores - scores.min()))
    return [float(weight) for weight in likely / likely.sum()]


def _decided(measured: MeasuredSizes, laws: tuple[Judged, ...]) -> Choice:
    """Return the choice with whether it is decided, why, and what would decide it."""
    chosen = _chosen(laws)
    rivals = tuple(_rivals(measured, laws, chosen))
    missing = " and ".join(_missing(measured, chosen))
    if rivals:
        names = " and ".join(rival.fitted.law.name for rival in rivals)
        reason = f"{names} {'meets' if len(rivals) == 1 else 'meet'} the measurements nearly as well"
        return Choice(measured, laws, chosen, False, reason, _deciding_size(measured, chosen, rivals))
    if missing:
        return Choice(measured, laws, chosen, False, missing, _widened(measured))
    reason = "no other law meets the measurements nearly as well"
    return Choice(measured, laws, chosen, True, reason, None)


def _missing(measured: MeasuredSizes, chosen: Judged) -> Iterator[str]:
    """Yield what a decision lacks besides that no other law may be as likely."""
    count, least = len(measured.sizes), int(chosen_number("deciding_sizes"))
    span = float(measured.sizes[-1] / measured.sizes[0])
    wanted = chosen_number("constant_span" if chosen.fitted.law is CONSTANT else "deciding_span")
    if count < least:
        yield f"{count} sizes are too few, {least} at least"
    if span < wanted:
        hidden = ": what is steep may hide below the start" if chosen.fitted.law is CONSTANT else ""
        yield f"the largest size is only {span:.3g} times the smallest, {wanted:g} times at least{hidden}"
    if measured.measurements - chosen.fitted.law.coefficients <= 2:
        yield f"{measured.measurements} measurements are too few: measure each size again"


def _chosen(laws: tuple[Judged, ...]) -> Judged:
    """Return the likeliest law; the power law, which holds every other within it, only where it excludes them."""
    first, *others = laws
    named = next(law for law in others if law.fitted.law is not POWER)
    is_needed = named.score - first.score >= chosen_number("deciding_difference")
    return first if first.fitted.law is not POWER or is_needed else named


def _rivals(measured: MeasuredSizes, laws: tuple[Judged, ...], chosen: Judged) -> Iterator[Judged]:
    """Yield the laws that the measurements do not exclude.

    The power law is one only where it is clearly better than the law it holds. Every law holds the constant: how much
    could grow unseen is what tells.
    """
    far = chosen_number("deciding_difference")
    for law in laws:
        if law is chosen:
            continue
        if law.fitted.law is POWER:
            is_rival = chosen.score - law.score > chosen_number("equal_difference")
        elif chosen.fitted.law is CONSTANT:
            is_rival = _unseen_growth(law.fitted, measured) > chosen_number("constant_within")
        else:
            is_rival = law.score - chosen.score < far
        if is_rival:
            yield law


def _unseen_growth(fitted: FittedLaw, measured: MeasuredSizes) -> float:
    """Return by how much more the largest run may take than the smallest, at the far end of what is likely."""
    ends = measured.sizes[[0, -1]]
    low, high = np.log(fitted.at(ends))
    spread = np.sqrt(measured.variances[[0, -1]].sum())
    return float(np.expm1(high - low + spread))


def _widened(measured: MeasuredSizes) -> float:
    """Return a size beyond the largest that goes on with the sizes as they are spaced."""
    ratio = float(measured.sizes[-1] / measured.sizes[-2]) if len(measured.sizes) > 1 else 10.0
    return _round(float(measured.sizes[-1]) * max(ratio, 2.0))


def _deciding_size(measured: MeasuredSizes, chosen: Judged, rivals: Sequence[Judged]) -> float | None:
    """Return the smallest larger size whose measurement would exclude the rivals if the choice is right."""
    sizes: Floats = measured.sizes[-1] * np.array(_LARGER)
    new = float(np.mean(measured.variances))
    excluded = np.ones(len(sizes), dtype=np.bool_)
    own = chosen.fitted.variances(measured, sizes, bent=False)
    for rival in rivals:
        apart = np.log(rival.fitted.at(sizes)) - np.log(chosen.fitted.at(sizes))
        unsure = new + own + rival.fitted.variances(measured, sizes, bent=False)
        gained = (measured.freedom + len(measured.sizes) + 1) * np.log1p(apart**2 / unsure / (measured.freedom + 1))
        excluded &= rival.score - chosen.score + gained >= chosen_number("deciding_difference")
    return _round(float(sizes[np.argmax(excluded)])) if excluded.any() else None


def _round(size: float) -> float:
    """Return a size that people would ask for."""
    return float(f"{size:.2g}")


LOW, HIGH = 0.1, 0.9  # Ends of a range, as of every range of an estimate
_HALVINGS = 60
_LEAST_FREEDOM = 3.0
_FAR = 40.0


@dataclass(frozen=True, slots=True)
class Extrapolated:
    """What a job of some size takes: by the chosen law, and the ends of its range."""

    n: float
    value: float
    low: float
    high: float


def extrapolate(choice: Choice, sizes: Sequence[float]) -> tuple[Extrapolated, ...]:
    """Return what jobs of some sizes take; nothing where no law was chosen.

    The range is that of all laws that are not excluded, each as likely as its weight: how sure its numbers are, how
    much growth may differ from it beyond the measured sizes, and the noise of one more run.
    """
    if choice.chosen is None or not sizes:
        return ()
    wanted = np.array(sizes, dtype=np.float64)
    measured = choice.measured
    freedom = max(measured.freedom, _LEAST_FREEDOM)
    noise = measured.noise**2
    laws = choice.plausible
    middles = np.stack([np.log(law.fitted.at(wanted)) for law in laws])
    spreads = np.stack(
        [np.sqrt((law.fitted.variances(measured, wanted) + noise) * freedom / (freedom - 2.0)) for law in laws]
    )
    weights = np.array([law.possible for law in laws]) / sum(law.possible for law in laws)
    values = choice.chosen.fitted.at(wanted)
    low = np.minimum(np.exp(_quantile(LOW, middles, spreads, weights)), values)
    high = np.maximum(np.exp(_quantile(HIGH, middles, spreads, weights)), values)
    return tuple(Extrapolated(*map(float, row)) for row in zip(wanted, values, low, high, strict=True))


def _quantile(share: float, middles: Floats, spreads: Floats, weights: Floats) -> Floats:
    """Return the quantiles of mixtures of normal distributions, a column each."""
    below = np.min(middles - _FAR * spreads, axis=0)
    above = np.max(middles + _FAR * spreads, axis=0)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2.0
        less = np.sum(weights[:, None] * _normal((middle - middles) / spreads), axis=0) < share
        below, above = np.where(less, middle, below), np.where(less, above, middle)
    return np.asarray((below + above) / 2.0)


def _normal(deviations: Floats) -> Floats:
    """Return the share of a normal distribution below some deviations."""
    cdf = NormalDist().cdf
    shares: Floats = np.array([cdf(deviation) for deviation in deviations.ravel()]).reshape(deviations.shape)
    return shares


Points = Sequence[tuple[float, float]]
FIGURES = {"seconds": "s", "peak_memory_bytes": "B", "disk_bytes": "B", "cpu_seconds": "s"}
"""What is measured of a job, with the unit of each; time is what is asked about first."""

TARGETS = (1e8, 1e9)  # Sizes that are looked ahead to where nobody names any


@dataclass(frozen=True, slots=True, eq=False)
class GrowthFit:
    """How one figure grows."""

    figure: str  # its key
    unit: str  # of it, empty where that is not known
    points: tuple[tuple[float, float], ...]  # size and value of each measurement
    choice: Choice  # the laws and what is decided
    extrapolated: tuple[Extrapolated, ...]  # what jobs of other sizes take


def fit_growth(figure: str, points: Points, targets: Sequence[float] = TARGETS) -> GrowthFit:
    """Return how one figure measured at some sizes grows, and what it is at others; CapacityError without points."""
    choice = choose_law(measured_sizes(points))
    return GrowthFit(figure, FIGURES.get(figure, ""), tuple(points), choice, extrapolate(choice, targets))


def fit_all(figures: Mapping[str, Points], targets: Sequence[float] = TARGETS) -> tuple[GrowthFit, ...]:
    """Return how each figure grows, in the order given."""
    return tuple(fit_growth(figure, points, targets) for figure, points in figures.items())
