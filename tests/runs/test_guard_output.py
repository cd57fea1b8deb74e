"""Output of guarded commands: as fast as they write, on disks that are full, and of those that do not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

from capacity_tui.engine.runs.guard import attempt, keeper
from capacity_tui.engine.runs.guard.attempt import Attempt, CommandOutput
from capacity_tui.engine.runs.logs import LineReader

PLAN = """
task: train
model: {name: llama-3.2-1b}
training: {seq_len: 2048, micro_batch: 4, global_batch: 64, steps: 1000}
hardware: {name: rtx-4090, devices: 1}
watch: {interval: 0.5}
recovery: {max_restarts: 1}
"""
FLOOD = "yes 'step 10 loss 2.5 of a run that writes without end'"


class Started:
    """An attempt of a command, and what was passed on of its output."""

    def __init__(self, folder, *words):
        self.passed = [b"", b""]
        self.attempt = Attempt(folder / "attempt-1", "output", 1)
        self.attempt.start(words, os.environ, folder, 0)
        self.output = CommandOutput(self.attempt, self.take, LineReader())

    def take(self, number, data):
        self.passed[number - 1] += data

    def to_the_end(self):
        entries = []
        while not self.attempt.wait(0.01):
            entries += self.output.poll()
        self.attempt.end(10, lambda _: entries.extend(self.output.poll()))
        entries += self.output.poll(last=True)
        self.output.close()
        return entries


@contextmanager
def guarding(folder, *words):
    """Guard a command in a process of its own."""
    (folder / "plan.yaml").write_text(PLAN)
    places = {"CAPACITY_TUI_STATE": str(folder / "state"), "CAPACITY_TUI_HISTORY": str(folder / "history.sqlite")}
    program = [sys.executable, "-m", "capacity_tui.tui", "guard", "--json", str(folder / "plan.yaml"), "--", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(program, env={**os.environ, **places}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_exit_codes_streams_and_signals_are_the_commands(tmp_path):
    code = "import os, sys; print('out'); print('err', file=sys.stderr); os.kill(os.getpid(), 15)"
    started = Started(tmp_path, sys.executable, "-c", code)
    started.to_the_end()
    assert started.passed == [b"out\n", b"err\n"]
    assert started.attempt.ended_with() == 128 + signal.SIGTERM
    assert Attempt(started.attempt.folder, "output", 1).exit_code == 128 + signal.SIGTERM


@pytest.mark.parametrize(("words", "code"), [(["no-such-command"], 127), (["./not-executable"], 126)])
def test_what_cannot_be_started_ends_as_in_a_shell(tmp_path, words, code):
    (tmp_path / "not-executable").write_text("exit 0\n")
    started = Started(tmp_path, *words)
    started.to_the_end()
    assert started.attempt.ended_with() == code
    assert words[0].encode() in started.passed[1]


def test_a_script_without_a_shell_of_its_own_is_run_as_shells_do(tmp_path):
    script = tmp_path / "script"
    script.write_text("echo $1; exit 3\n")
    script.chmod(0o755)
    started = Started(tmp_path, str(script), "said")
    started.to_the_end()
    assert (started.attempt.ended_with(), started.passed[0]) == (3, b"said\n")


def test_what_the_disk_does_not_take_is_passed_on_all_the_same(tmp_path, monkeypatch):
    """A disk without room is a folder in the place of each file here, which cannot be written either."""
    folder = tmp_path / "attempt-1"
    for name in (*keeper.OUTPUTS, keeper.EXIT_CODE):
        (folder / name).mkdir(parents=True)
    started = Started(tmp_path, sys.executable, "-c", "for n in range(20_000): print('line', n)\nraise SystemExit(4)")
    started.to_the_end()
    assert started.passed[0].count(b"\n") == 20_000
    assert started.attempt.ended_with() == 4


def test_the_record_of_output_is_bounded_and_holds_the_newest(tmp_path, monkeypatch):
    lines = 3 * keeper.PART_BYTES // 100
    started = Started(tmp_path, sys.executable, "-c", f"for n in range({lines}): print(f'{{n:099}}')")
    started.to_the_end()
    assert started.passed[0].count(b"\n") == lines
    kept = [file.read_bytes() for file in sorted(started.attempt.folder.glob("stdout*"), reverse=True)]
    assert sum(map(len, kept)) <= 2 * keeper.PART_BYTES
    assert b"".join(kept).split(b"\n")[-2] == f"{lines - 1:099}".encode()


def test_who_comes_later_reads_what_was_recorded_and_passes_on_what_is_new(tmp_path):
    code = "import time; print('step 1 loss 3', flush=True); time.sleep(1); print('step 2 loss 2')"
    started = Started(tmp_path, sys.executable, "-c", code)
    while not started.output.poll():
        time.sleep(0.01)
    started.output.close()  # as when its guard is killed
    later, passed = Attempt(started.attempt.folder, "output", 1), []
    follower = CommandOutput(later, lambda _, data: passed.append(data), LineReader())
    entries = []
    while not started.attempt.wait(0.01):
        entries += follower.poll()
    entries += follower.poll(last=True)
    follower.close()
    assert [entry.figures["step"] for entry in entries] == [1, 2]
    assert passed == [b"step 2 loss 2\n"]


def test_lines_that_come_too_fast_are_passed_on_and_the_newest_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(attempt, "MOST_LINES", 100)
    started = Started(tmp_path, sys.executable, "-c", "for n in range(50_000): print('step', n, 'loss 2')")
    entries = started.to_the_end()
    assert started.passed[0].count(b"\n") == 50_000
    assert started.output.unread_lines > 0
    assert entries[-1].figures["step"] == 49_999


def test_looks_and_signals_go_on_while_a_command_writes_without_end(tmp_path):
    with guarding(tmp_path, "sh", "-c", FLOOD) as guard:
        looks = []
        while len(looks) < 4:
            looks += [time.monotonic()] if '"state"' in guard.stdout.readline() else []
        assert psutil.Process(guard.pid).memory_info().rss < 300e6
        guard.send_signal(signal.SIGTERM)
        assert guard.wait(20) == 128 + signal.SIGTERM
    kept = sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert kept < 3 * keeper.PART_BYTES


def test_what_does_not_end_by_a_signal_is_announced(tmp_path):
    (tmp_path / "deaf.py").write_text("import signal, time; signal.signal(15, lambda *_: None); time.sleep(60)\n")
    with guarding(tmp_path, "sh", "-c", f"{sys.executable} {tmp_path}/deaf.py & sleep 1") as guard:
        line = next(line for line in guard.stdout if '"ending"' in line)
        assert "python" in line
