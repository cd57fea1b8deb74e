"""Random plans of all tasks are answered without a fault, and keep the laws that hold of every answer."""

from __future__ import annotations

from collections import Counter

import pytest
from drawn_plans import random_plan
from plan_laws import broken_laws, broken_round_trip
from plan_pairs import broken_pairs

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import fill

# Seeds of one case, and how many cases: benchmarks/random_plans.py goes on where these end.
EACH, CASES = 30, 10
ADVISED = 10
# Plans that broke a law once: no answer is generated, a batch in waves, prompts that all fit into one pass, stages that
# read side by side, prompts of one token that vary by hundreds, short prompts of answers of one length.
FOUND = (
    *(100035, 100043, 100468, 100586, 100640, 100866, 103231, 104368, 105441, 108746),
    *(300604, 311333, 311422, 313483, 315429),
)


@pytest.mark.parametrize("first", range(0, EACH * CASES, EACH))
def test_what_is_answered_keeps_every_law(first: int) -> None:
    catalog, counts, broken = load_catalog(), Counter[str](), []
    for seed in range(first, first + EACH):
        plan = random_plan(seed, catalog)
        try:
            if seed % ADVISED:
                filled = fill(plan, "balanced", None, catalog)
                settled, estimate = filled.resolved.plan, filled.annotated_estimate
            else:
                answered = answer(plan, None, catalog)
                settled, estimate = answered.plan, answered.estimate
        except CapacityError:
            continue
        counts["answered"] += 1
        broken += [f"seed {seed}: {law}" for law in broken_laws(settled, estimate)]
        if not seed % ADVISED:
            broken += [f"seed {seed}: {law}" for law in broken_round_trip(settled, estimate, catalog)]
    assert not broken
    assert counts["answered"] > EACH / 2


def test_more_work_never_takes_less() -> None:
    catalog, broken = load_catalog(), []
    for seed in (*range(3000, 3000 + EACH // 3), *FOUND):
        try:
            filled = fill(random_plan(seed, catalog), "balanced", None, catalog)
        except CapacityError:
            continue
        settled, estimate = filled.resolved.plan, filled.annotated_estimate
        broken += [f"seed {seed}: {law}" for law in broken_laws(settled, estimate)]
        broken += [f"seed {seed}: {law}" for law in broken_pairs(settled, estimate, catalog)]
    assert not broken
