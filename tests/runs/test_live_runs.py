"""Folders of runs that go on: written by one process, followed by any other, bounded, and never in the run's way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.runs import RunFollower, RunWriter, list_runs, live_run, run_events
from capacity_tui.engine.runs.history import RunRecord
from capacity_tui.engine.runs.live_run import ABOUT, EVENTS, identity_of, read_run
from capacity_tui.engine.runs.logs.line_reader import LogEntry
from capacity_tui.engine.runs.logs.run_curve import RunCurve
from capacity_tui.engine.runs.run_events import STEP_SECONDS, RunCourse, thinned


@pytest.fixture
def gone():
    """Return the identity of a process that has ended, though its number may live on."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        found = identity_of(process.pid)
        process.stdin.close()
    return found


@pytest.fixture
def followed():
    """Return what follows a folder, and let its file go in the end."""
    with ExitStack() as stack:
        yield lambda folder: stack.enter_context(closing(RunFollower(folder)))


def begun(folder, *, pid=None, **known):
    return RunWriter(RunRecord("run", **known), "monitor", os.getpid() if pid is None else pid, folder=folder)


def leave(writer, watcher):
    """Let a run be as whoever watched it left it when it was killed."""
    writer.close()
    path = writer.run.folder / ABOUT
    path.write_text(json.dumps(replace(writer.run, watcher=watcher).data()))


def test_what_is_written_is_followed_line_by_line(tmp_path, followed):
    writer = begun(tmp_path, plan={"model": {"name": "m"}}, details={"command": ["train", "x"]})
    follower = followed(writer.run.folder)
    assert follower.poll() == ((), True)
    writer.write({"event": "state", "step": 1}, {"event": "alarm", "kind": "leak"})
    events, from_start = follower.poll()
    assert ([event["event"] for event in events], from_start) == (["state", "alarm"], False)
    with (writer.run.folder / EVENTS).open("a") as file:
        file.write('{"event":"st')
        file.flush()
        assert follower.poll().events == ()
        file.write('ate","step":2}\nnot json\n[1]\n')
    assert [event["step"] for event in follower.poll().events] == [2]
    run = follower.run()
    assert (run.goes_on, run.is_watched, run.command, run.record.model) == (True, True, ("train", "x"), "m")


def test_the_end_is_told_and_what_it_came_to(tmp_path):
    writer = begun(tmp_path)
    writer.end(RunRecord("run", actual={"computation.step_seconds": 2.0}), 3)
    writer.write({"event": "state"})
    (run,) = list_runs(tmp_path)
    assert (run.goes_on, run.exit_code, run.id, run.record.id) == (False, 3, writer.run.id, writer.run.id)
    assert run.record.actual == {"computation.step_seconds": 2.0}
    assert (run.folder / EVENTS).read_text() == ""


def test_a_number_that_was_given_again_is_not_taken_for_the_run(tmp_path, gone):
    writer = begun(tmp_path)
    assert list_runs(tmp_path)[0].goes_on
    path = writer.run.folder / ABOUT
    own = identity_of(os.getpid())
    path.write_text(json.dumps(replace(writer.run, process=replace(own, started="1")).data()))
    assert not list_runs(tmp_path)[0].goes_on
    path.write_text(json.dumps(replace(writer.run, process=gone, watcher=gone).data()))
    assert not list_runs(tmp_path)[0].is_watched


def test_a_run_elsewhere_goes_on_as_long_as_it_is_written(tmp_path, gone):
    writer = begun(tmp_path)
    elsewhere = replace(gone, place="another machine")
    leave(writer, elsewhere)
    path = writer.run.folder / ABOUT
    path.write_text(json.dumps(replace(writer.run, process=elsewhere, watcher=elsewhere).data()))
    assert list_runs(tmp_path)[0].goes_on
    for written in (0, 4e9):  # the second by a clock that was set back since
        os.utime(writer.run.folder / EVENTS, (written, written))
        assert not list_runs(tmp_path)[0].goes_on


def test_a_run_that_nobody_watches_any_more_is_taken_up_again(tmp_path, gone, followed):
    first = begun(tmp_path)
    first.write({"event": "state", "step": 1})
    with (first.run.folder / EVENTS).open("a") as file:
        file.write('{"event":"state","ste')  # killed amid a line
    assert begun(tmp_path).run.folder != first.run.folder, "somebody watches it"
    leave(first, gone)
    second = begun(tmp_path)
    assert second.run.folder == first.run.folder
    assert second.run.record.started == first.run.record.started
    second.write({"event": "state", "step": 3})
    assert [event["step"] for event in followed(second.run.folder).poll().events] == [1, 3]


def test_events_are_bounded_and_read_anew_when_they_are_thinned_out(tmp_path, monkeypatch, followed):
    monkeypatch.setattr(run_events, "MOST_BYTES", 20_000)
    monkeypatch.setattr(thinned, "__defaults__", (50, 20))
    writer = begun(tmp_path)
    follower = followed(writer.run.folder)
    seen, told_anew = [], 0
    for step in range(1000):
        writer.write({"event": "state", "step": step})
        if step % 100 == 0:
            writer.write({"event": "alarm", "step": step})
        events, from_start = follower.poll()
        told_anew += from_start
        seen = [*([] if from_start else seen), *events]
    assert (writer.run.folder / EVENTS).stat().st_size < 20_000 + 200
    assert told_anew > 1
    assert [event["step"] for event in seen if event["event"] == "alarm"] == list(range(0, 1000, 100))
    steps = [event["step"] for event in seen if event["event"] == "state"]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (0, 999)


@given(st.lists(st.integers(0, 10**6), max_size=200), st.integers(5, 50))
def test_thinning_keeps_the_ends_and_is_bounded_whatever_clocks_say(moments, looks):
    lines = [
        json.dumps({"time": f"2026-01-01T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z", "event": "state"})
        for at in moments
    ]
    kept = thinned(lines, looks)
    assert kept[-1:] == lines[-1:]
    assert set(kept) <= set(lines)
    if moments == sorted(moments):
        assert len(kept) <= looks + 2


def test_old_runs_are_swept_and_damaged_folders_are_no_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(live_run, "MOST_ENDED", 4)
    for number in range(7):
        begun(tmp_path, started=f"2026-01-01T00:00:{number:02}Z").end()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / ABOUT).write_text('{"record": 3}')
    begun(tmp_path, started="2026-01-02T00:00:00Z")
    runs = list_runs(tmp_path)
    assert len(runs) == 5
    assert runs[0].goes_on
    assert min(run.record.started for run in runs) == "2026-01-01T00:00:03Z"
    with pytest.raises(StorageError):
        read_run(tmp_path / "damaged")


def test_a_folder_that_cannot_be_written_is_told_and_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    writer = begun(tmp_path / "file")
    writer.write({"event": "state"})
    writer.end()
    assert "the view of runs does not show all of it" in writer.problem


def test_steps_quicker_than_looks_are_timed_over_several_looks():
    """Steps of 0.74 s that a log tells, read once a second: one or two come with each look."""
    curve, course, timed = RunCurve(), RunCourse(), -1.0
    for look in range(1, 61):
        first, last = int((look - 1) / 0.74), int(look / 0.74)
        curve.add([LogEntry({"step": float(step)}, "") for step in range(first + 1, last + 1)], float(look))
        steps, seconds = curve.step_seconds()
        if len(steps) < 2:
            continue
        new = [[step, second] for step, second in zip(steps, seconds, strict=True) if step > timed]
        timed = steps[-1]
        moment = f"2026-11-26T00:00:{look - 1:02d}+00:00"
        course.take([{"event": "state", "time": moment, "step": last, "step_times": new}])
    times = [seconds for _, seconds in course.curves[STEP_SECONDS]]
    assert len(times) > 30
    assert all(abs(seconds / 0.74 - 1.0) < 0.15 for seconds in times)
