"""One answer: the figures of a plan are the same to the last digit, wherever they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drawn_plans import random_plan
from plan_doors import DOORS, Case

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError

# benchmarks/doors.py goes on where these end.
SEEDS = (*range(15), 22)  # the last is of a job that others can be recommended for
# Doors behind which plans are searched for, which every third plan is taken through.
SLOW = frozenset({"python", "file", "settings", "line", "need", "advice"})
THIRD = 3


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Case]:
    """Return the plans that can be estimated, by their seeds."""
    return dict(_cases(tmp_path_factory.mktemp("doors")))


def _cases(folder: Path) -> Iterator[tuple[int, Case]]:
    catalog = load_catalog()
    for seed in SEEDS:
        try:
            yield seed, Case.of(random_plan(seed, catalog), catalog, folder)
        except CapacityError:
            continue


@pytest.mark.parametrize("door", DOORS)
def test_the_answer_is_the_same_through_every_door(cases: dict[int, Case], door: str) -> None:
    asked = {seed: case for seed, case in cases.items() if door not in SLOW or seed % THIRD == 0}
    before = sum(case.held[0] for case in cases.values())
    assert [f"seed {seed}: {line}" for seed, case in asked.items() for line in DOORS[door](case)] == []
    assert sum(case.held[0] for case in cases.values()) > before


def test_a_door_that_tells_another_figure_is_noticed(cases: dict[int, Case]) -> None:
    case = next(iter(cases.values()))
    key = "computation.step_seconds"
    told = {**case.figures, key: case.figures[key].scaled(1.0 + 1e-15)}
    assert [line.partition(" ")[0] for line in case.differences(told, case.figures)] == [key]
