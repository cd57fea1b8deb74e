"""Whole commands: seconds from start to exit, beside a bare Python that imports the libraries they need.

Run it with ``python benchmarks/headless.py``.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from figures import Figure, show

from capacity_tui.engine.plan.files.examples import example_names

RUNS = 5
PAIRS = 20
PLAN_SECONDS, DETECT_SECONDS, HISTORY_MS = 0.40, 0.25, 3


def seconds(arguments: list[str]) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def added_by_history() -> float:
    """Return the seconds of the processor that keeping an estimate adds to a plan.

    The mean over pairs of runs, since the kernel may count in ticks.
    """
    environment = {name: value for name, value in os.environ.items() if name != "CAPACITY_TUI_HISTORY"}
    command = [sys.executable, "-m", "capacity_tui.tui", "plan", example_names()[0]]
    with tempfile.TemporaryDirectory() as folder:
        environment["CAPACITY_TUI_DATA"] = folder
        pairs = [
            (processor_seconds([*command, "--no-history"], environment), processor_seconds(command, environment))
            for _ in range(PAIRS)
        ]
    return statistics.mean(kept - without for without, kept in pairs)


def processor_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Return what a command takes of the processor, which other work on the machine moves less than the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
