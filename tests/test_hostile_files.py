"""Damaged files of every kind are read or refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_files import KINDS, broken_reading

FILES = 12  # How many files of a kind: benchmarks/attack.py goes on where these end
# Files that lost an entry once: pages that look whole until they are read again, a schema of another format.
FOUND = {"history": (19, 77, 481, 1160)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused_in_a_line(kind: str, tmp_path: Path) -> None:
    broken = []
    for seed in (*range(FILES), *FOUND.get(kind, ())):
        folder = tmp_path / str(seed)
        folder.mkdir()
        broken += [f"seed {seed}: {fault}" for fault in broken_reading(kind, seed, folder)]
    assert not broken
