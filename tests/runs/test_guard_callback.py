"""The callback: batches that shrink before memory runs out, grow again, and never disturb the training."""

from __future__ import annotations

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_tui.engine.runs.guard import GuardCallback
from capacity_tui.engine.runs.guard.callback import MicroBatchControl


@given(
    st.integers(0, 7).map(lambda power: 2**power),
    st.integers(1, 6),
    st.lists(st.one_of(st.none(), st.floats(0, 1.2)), max_size=300),
)
def test_the_samples_of_a_step_stay_the_same_whatever_memory_does(largest, times, shares):
    control = MicroBatchControl(largest, largest * times, 0.9)
    for share in shares:
        assert control.step(share) * control.accumulation == largest * times
        assert 1 <= control.current <= largest


def course(control, others, steps):
    """Return the micro-batches of steps in which each sample takes a tenth of memory."""
    return [control.step(others + control.current / 10) for _ in range(steps)]


def test_memory_that_others_take_shrinks_it_until_they_are_gone():
    control = MicroBatchControl(8, 64, 0.9)
    assert set(course(control, 0.05, 100)) == {8}
    assert course(control, 0.3, 100)[-1] == 4
    assert control.accumulation == 16
    assert course(control, 0.05, 100)[-1] == 8


def test_it_does_not_flutter_where_the_larger_one_does_not_fit():
    control = MicroBatchControl(8, 64, 0.9)
    found = course(control, 0.2, 2000)
    assert sum(1 for before, after in pairwise(found) if before != after) <= 1


def test_a_lone_spike_changes_nothing():
    control = MicroBatchControl(8, 64, 0.9)
    assert [control.step(share) for share in (0.5, 0.99, 0.5, 0.99, 0.5)] == [8] * 5


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "attempt-2").mkdir()
    for name, text in {
        "CAPACITY_TUI_RUN_FOLDER": str(tmp_path),
        "CAPACITY_TUI_RUN_ATTEMPT": "2",
        "CAPACITY_TUI_TRAINING_MICRO_BATCH": "4",
        "CAPACITY_TUI_RUN_ACCUMULATION": "8",
        "CAPACITY_TUI_WATCH_MEMORY_SHARE": "0.8",
    }.items():
        monkeypatch.setenv(name, text)
    return tmp_path / "attempt-2" / "told.jsonl"


def test_a_loop_tells_steps_and_saves_and_goes_on_with_a_smaller_batch(run):
    guard = GuardCallback(memory=lambda: 0.85)
    for step in range(2):
        guard.step(step, loss=2.5, tokens_per_second=100.0)
    with guard.saving():
        pass
    assert (guard.micro_batch, guard.accumulation, guard.problem) == (2, 16, "")
    told = [json.loads(line) for line in run.read_text().splitlines()]
    assert told[0] == {"step": 0, "loss": 2.5, "memory_share": 0.85, "tokens_per_second": 100.0}
    assert [event["event"] for event in told if "event" in event] == ["micro_batch", "saved"]


def test_a_save_is_due_as_often_as_the_guard_found_that_it_pays(run, monkeypatch):
    monkeypatch.setenv("CAPACITY_TUI_RECOVERY_CHECKPOINT_EVERY", "3600")
    guard = GuardCallback(memory=lambda: None, saves=True)
    assert not guard.save_is_due
    run.with_name("save_every").write_text("0\n")
    guard._every_read_at -= 60
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    guard.on_step_end(None, SimpleNamespace(global_step=1), control)
    assert control.should_save
    assert not guard.problem


def test_replicas_keep_the_batch_of_their_peers(run, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    guard = GuardCallback(memory=lambda: 0.99)
    for step in range(5):
        guard.step(step)
    assert guard.micro_batch == 4
    assert not run.exists()


def broken():
    raise RuntimeError("no such device")


@pytest.mark.parametrize("memory", [broken, lambda: "much"])
def test_whatever_goes_wrong_stays_with_the_callback(run, monkeypatch, memory):
    monkeypatch.setenv("CAPACITY_TUI_RUN_FOLDER", "/dev/null/nowhere")
    guard = GuardCallback(memory=memory)
    control = SimpleNamespace(should_save=False, should_training_stop=False)
    guard.step(1, loss=float("nan"))
    guard.on_train_begin(None, None, control)
    guard.on_step_end(None, object(), control)
    guard.on_log(None, None, control, logs={"loss": object()})
    guard.on_save(None, None, control)
    assert guard.problem
    assert not control.should_training_stop
    assert not hasattr(guard, "other")


def test_the_errors_of_the_training_are_its_own(run):
    guard = GuardCallback(memory=lambda: None)
    with pytest.raises(ValueError, match="disk"), guard.saving():
        raise ValueError("disk")


def test_without_a_guard_it_still_keeps_the_batch_within_memory(monkeypatch):
    monkeypatch.delenv("CAPACITY_TUI_RUN_FOLDER", raising=False)
    guard = GuardCallback(8, accumulation=2, limit=0.5, memory=lambda: 0.6)
    guard.step(1)
    guard.step(2)
    assert (guard.micro_batch, guard.accumulation) == (4, 4)
    assert 0 < GuardCallback()._memory() <= 1
