"""Whole commands: seconds from start to exit, beside a bare Python that imports the libraries they need.

Run it with ``python benchmarks/headless.py``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from figures import Figure, show

from capacity_tui.engine.plan.files import example_names

RUNS = 5
PLAN_SECONDS, DETECT_SECONDS, HISTORY_MS = 0.40, 0.25, 3
# A plan as the command runs it; the clock goes only while the estimate is kept.
TIMED = """
import sys, time
from capacity_tui.tui.cli import main
from capacity_tui.tui.cli.plan import plan as plans

keep = plans.keep_estimates

def timed(*arguments):
    before = time.process_time()
    keep(*arguments)
    print(time.process_time() - before, file=sys.stderr)

plans.keep_estimates = timed
main(["plan", sys.argv[1]])
"""


def seconds(arguments: list[str]) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def added_by_history() -> float:
    """Return the median of the processor seconds that keeping an estimate takes of a plan, with what it loads."""
    environment = {name: value for name, value in os.environ.items() if name != "CAPACITY_TUI_HISTORY"}
    with tempfile.TemporaryDirectory() as folder:
        environment["CAPACITY_TUI_DATA"] = folder
        command = [sys.executable, "-c", TIMED, example_names()[0]]
        done = [subprocess.run(command, check=True, capture_output=True, env=environment) for _ in range(RUNS)]
    return statistics.median(float(each.stderr) for each in done)


def figures() -> Iterator[Figure]:
    """Yield the seconds of whole commands, and what keeping an estimate adds."""
    program = [sys.executable, "-m", "capacity_tui.tui"]
    bare = seconds([sys.executable, "-c", "import numpy, pydantic, yaml, click, rich.table"])
    yield Figure("start of Python with the libraries a command needs", bare, "s")
    plans = [seconds([*program, "plan", name]) for name in example_names()]
    yield Figure("plan of an example, median over them", statistics.median(plans), "s", PLAN_SECONDS)
    yield Figure("plan of an example, slowest", max(plans), "s")
    yield Figure("detect --profile-only", seconds([*program, "detect", "--profile-only"]), "s", DETECT_SECONDS)
    yield Figure("--version", seconds([*program, "--version"]), "s")
    yield Figure("keeping an estimate in the history, processor time", 1000 * added_by_history(), "ms", HISTORY_MS)


if __name__ == "__main__":
    show(figures())
