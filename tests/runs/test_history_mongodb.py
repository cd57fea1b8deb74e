"""The history in MongoDB: in the one that CAPACITY_TEST_MONGODB_URI names, in one that tests serve, and in memory.

What stands in memory shows what is asked of the database, what tests serve also what may go over a connection. How
MongoDB itself answers, with times, lost connections and several writers at once, only a named database shows.
"""

from __future__ import annotations

import os
import sys
import uuid

import pytest

from capacity_tui.engine.errors import MissingPartError, StorageError
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, history_place, record_run
from capacity_tui.engine.runs.history.history import MongoStore

VARIABLE = "CAPACITY_TEST_MONGODB_URI"
STEP = "computation.step_seconds"
PLAN = {"model": {"name": "llama-3-8b", "spec": {"a.b": 2**70}}, "hardware": {"name": "h100-sxm-80gb"}}


@pytest.fixture(params=["in memory", "served", "named"])
def place(request, monkeypatch, tmp_path):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    pymongo = pytest.importorskip("pymongo", reason="the extra mongodb is not installed")
    if request.param == "in memory":
        mongomock = pytest.importorskip("mongomock", reason="what stands for a database in tests is not installed")
        server = mongomock.MongoClient()
        monkeypatch.setattr(pymongo, "MongoClient", lambda *_, **__: server)
        yield history_place("mongodb://me:secret@db.example/runs")
        return
    uri = request.getfixturevalue("mongodb_uri") if request.param == "served" else os.environ.get(VARIABLE)
    if not uri:
        pytest.skip(f"{VARIABLE} names no database")
    yield history_place(f"{uri.rstrip('/')}/capacity_test_{uuid.uuid4().hex}")


def run(seconds: float = 2.0, kind="run", **more) -> RunRecord:
    values = {"plan": PLAN, "predicted": {STEP: {"value": 1.0}}, "actual": {STEP: seconds}}
    return RunRecord(kind, **{**values, **more})


def test_entries_are_kept_found_and_removed_as_in_a_file(place):
    old = run(started="2026-01-02T03:04:05.000Z", device="cpu-x-2", id="abcd012345")
    new = run(kind="profile", plan=None, machine={"hardware": "8 x A100 (80 GB)"}, actual={})
    assert record_run(old, place) == record_run(new, place) == record_run(old, place) == ""
    history = History(place)
    assert history.find() == (new, old)
    for wanted in (
        WantedRuns(kinds=("profile",)),
        WantedRuns(hardware="a100 (80"),
        WantedRuns(since="2026-06-01"),
        WantedRuns(most=1),
    ):
        assert history.find(wanted) == (new,)
    for wanted in (
        WantedRuns(model="LLAMA"),
        WantedRuns(device="cpu-x-2"),
        WantedRuns(measured=True),
        WantedRuns(id_starts="abcd"),
    ):
        assert history.find(wanted) == (old,)
    assert history.one("abcd") == old
    assert history.forget(old.id, "none") == 1
    assert history.find() == (new,)


def test_equal_estimates_are_kept_once_and_too_many_are_thinned(place):
    store = MongoStore(place, most_estimates=10)
    store.add([run(0.5, started="2020-01-01T00:00:00.000Z")])
    for number in (1, 1, *range(2, 13)):
        said = {STEP: {"value": float(number)}}
        store.add([run(kind="estimate", predicted=said, actual={}, started=f"2026-01-01T00:00:{number:02d}.000Z")])
    values = [entry.predicted[STEP]["value"] for entry in store.find(WantedRuns(kinds=("estimate",)))]
    assert values[0] == 12
    assert len(values) <= 10
    assert len(store.find(WantedRuns(kinds=("run",)))) == 1


def test_a_database_out_of_reach_stops_nothing_and_tells_no_password(monkeypatch, tmp_path):
    pytest.importorskip("pymongo", reason="the extra mongodb is not installed")
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    monkeypatch.setattr("capacity_tui.engine.extras.ANSWER_MILLISECONDS", 100)
    place = history_place("mongodb://me:secret@127.0.0.1:1/runs")
    note = record_run(run(), place)
    assert "to be stored" in note
    with pytest.raises(StorageError, match="cannot be used") as refused:
        History(place).find()
    assert "secret" not in note + refused.value.one_line()


def test_without_pymongo_the_part_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pymongo", None)
    place = history_place("mongodb://db.example/runs")
    assert "pymongo" in record_run(run(), place)
    with pytest.raises(MissingPartError, match=r"install it: .*pymongo") as missing:
        History(place).find()
    assert missing.value.exit_code == 3
