"""Whole commands: seconds from start to exit, and the ratio to a bare Python that imports numpy.

Budget: every bundled example in under 0.5 s, `detect` without a GPU in under 0.5 s; keeping an estimate in the
history adds at most 3 ms to a plan.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from capacity_tui.engine.plan.files.examples import example_names

RUNS = 5
PAIRS = 20


def seconds(arguments: list[str]) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def added_by_history() -> float:
    """Return the seconds of the processor that keeping an estimate adds to a plan: the median over pairs of runs."""
    environment = {name: value for name, value in os.environ.items() if name != "CAPACITY_TUI_HISTORY"}
    command = [sys.executable, "-m", "capacity_tui.tui", "plan", example_names()[0]]
    with tempfile.TemporaryDirectory() as folder:
        environment["CAPACITY_TUI_DATA"] = folder
        pairs = [
            (processor_seconds([*command, "--no-history"], environment), processor_seconds(command, environment))
            for _ in range(PAIRS)
        ]
    return statistics.median(kept - without for without, kept in pairs)


def processor_seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Return what a command takes of the processor, which other work on the machine moves less than the clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    print(f"{'the history, on top of one plan':<34}{added_by_history():7.4f} s of the processor")
    bare = seconds([sys.executable, "-c", "import numpy"])
    print(f"{'import numpy':<34}{bare:7.3f} s")
    program = [sys.executable, "-m", "capacity_tui.tui"]
    for arguments in (["--version"], ["detect"], *(["plan", name] for name in example_names())):
        taken = seconds([*program, *arguments])
        print(f"{' '.join(arguments):<34}{taken:7.3f} s {taken / bare:6.2f} x")


if __name__ == "__main__":
    main()
