"""What learning from own runs does, on published ones: each device of each publisher as if it were one's own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.catalog.rows import Reliability
from capacity_tui.engine.estimate import resolve_plan, run_like, unsure_of, user_runs_of
from capacity_tui.engine.machine import MeasuredRun
from capacity_tui.engine.runs.accuracy.out_of_sample import unseen_predictions
from capacity_tui.engine.runs.accuracy.predictions import answered, figure_name, sign_of
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements
from capacity_tui.engine.uncertainty import RunFeatures, UserRuns, range_from

FEWEST, DRAWS, MOST = 7, 6, 12


class Published(NamedTuple):
    """A run: what it is like, how far it was from its estimate, and how unsure that was."""

    like: RunFeatures
    error: float
    unsure: Mapping[str, Mapping[str, float]]
    row: Reliability

    @property
    def as_own(self) -> MeasuredRun:
        numbers = {name: float(number) for name, number in self.like.numbers.items()}
        return MeasuredRun("", self.like.words, numbers, speed=math.exp(-self.error), unsure=self.unsure)


@pytest.fixture(scope="module")
def machines() -> list[list[Published]]:
    """Runs by publisher and device, every other one, as constants without their publisher's runs predict them."""
    catalog, found = load_catalog(), defaultdict[tuple[str, str], list[Published]](list)
    unseen = unseen_predictions("train_time")
    for measurement in scored_measurements("train_time")[::2]:
        answer = answered(measurement, catalog)
        resolved = resolve_plan(answer.plan, catalog)
        like = run_like(resolved.plan, resolved.family, resolved.shape, resolved.cluster.device, catalog)
        estimate, sign = answer.estimate, sign_of(measurement.quantity)
        error = sign * math.log(measurement.value / unseen[measurement.id]["publishers"].value)
        row = estimate.work.evidence.rows[figure_name(estimate, measurement.quantity)]
        key = measurement.source_key, resolved.cluster.device.name
        found[key].append(Published(like, error, unsure_of(estimate), row))
    return [runs for runs in found.values() if len(runs) >= FEWEST]


def judged(own: UserRuns | None, runs: Sequence[Published]) -> list[tuple[float, bool]]:
    """Return how far off each run is, and whether it lies in its range."""
    found = []
    for run in runs:
        left, variance = run.error, sum(deviation**2 for deviation in run.unsure["step"].values())
        if own is not None:
            spread = own.time_spread(run.like.words, run.like.numbers)
            assert spread is not None
            left += math.log(own.speed(run.like.words, run.like.numbers))
            variance = float(spread.variance(run.unsure["step"]))
        deviation = math.sqrt(variance)
        ratios = range_from(deviation, run.row, "train")
        found.append((abs(left), math.log(ratios.low) <= left <= math.log(ratios.high)))
    return found


@pytest.mark.parametrize("count", [1, 3, 6])
def test_after_learning_others_are_met_more_closely_and_as_often(machines: list[list[Published]], count: int) -> None:
    random, catalog = np.random.default_rng(count), load_catalog()
    likeness = user_runs_of((), catalog).likeness
    before, after = [], []
    for runs in machines:
        for _ in range(DRAWS):
            order = random.permutation(len(runs))
            own = UserRuns([runs[place].as_own for place in order[:count]], likeness)
            others = [runs[place] for place in order[count : count + MOST]]
            before.append(judged(None, others))
            after.append(judged(own, others))

    def mean_of(draws: list[list[tuple[float, bool]]]) -> tuple[float, float]:
        errors = [np.median([error for error, _ in draw]) for draw in draws]
        return float(np.mean(errors)), float(np.mean([np.mean([held for _, held in draw]) for draw in draws]))

    (error_before, held_before), (error_after, held_after) = mean_of(before), mean_of(after)
    assert error_after < error_before
    assert held_after >= held_before - 0.01
