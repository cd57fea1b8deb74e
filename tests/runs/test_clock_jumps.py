"""A clock that is set while a run is watched changes no duration, and no order of checkpoints."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from capacity_tui.engine.runs.guard.checkpoints import CheckpointFolder
from capacity_tui.engine.runs.logs import RunCurve
from capacity_tui.engine.runs.logs.line_reader import LogEntry

DAY = 86_400.0
SETS = [DAY, -DAY, 40.0, -40.0]

SHIFTED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("CLOCK_SHIFT"), "r") : NULL;
    long seconds = 0;
    if (file && fscanf(file, "%ld", &seconds) == 1) now->tv_sec += seconds;
    if (file) fclose(file);
    return code;
}
time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}
"""

TRAINER = """
import pathlib, sys, time
for step in range(1, 25):
    time.sleep(0.1)
    if step == 12:
        pathlib.Path(sys.argv[1]).write_text(sys.argv[2])
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} step {step}/24 loss {3 - step / 24:.3f}", flush=True)
"""


def logged(curve: RunCurve, steps: range, shift: float, wait: float = 0.3) -> None:
    """Add a step a second, as a clock tells that is so many seconds off, with some wait until it comes."""
    for step in steps:
        entry = LogEntry({"step": float(step), "loss": 2.0}, "", 1.7e9 + step + shift)
        curve.add([entry], 100.0 + step + wait * (step % 3))


@pytest.mark.parametrize("seconds", SETS)
def test_steps_take_as_long_where_the_clock_of_their_log_is_set(seconds):
    curve = RunCurve()
    logged(curve, range(1, 20), 0.0)
    logged(curve, range(20, 40), seconds)
    times = curve.step_seconds()[1]
    assert times.size > 30
    assert np.median(times) == pytest.approx(1.0)
    assert times.sum() == pytest.approx(38, abs=1)
    assert curve.clock.jumps == [pytest.approx(seconds, abs=1)]


def test_lines_that_wait_in_a_buffer_are_no_clock_that_is_set():
    curve = RunCurve()
    for step in range(1, 60):
        entry = LogEntry({"step": float(step)}, "", 1.7e9 + step)
        curve.add([entry], 100.0 + -(-step // 20) * 20)
    assert not curve.clock.jumps
    assert np.median(curve.step_seconds()[1]) == pytest.approx(1.0)


def test_a_pause_is_no_clock_that_is_set():
    curve = RunCurve()
    logged(curve, range(1, 20), 0.0)
    curve.clock.paused_seconds = 600.0
    logged(curve, range(20, 40), 600.0)
    assert not curve.clock.jumps


class Clocks:
    """The clock of files and one that is never set, and a folder in which checkpoints are written by them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files, self.steady = folder, 1.7e9, 50.0
        self.seen = CheckpointFolder(folder, clock=lambda: self.files, steady=lambda: self.steady)

    def pass_by(self, seconds: float, set_by: float = 0.0) -> None:
        """Let time go by, and the clock of files be set."""
        self.files, self.steady = self.files + seconds + set_by, self.steady + seconds

    def write(self, step: int) -> None:
        """Write a checkpoint of the Transformers Trainer."""
        folder = self.folder / f"checkpoint-{step}"
        folder.mkdir(exist_ok=True)
        header = json.dumps({"w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}).encode()
        (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
        (folder / "trainer_state.json").write_text("{}")
        for file in folder.iterdir():
            os.utime(file, (self.files, self.files))

    def completed(self) -> list[float]:
        """Look until what was written is complete; return what its writing took, in seconds."""
        seconds = []
        for _ in range(3):
            seconds += [checkpoint.seconds for checkpoint in self.seen.look()]
            self.pass_by(1.0)
        return seconds


@pytest.mark.parametrize("seconds", SETS)
def test_the_newest_checkpoint_is_the_one_written_last_whatever_its_time(tmp_path, seconds):
    clocks = Clocks(tmp_path)
    clocks.write(10)
    clocks.completed()
    clocks.pass_by(5.0, set_by=seconds)
    clocks.write(20)
    clocks.completed()
    clocks.write(30)  # not looked at before the run ended
    assert [checkpoint.step for checkpoint in clocks.seen.complete()] == [30, 20, 10]


@pytest.mark.parametrize("seconds", SETS)
def test_saving_takes_no_longer_than_it_was_watched(tmp_path, seconds):
    clocks = Clocks(tmp_path)
    clocks.seen.look()
    clocks.pass_by(1.0)
    clocks.write(10)
    clocks.seen.look()
    clocks.pass_by(2.0, set_by=seconds)
    clocks.write(10)
    assert all(0.0 <= took <= 6.0 for took in clocks.completed())


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a compiler and Linux's loader")
@pytest.mark.parametrize("seconds", [86_400, -86_400])
def test_a_watched_run_takes_as_long_where_the_system_clock_is_set(tmp_path, seconds):
    (tmp_path / "shift.c").write_text(SHIFTED)
    (tmp_path / "train.py").write_text(TRAINER)
    library, shift = tmp_path / "shift.so", tmp_path / "shift"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "shift.c", "-ldl"], check=True)
    shift.write_text("0")
    command = [sys.executable, tmp_path / "train.py", shift, str(seconds)]
    ended = subprocess.run(
        [sys.executable, "-m", "capacity_tui.tui", "monitor", "--interval", "0.2", "--json", "--", *command],
        env={**os.environ, "LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift), "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    steps = [event["step_seconds"] for event in events if event.get("step_seconds")]
    assert steps
    assert max(steps) < 5
    assert "the clock of the log was set" in ended.stdout
