"""What is left when a guard is killed at any moment: every row, no orphan, one entry of each run in the history.

Trainings that write numbered rows, take checkpoints, and end out of memory now and then run under guard; each guard is
killed after a random while and another takes the run up, until the runs have ended.

    uv run python -m benchmarks.guard_kills [KILLS]
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from capacity_tui.engine.estimate import Answer
from capacity_tui.engine.files import STATE_VARIABLE
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.runs import LiveRun, RunFollower, list_runs
from capacity_tui.engine.runs.guard import Listeners, begin, new_order, take_up
from capacity_tui.engine.runs.guard.attempt import RUN_VARIABLE
from capacity_tui.engine.runs.history import VARIABLE, History, record_run
from capacity_tui.engine.solve import answer

PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 1024, micro_batch: 4, global_batch: 64, steps: 200}
hardware: {name: rtx-4090, devices: 1}
watch: {interval: 0.1}
recovery: {max_restarts: 3}
"""
# Begins behind its newest checkpoint; the first start of each run ends out of memory in the middle.
TRAINING = """
import os, sys, time, zipfile
folder, rows, attempt = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start = int(sys.argv[4].rpartition("-")[2].removesuffix(".pt")) if len(sys.argv) > 4 else 0
truth = open(os.path.join(folder, "truth"), "a")
for row in range(start + 1, rows + 1):
    truth.write(f"{attempt} {row}\\n"); truth.flush()
    print(f"step {row} loss {3 - row / 1000:.4f}", flush=True)
    if row % 20 == 0:
        with zipfile.ZipFile(os.path.join(folder, f"state-{row}.pt"), "w") as file:
            file.writestr("state", str(row))
    if attempt == 1 and row == rows // 2:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity")
    time.sleep(0.01)
"""
ROWS = 120
LONGEST_LIFE = 1.0  # Seconds after which a guard is killed at the latest


@dataclass
class Found:
    """What was counted."""

    kills: int = 0
    runs: int = 0
    rows: int = 0
    lost_rows: int = 0
    doubled_rows: int = 0
    orphans: int = 0
    missing_entries: int = 0
    doubled_entries: int = 0
    broken_events: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost and nothing is left."""
        return not (
            self.lost_rows or self.doubled_rows or self.orphans or self.missing_entries or self.doubled_entries
            or self.broken_events or self.problems
        )  # fmt: skip


def kill_guards(kills: int, folder: Path, seed: int = 0) -> Found:
    """Kill guards so often, and return what was found behind them.

    Args:
        kills: how often at least; the runs that go on then are guarded to their end.
        folder: for all that is written.
    """
    chance, found = random.Random(seed), Found()
    with _places(folder):
        estimated = answer(plan_from_text(PLAN, "plan.yaml"))
        while found.kills < kills:
            work = folder / f"run-{found.runs}"
            work.mkdir()
            found.runs += 1
            _one_run(estimated, work, chance, found, kills)
        entries = [record.id for record in History().find()]
        # A guard that was killed before it wrote down what it is to run has run nothing.
        ids = {run.id for run in list_runs() if (run.folder / "guard.json").exists()}
        found.missing_entries = len(ids - set(entries))
        found.doubled_entries = len(entries) - len(set(entries))
    return found


def _one_run(estimated: Answer, work: Path, chance: random.Random, found: Found, kills: int) -> None:
    """Guard one run, its guards killed, to its end; count what is left of it."""
    before = {run.id for run in list_runs()}

    def first() -> None:
        words = [sys.executable, "-c", TRAINING, str(work), str(ROWS), "{run.attempt}", "{run.checkpoint}"]
        begin(new_order(words, estimated.plan, checkpoints=work), estimated, _told()).run()

    guard = _forked(first)
    while True:
        life = chance.uniform(0, LONGEST_LIFE) if found.kills < kills else 60.0
        if _ends_within(guard, life):
            break
        os.kill(guard, signal.SIGKILL)
        os.waitpid(guard, 0)
        found.kills += 1
        run = next((run for run in list_runs() if run.id not in before), None)
        if run is None or not (run.folder / "guard.json").exists():
            guard = _forked(first)  # killed before it had written down what it is to run
            continue
        if run.ended:
            break
        name = run.id
        guard = _forked(lambda name=name: take_up(name, _told(), _no_machine).run())
    run = next(run for run in list_runs() if run.id not in before)
    _count(run, work, found)


def _count(run: LiveRun, work: Path, found: Found) -> None:
    truth = (work / "truth").read_text().splitlines()
    written = []
    for attempt in sorted(run.folder.glob("attempt-*")):
        number = attempt.name.rpartition("-")[2]
        lines = (attempt / "stdout").read_text().splitlines() if (attempt / "stdout").exists() else []
        written += [f"{number} {line.split()[1]}" for line in lines]
    found.rows += len(truth)
    found.lost_rows += len(set(truth) - set(written))
    found.doubled_rows += len(written) - len(set(written)) + len(truth) - len(set(truth))
    found.orphans += sum(1 for process in psutil.process_iter() if _belongs(process, run.id))
    follower = RunFollower(run.folder)
    events = follower.poll().events
    follower.close()
    lines = (run.folder / "events.jsonl").read_bytes().splitlines()
    found.broken_events += sum(1 for line in lines if not line.endswith(b"}"))
    if not any(event.get("event") == "end" for event in events):
        found.problems.append(f"{run.id}: no end was told")
    if not run.ended or run.exit_code != 0:
        found.problems.append(f"{run.id}: ended {run.ended!r} with {run.exit_code}")


def _belongs(process: psutil.Process, run: str) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE) == run
    except (psutil.Error, OSError):
        return False


def _told() -> Listeners:
    return Listeners(
        lambda _: None, lambda _, __: None, lambda _, __: None, lambda entry: print(record_run(entry), end="")
    )


def _no_machine() -> None:
    raise AssertionError("the plan names its hardware")


def _forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own; all that takes long to load is loaded already."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _ends_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return False


@contextlib.contextmanager
def _places(folder: Path) -> Iterator[None]:
    """Keep everything in a folder while the block runs."""
    wanted = {STATE_VARIABLE: str(folder / "state"), VARIABLE: str(folder / "history.sqlite")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        found = kill_guards(kills, Path(folder))
    print(f"{found.kills} kills of {found.runs} runs in {time.monotonic() - began:.0f} s, {found.rows} rows written")
    print(f"rows lost {found.lost_rows}, doubled {found.doubled_rows}; processes left {found.orphans}")
    print(f"entries of the history missing {found.missing_entries}, doubled {found.doubled_entries}")
    print(f"broken events {found.broken_events}; {'; '.join(found.problems) or 'every run ended well'}")
    raise SystemExit(0 if found.is_clean else 1)


if __name__ == "__main__":
    main()
