"""One answer through every door: the figures of random plans, wherever they are asked for, to the last digit.

``python benchmarks/doors.py 200`` draws so many plans (``--seed`` is the first), asks for their figures through the
Python interface, commands, the screen, searches, scaling, machines to move to and advice, and prints every difference.
``--door need`` asks through one door alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

os.environ["CAPACITY_TUI_HISTORY"] = "off"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from drawn_plans import random_plan
from plan_doors import DOORS, Case

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError

SHOWN = 4


def main() -> int:
    """Ask through all doors and print what differs; 1 where anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--door", choices=tuple(DOORS), action="append")
    given = parser.parse_args()
    catalog, asked, differ = load_catalog(), Counter[str](), Counter[str]()
    seconds, answers = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.count):
            try:
                case = Case.of(random_plan(seed, catalog), catalog, Path(folder))
            except CapacityError:
                continue
            for name in given.door or DOORS:
                began, held = time.perf_counter(), case.held[0]
                try:
                    found = list(DOORS[name](case))
                except (Exception, SystemExit) as error:  # whatever stops a door is a fault to print
                    place = traceback.extract_tb(error.__traceback__)[-1]
                    found = [f"{type(error).__name__}: {error} in {Path(place.filename).name}:{place.lineno}"]
                seconds[name] += time.perf_counter() - began
                asked[name] += case.held[0] > held
                answers[name] += case.held[0] - held
                differ[name] += bool(found)
                for line in found[:SHOWN]:
                    print(f"seed {seed}, {name}: {line}"[:600], flush=True)
    for name in given.door or DOORS:
        told = f"{asked[name]:4} plans, {answers[name]:5} answers, {differ[name]:4} plans differ"
        print(f"{name:10} {told}, {seconds[name]:6.1f} s")
    return 1 if sum(differ.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
