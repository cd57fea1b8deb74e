"""Guards that are killed at any moment lose nothing and leave nothing behind."""

from __future__ import annotations

from benchmarks.guard_kills import kill_guards


def test_what_killed_guards_leave_is_whole(tmp_path):
    found = kill_guards(5, tmp_path, seed=3)
    assert found.kills >= 5
    assert found.rows >= 100
    assert found.is_clean, found
