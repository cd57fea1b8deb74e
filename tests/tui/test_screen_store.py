"""The edited plan, its history and its baseline, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_document import FakeDocument
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.errors import PlanError
from capacity_tui.tui.store import Baseline, Store

SEQUENCE, BATCH = "training.seq_len", "training.global_batch"


@pytest.fixture
def store() -> Store:
    store = Store()
    store.open(FakeDocument())
    return store


def text(store: Store, key: str = SEQUENCE) -> str:
    assert isinstance(store.document, FakeDocument)
    return store.document.get(key)


def test_edit_undo_redo(store: Store) -> None:
    assert store.edit(SEQUENCE, "8192")
    assert store.undo() == SEQUENCE
    assert text(store) == "4096"
    assert store.redo() == SEQUENCE
    assert text(store) == "8192"


def test_every_edit_is_undone_by_itself(store: Store) -> None:
    for value in ("8192", "16384", "32768"):
        store.edit(SEQUENCE, value)
    store.undo()
    assert text(store) == "16384"
    assert store.edits == 2


def test_several_fields_are_changed_and_undone_together(store: Store) -> None:
    assert store.change({SEQUENCE: "8192", BATCH: "128"})
    assert (text(store), text(store, BATCH)) == ("8192", "128")
    store.undo()
    assert (text(store), text(store, BATCH)) == ("4096", "64")


def test_edit_after_undo_forgets_what_was_undone(store: Store) -> None:
    store.edit(SEQUENCE, "8192")
    store.undo()
    store.edit(BATCH, "128")
    assert store.redo() is None


def test_refused_value_leaves_everything(store: Store) -> None:
    generation = store.generation
    with pytest.raises(PlanError):
        store.edit(SEQUENCE, "seven")
    assert (text(store), store.edits, store.generation) == ("4096", 0, generation)


def test_edit_to_the_same_value_is_none(store: Store) -> None:
    assert not store.edit(SEQUENCE, "4096")
    assert store.edits == 0


def test_answer_for_an_earlier_plan_is_refused(store: Store) -> None:
    assert store.document is not None
    earlier, answer = store.generation, store.document.compare()
    store.edit(SEQUENCE, "8192")
    assert not store.accept(earlier, answer)
    assert store.comparison is None
    assert store.accept(store.generation, store.document.compare())
    assert not store.is_stale


def test_changes_count_from_what_was_saved(store: Store, tmp_path: Path) -> None:
    store.edit(SEQUENCE, "8192")
    assert store.document is not None
    assert store.changed(store.document.fields()) == {SEQUENCE: "4096"}
    store.mark_saved(tmp_path)
    assert store.changed(store.document.fields()) == {}
    assert not store.is_changed


def test_columns_are_chosen_in_a_ring(store: Store) -> None:
    assert store.document is not None
    store.accept(store.generation, store.document.compare())
    assert store.column is not None
    assert store.column.mode == "balanced"
    store.choose_next(1)
    store.choose_next(1)
    assert store.mode == "conservative"


def test_pinned_numbers_are_a_baseline_for_each_column(store: Store) -> None:
    assert store.document is not None
    pinned = store.document.compare()
    store.accept(store.generation, pinned)
    store.toggle_pinned_baseline()
    store.edit(SEQUENCE, "8192")
    store.accept(store.generation, store.document.compare())
    assert store.comparison is not None
    for column in store.comparison.columns:
        against = store.baseline.column_for(column, store.comparison)
        assert against in pinned.columns
        assert against is not None
        assert against.mode == column.mode
    store.toggle_pinned_baseline()
    assert store.baseline == Baseline()


def test_saving_a_plan_counts_for_all_its_edits_and_for_no_other_plan(store: Store) -> None:
    store.edit(SEQUENCE, "8192")
    store.open(FakeDocument().edited(BATCH, "128"), Path("other.yaml"))
    assert not store.is_changed
    assert [path for _, path in store.unsaved] == [None]
    store.undo()
    assert store.is_changed
    store.mark_saved(Path("mine.yaml"))
    assert not store.unsaved
    store.undo()
    assert (store.path, text(store), store.is_changed) == (Path("mine.yaml"), "4096", True)
    store.redo()
    store.redo()
    assert (store.path, text(store, BATCH), store.is_changed) == (Path("other.yaml"), "128", False)


@given(st.lists(st.sampled_from(["8192", "16384", "128", "4096"]), max_size=12))
def test_undoing_all_returns_to_the_start_and_redoing_all_to_the_end(values: list[str]) -> None:
    store = Store()
    store.open(FakeDocument())
    for value in values:
        store.edit(SEQUENCE, value)
    end = store.document
    while store.undo():
        pass
    assert text(store) == "4096"
    while store.redo():
        pass
    assert store.document == end
