"""Whole commands: processor seconds from start to exit, as multiples of a bare Python that imports their libraries.

Run it with ``python benchmarks/headless.py``.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from figures import Figure, show

from capacity_tui.engine.plan.files import example_names

RUNS = 5
PLAN_RATIO, DETECT_RATIO, VERSION_RATIO, HISTORY_MS = 2.5, 2.0, 0.6, 3
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


def environment() -> dict[str, str]:
    """Return the variables of a user, whose modules are compiled once."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def seconds(arguments: list[str]) -> float:
    """Return the least processor time of a command, which other programs on the machine change little."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(arguments, check=True, capture_output=True, env=environment())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def added_by_history() -> float:
    """Return the median of the processor seconds that keeping an estimate takes of a plan, with what it loads."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**environment(), "CAPACITY_TUI_DATA": folder}
        variables.pop("CAPACITY_TUI_HISTORY", None)
        command = [sys.executable, "-c", TIMED, example_names()[0]]
        done = [subprocess.run(command, check=True, capture_output=True, env=variables) for _ in range(RUNS)]
    return statistics.median(float(each.stderr) for each in done)


def figures() -> Iterator[Figure]:
    """Yield what whole commands take, and what keeping an estimate adds."""
    program = [sys.executable, "-m", "capacity_tui.tui"]
    bare = seconds([sys.executable, "-c", "import numpy, pydantic, yaml, click, rich.table"])
    yield Figure("start of Python with the libraries a command needs, processor time", bare, "s")
    plans = [seconds([*program, "plan", name]) for name in example_names()]
    yield Figure("plan of an example, median over them", statistics.median(plans), "s")
    yield Figure("the same over the start with its libraries", statistics.median(plans) / bare, "", PLAN_RATIO)
    yield Figure("plan of an example, slowest, over the start", max(plans) / bare, "")
    detect = seconds([*program, "detect", "--profile-only"])
    yield Figure("detect --profile-only over the start", detect / bare, "", DETECT_RATIO)
    yield Figure("--version over the start", seconds([*program, "--version"]) / bare, "", VERSION_RATIO)
    yield Figure("keeping an estimate in the history, processor time", 1000 * added_by_history(), "ms", HISTORY_MS)


if __name__ == "__main__":
    show(figures())
