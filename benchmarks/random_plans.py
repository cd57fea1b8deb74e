"""Random plans of all tasks, and what does not hold of their answers: faults, figures without end, sums that are none.

``python benchmarks/random_plans.py 20000`` answers so many plans from the first seed on (``--seed``), and prints each
fault with its seed, and how many plans were answered a second. One plan again: ``--seed 1234 1``. With ``--pairs`` each
plan is also answered with twice of one thing (batch, sequence, replicas, prompt): more work must not take less.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from drawn_plans import random_plan
from plan_laws import broken_laws, broken_round_trip
from plan_pairs import broken_pairs

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import fill

ADVISED, WRITTEN = 10, 5  # Of so many plans one is answered with its advice, and one written and read again


def faults_of(seed: int, catalog: Catalog, counts: Counter[str], *, pairs: bool = False) -> Iterator[str]:
    """Yield what is wrong about the plan of a seed, a line each."""
    try:
        plan = random_plan(seed, catalog)
        counts[plan.task or ""] += 1
        try:
            if seed % ADVISED:
                filled = fill(plan, "balanced", None, catalog)
                settled, estimate = filled.resolved.plan, filled.annotated_estimate
            else:
                answered = answer(plan, None, catalog)
                settled, estimate = answered.plan, answered.estimate
        except CapacityError as error:
            counts["refused"] += 1
            counts[f"refused: {error}"[:90]] += 1
            return
        counts["answered"] += 1
        yield from broken_laws(settled, estimate)
        if pairs:
            yield from broken_pairs(settled, estimate, catalog)
        if not seed % WRITTEN:
            yield from broken_round_trip(settled, estimate, catalog)
    except Exception as error:  # any other error is a fault of the program, which is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        yield f"internal error: {type(error).__name__}: {error} in {Path(place.filename).name}:{place.lineno}"


def main() -> int:
    """Answer plans and print their faults; 1 where there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--refused", action="store_true", help="also why plans were refused")
    parser.add_argument("--pairs", action="store_true", help="also plans with twice of one thing")
    given = parser.parse_args()
    catalog, counts, faulty = load_catalog(), Counter[str](), 0
    began = time.perf_counter()
    for seed in range(given.seed, given.seed + given.count):
        faults = list(faults_of(seed, catalog, counts, pairs=given.pairs))
        faulty += bool(faults)
        for fault in faults:
            print(f"seed {seed}: {fault}", flush=True)
    seconds = time.perf_counter() - began
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()) if ":" not in name)
    print(f"seeds {given.seed} to {given.seed + given.count - 1}: {told}; {faulty:,} with faults")
    print(f"{seconds:,.0f} s, {given.count / seconds:.1f} plans a second")
    if given.refused:
        for name, count in counts.most_common():
            if ":" in name:
                print(f"{count:6,} {name}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
