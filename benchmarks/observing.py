"""What profiling costs a command that keeps a core busy: the same work, watched and not, taking turns in one run.

Budget: at most 1 % longer, and under 1 % of a core for the program that watches, at one look a second.

One command works on equal pieces of some hundredths of a second and writes down when each began and what it took. It is
watched every other while, as `profile` does it, and pieces of both kinds are compared by their medians: what else goes
on on the machine meets both alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from pathlib import Path

from capacity_tui.engine.runs.profile import ProfilingEngine

WORK = """
import json, sys, time
def piece():
    total = 0
    for number in range(300_000):
        total += number * number % 7
    return total
end, done = time.monotonic() + float(sys.argv[1]), []
while time.monotonic() < end:
    began, clock, used = time.monotonic(), time.perf_counter(), time.process_time()
    piece()
    done.append((began, time.perf_counter() - clock, time.process_time() - used))
with open(sys.argv[2], "w") as told:
    json.dump(done, told)
"""
SECONDS = 60.0
TURN_SECONDS = 3.0
SETTLING_SECONDS = 0.5  # Of each turn, in which a profile begins or ends: left out


def watched_turns(pid: int, until: float) -> tuple[list[float], float]:
    """Watch a process every other turn; return when turns ended, and the share of a core that watching took."""
    ends, used, watched = [], 0.0, 0.0
    while time.monotonic() + 2 * TURN_SECONDS < until:
        time.sleep(TURN_SECONDS)
        ends.append(time.monotonic())
        with ProfilingEngine(1.0, pid=pid):
            # A profile looks more often in the beginning: that is part of what it costs short commands alone.
            time.sleep(SETTLING_SECONDS)
            began, before = time.monotonic(), time.process_time()
            time.sleep(TURN_SECONDS - SETTLING_SECONDS)
            used += time.process_time() - before
            watched += time.monotonic() - began
        ends.append(time.monotonic())
    return ends, used / watched


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "pieces.json"
        with subprocess.Popen([sys.executable, "-S", "-c", WORK, str(seconds), str(told)]) as command:
            ends, share = watched_turns(command.pid, time.monotonic() + seconds)
        pieces = json.loads(told.read_text())
    turns: tuple[list[tuple[float, float]], ...] = ([], [])
    for began, clock, used in pieces:
        turn = bisect(ends, began)
        if turn < len(ends) and began - (ends[turn - 1] if turn else pieces[0][0]) > SETTLING_SECONDS:
            turns[turn % 2].append((clock, used))
    alone, watched = turns
    for number, what in enumerate(("clock", "CPU")):
        without, with_it = (statistics.median(each[number] for each in kind) for kind in (alone, watched))
        print(
            f"{what:<6} alone {1000 * without:7.2f} ms  watched {1000 * with_it:7.2f} ms  ratio {with_it / without:.4f}"
        )
    print(f"{len(alone)} pieces alone, {len(watched)} watched")
    print(f"watching takes {100 * share:.2f} % of a core ({os.cpu_count()} cores, one look a second)")


if __name__ == "__main__":
    main()
