"""Whole commands: seconds from start to exit, and the ratio to a bare Python that imports numpy.

Budget: every bundled example in under 0.5 s, `detect` without a GPU in under 0.5 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from capacity_tui.engine.plan.files.examples import example_names

RUNS = 5


def seconds(arguments: list[str]) -> float:
    """Return the median wall time of a command."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(arguments, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    bare = seconds([sys.executable, "-c", "import numpy"])
    print(f"{'import numpy':<34}{bare:7.3f} s")
    program = [sys.executable, "-m", "capacity_tui.tui"]
    for arguments in (["--version"], ["detect"], *(["plan", name] for name in example_names())):
        taken = seconds([*program, *arguments])
        print(f"{' '.join(arguments):<34}{taken:7.3f} s {taken / bare:6.2f} x")


if __name__ == "__main__":
    main()
