"""The history in its file: what is kept is found again, whatever happens to the file, to the disk or to a program."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError, StorageError
from capacity_tui.engine.files import NOWHERE
from capacity_tui.engine.runs.history import History, RunRecord, WantedRuns, as_data, history_place, of_data, record_run
from capacity_tui.engine.runs.history.sqlite_file import MIGRATIONS, opened, opened_to_read
from capacity_tui.engine.runs.history.sqlite_store import SqliteStore

PLAN = {"model": {"name": "llama-3-8b"}, "hardware": {"name": "h100-sxm-80gb", "devices": 8}}
STEP = "computation.step_seconds"


def run(seconds: float = 2.0, kind="run", **more) -> RunRecord:
    values = {"plan": PLAN, "predicted": {STEP: {"value": 1.0, "low": 0.8, "high": 1.3}}, "actual": {STEP: seconds}}
    return RunRecord(kind, **{**values, **more})


def estimate(seconds: float = 1.0, **more) -> RunRecord:
    return run(kind="estimate", **{"predicted": {STEP: {"value": seconds}}, "actual": {}, **more})


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data" / "history.sqlite"


def test_what_is_kept_is_found_again_the_newest_first(file):
    first, second = run(), estimate()
    assert record_run(first, file) == record_run(second, file) == ""
    assert History(file).find() == (second, first)
    assert first.ratio == {STEP: 2.0}
    assert of_data(json.loads(json.dumps(as_data(first)))) == first


def test_whatever_a_script_hands_over_is_kept_as_json_can_hold_it(file):
    record_run(
        run(actual={STEP: float("nan"), "loss": 2.5}, details={"path": Path("/x"), "rates": (1.0, float("inf"))}), file
    )
    (kept,) = History(file).find()
    assert (dict(kept.actual), dict(kept.details)) == ({"loss": 2.5}, {"path": "/x", "rates": [1.0, None]})


def test_entries_are_found_by_what_they_are(file):
    old = run(started="2026-01-02T03:04:05.000Z", device="cpu-x-2")
    other = run(kind="profile", plan={"model": {"name": "gpt2"}}, machine={"hardware": "8 x A100"}, actual={})
    History(file).keep(old, other)
    found = History(file).find
    assert (
        found(WantedRuns(kinds=("profile",)))
        == found(WantedRuns(model="GPT"))
        == found(WantedRuns(hardware="a100"))
        == (other,)
    )
    assert found(WantedRuns(since="2026-06-01")) == found(WantedRuns(most=1)) == (other,)
    assert (
        found(WantedRuns(device="cpu-x-2"))
        == found(WantedRuns(measured=True))
        == found(WantedRuns(hardware="h100"))
        == (old,)
    )


def test_an_entry_is_called_by_the_beginning_of_its_id(file):
    History(file).keep(run(id="abcd012345"), run(id="abce012345"))
    history = History(file)
    assert history.one("ABCD").id == "abcd012345"
    for name, words in (("abc", "several"), ("ffff", "no entry"), ("", "no entry"), ("ab%", "no entry")):
        with pytest.raises(PlanError, match=words):
            history.one(name)
    assert history.forget("abcd012345") == 1
    assert [entry.id for entry in history.find()] == ["abce012345"]


def test_the_same_estimate_is_kept_once_and_a_changed_one_again(file):
    for seconds in (1.0, 1.0, 2.0, 2.0, 1.0):
        record_run(estimate(seconds), file)
    kept = [entry.predicted[STEP]["value"] for entry in History(file).find()]
    assert kept == [1.0, 2.0, 1.0]


def test_too_many_estimates_are_thinned_the_older_ones_and_no_runs(file):
    store = SqliteStore(file, most_estimates=10)
    kept = run(0.5, started="2020-01-01T00:00:00.000Z")
    store.add([kept, *(estimate(float(number)) for number in range(1, 13))])
    assert [entry.predicted[STEP]["value"] for entry in store.find(WantedRuns(kinds=("estimate",)))] == [
        12, 11, 10, 9, 8, 7, 5, 3, 1]  # fmt: skip
    assert store.find(WantedRuns(kinds=("run",))) == (kept,)


def test_off_keeps_nothing_by_itself_but_what_is_handed_over(file, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(file.parent))
    assert record_run(run(), "off") == ""
    assert not file.parent.exists()
    History("off").keep(run())
    assert len(History().find()) == len(History(file).find()) == 1


def test_a_user_without_a_home_is_told_only_of_what_is_handed_over(monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", "")
    monkeypatch.setattr("capacity_tui.engine.runs.history.records.data_folder", lambda: NOWHERE)
    assert record_run(run()) == ""
    with pytest.raises(StorageError, match="no home"):
        History().keep(run())


def test_a_password_is_never_told():
    place = history_place("mongodb://me:secret@db.example/runs")
    assert place.label == "mongodb://db.example/runs"
    assert "secret" not in str(place.waiting)


def test_an_older_file_is_brought_up_to_date_and_kept_as_it_was(file):
    kept = run()
    record_run(kept, file)
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN more TEXT NOT NULL DEFAULT 'x'",))
    with opened_to_read(file, later) as connection:
        assert connection is not None
        assert connection.execute("SELECT id, more FROM runs").fetchall() == [(kept.id, "x")]
    with opened(file, later) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    copy = file.with_name("history.version-1.sqlite")
    assert SqliteStore(copy).find(WantedRuns()) == (kept,)


def test_a_newer_file_is_left_as_it_is(file):
    record_run(run(), file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    assert "newer capacity-tui" in record_run(run(), file)
    with pytest.raises(StorageError, match="update capacity-tui"):
        History(file).find()
    assert file.read_bytes() == before


def test_a_database_of_another_program_is_left_as_it_is(file):
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE runs (id)")
    assert "another program" in record_run(run(), file)
    with pytest.raises(StorageError, match="another program"):
        History(file).find()


def test_a_file_that_is_no_database_is_set_aside_and_told_once(file):
    file.parent.mkdir()
    file.write_bytes(b"not a database " * 500)
    kept = run()
    note = record_run(kept, file)
    assert "damaged" in note
    assert "\n" not in note
    assert record_run(run(), file) == ""
    assert kept in History(file).find()
    assert [path.read_bytes()[:5] for path in file.parent.glob("history.corrupt-*.sqlite")] == [b"not a"]


def test_what_can_be_read_of_a_damaged_file_is_taken_over(file):
    store = SqliteStore(file)
    store.add([run(details={"text": "x" * 3000}) for _ in range(60)])
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    file.write_bytes(content)
    found = store.find(WantedRuns())
    assert 50 <= len(found) < 60
    assert "were recovered" in store.notes[0]
    store.add([run()])
    assert len(store.notes) == 1


def test_the_example_of_the_page_for_scripts_runs_as_it_stands(file, monkeypatch, capsys):
    monkeypatch.setenv("CAPACITY_TUI_HISTORY", str(file))
    page = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text("utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "record_run" in block]
    exec(compile(example, "python.md", "exec"), {})
    assert re.search(
        r"^[0-9a-f]{10} \S+Z \{'computation.step_seconds': [\d.]+\}$", capsys.readouterr().out, re.MULTILINE
    )


def damaged(file: Path, change) -> Path:
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)
    for ending in ("-wal", "-shm"):
        Path(f"{file}{ending}").unlink(missing_ok=True)
    return file


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 20, 300])
def test_damaged_bytes_cost_the_rows_that_they_are_in(file, count, seed):
    entries = [run(float(number), details={"note": "x" * 400}) for number in range(200)]
    History(file).keep(*entries)
    chance = random.Random(seed)

    def change(content):
        for _ in range(count):
            content[chance.randrange(100, len(content))] = chance.randrange(256)

    history = History(damaged(file, change))
    found = history.find()
    assert len(found) >= max(50, 200 - 3 * count)
    assert {entry.id for entry in found} <= {entry.id for entry in entries}
    if len(found) < 200:
        (note,) = history.notes
        assert f"{len(found)} of its entries were recovered" in note
    assert {entry.id for entry in History(file).find()} == {entry.id for entry in found}


def test_a_damaged_schema_costs_no_entry(file):
    History(file).keep(run(1.0), run(2.0))

    def change(content):
        content[content.index(b"NOT NULL") + 1] = 0xC7

    assert len(History(damaged(file, change)).find()) == 2


@pytest.mark.parametrize("value", [b"\xff\xfe", 5, "[]", '{"id": 1}', "1" + "0" * 400])
def test_a_row_that_holds_no_entry_costs_no_other(file, value):
    History(file).keep(run(1.0), run(2.0))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET data = ? WHERE rowid = 1", (value,))
    history = History(file)
    assert len(history.find()) == 1
    assert "1 of its entries were recovered" in history.notes[0]
