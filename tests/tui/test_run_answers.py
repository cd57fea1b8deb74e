"""What the view of runs tells of real folders and a real history."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.runs import RunWriter
from capacity_tui.engine.runs.history import History, RunRecord, history_entry
from capacity_tui.engine.solve import answer
from capacity_tui.tui.view import Standing
from capacity_tui.tui.views.run.present import WatchedRuns

STEP = "computation.step_seconds"
GIB = 2**30
PLAN = {
    "task": "train",
    "model": {"name": "gpt2"},
    "training": {"seq_len": 256, "micro_batch": 1, "global_batch": 1, "steps": 100},
    "hardware": {"name": "rtx-4090", "devices": 1},
}


@pytest.fixture(scope="module")
def planned():
    return answer(plan_from_data(PLAN))


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(tmp_path / "history.sqlite"))
    with closing(WatchedRuns(load_catalog(), lambda: None, lambda plan: plan)) as made:
        yield made


def look(step, seconds):
    """Return a look as monitor writes it."""
    compared = {"figure": STEP, "actual": seconds, "ratio": 2.0, "verdict": "slower"}
    holder = {"pid": 7, "name": "python", "memory_bytes": 3 * GIB}
    gpu = {"index": 0, "utilization_percent": 97.0, "memory_used_bytes": 4 * GIB, "memory_total_bytes": 24 * GIB}
    gpu |= {"power_watts": 300.0, "power_limit_watts": 450.0, "temperature_celsius": 71.0, "throttle": ["heat"]}
    return {
        "event": "state",
        "step": step,
        "total_steps": 100,
        "loss": 5.0 / step,
        "step_seconds": seconds,
        "eta": {"value": 90.0, "low": 80.0, "high": 100.0},
        "compared": [compared],
        "why": [{"code": "throttled", "text": "clocks are held down"}],
        "gpus": [{**gpu, "holders": [holder]}],
    }


def test_a_run_that_goes_on_is_told_as_it_goes(reader, planned):
    writer = RunWriter(history_entry(planned, "run"), "monitor", os.getpid())
    steps = [float(step) for step in range(1, 2001)]
    losses = [99.0 if step == 777 else 1.0 for step in range(1, 2001)]
    writer.write({"event": "course", "steps": steps, "loss": losses})
    writer.write({"event": "alarm", "level": "warning", "title": "leak", "detail": "2 MB/s", "remedy": "look"})
    writer.write(look(2001, 0.5))
    row = reader.rows()[0]
    assert (row.standing, row.has_plan, row.cells[1], row.cells[3]) == (Standing.GOES_ON, True, "gpt2", "2 001/100")
    run = reader.run(row.id, 1.0)
    assert "step 2 001/100" in run.head
    graphs = {graph.title: graph for graph in run.graphs}
    assert len(graphs["loss"].points) < 500
    assert 99.0 in [value for _, value in graphs["loss"].points], "no spike is thinned out"
    assert graphs["loss"].points[-1] == (2001.0, 5.0 / 2001)
    assert graphs["device memory"].predicted
    assert run.devices[0].text == "97 %  4.0/24.0 GiB  300/450 W  71 C"
    assert run.devices[0].processes == ("7  python  3.0 GiB",)
    assert "leak: 2 MB/s; look" in run.events[0].text
    assert run.remarks == ("why: clocks are held down",)
    writer.write(look(2003, 0.5))
    graphs = {graph.title: graph for graph in reader.run(row.id, 1.0).graphs}
    assert (graphs["step time"].verdict, graphs["step time"].is_inside) == ("slower: 2.00 × of", False)
    newest = next(graph for graph in reader.run(row.id, 0.1).graphs if graph.title == "loss")
    assert newest.points[0][0] > 1790
    assert reader.document(row.id).model.name == "gpt2"
    writer.forget()


def test_what_is_over_is_told_once_by_its_folder_or_by_the_history(reader, planned):
    writer = RunWriter(history_entry(planned, "run"), "monitor", os.getpid())
    entry = history_entry(planned, "run", {STEP: 0.25}, {"steps": 100.0, "exit_code": 0})
    older = RunRecord("profile", details={"command": ["sleep", "1"], "exit_code": 3}, actual={"memory.host_bytes": 5e9})
    writer.end(entry, 0)
    History().keep(writer.run.record, older)
    (own,) = [row for row in reader.rows() if row.cells[-1] == writer.run.record.id]
    assert (own.standing, own.cells[5]) == (Standing.ENDED, "250 ms")
    (past,) = [row for row in reader.rows() if row.id == older.id]
    assert (past.standing, past.cells[1]) == (Standing.FAILED, "sleep 1")
    assert "no curves" in reader.run(older.id, 1.0).remarks[-1]
    with pytest.raises(CapacityError, match="no plan"):
        reader.document(older.id)
    with pytest.raises(CapacityError, match="nothing can be learnt"):
        reader.calibrate(older.id)
    writer.forget()


def test_before_the_first_run_an_example_stands_there_that_says_so_and_teaches_nothing(reader):
    (row,) = reader.rows()
    assert (row.standing, row.cells[0], row.has_plan) == (Standing.EXAMPLE, "example", True)
    run = reader.run(row.id, 1.0)
    assert run.head.startswith("EXAMPLE, made up")
    assert {"step time", "loss", "device memory"} <= {graph.title for graph in run.graphs}
    assert all(graph.is_inside for graph in run.graphs)
    assert reader.document(row.id).model.name == "llama-3.1-8b"
    with pytest.raises(CapacityError, match="example"):
        reader.calibrate(row.id)
