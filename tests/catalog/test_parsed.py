"""The parsed form of shipped catalogues: kept, never stale, never needed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import parse_shipped, shipped

PROFILES = Path(__file__).parents[2] / "profiles"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shipped, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "catalog"


def test_a_changed_file_is_read_anew_and_the_old_form_dropped(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text("a: {size: 1}\n")
    assert parse_shipped(file) == {"a": {"size": 1}}
    file.write_text("a: {size: 2}\n")
    assert parse_shipped(file) == {"a": {"size": 2}}
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damaged", ["{", "null", "[]", "{}", '{"a": {}}', "", "\xff"])
def test_a_damaged_form_is_replaced(damaged: str, cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text("a: {size: 1}\n")
    parse_shipped(file)
    (kept,) = cache.iterdir()
    sound = kept.read_text()
    kept.write_text(damaged)
    assert parse_shipped(file) == {"a": {"size": 1}}
    assert kept.read_text() == sound


def test_without_a_writable_cache_everything_still_loads(cache: Path, tmp_path: Path) -> None:
    cache.parent.write_text("a file where the folder should be")
    file = tmp_path / "rows.yaml"
    file.write_text("a: {size: 1}\n")
    assert parse_shipped(file) == {"a": {"size": 1}}


def test_no_two_shipped_files_have_one_name() -> None:
    """The kept form goes by a file's name: two of one name would drop each other's at every start."""
    names = Counter(path.stem for path in PROFILES.rglob("*.yaml") if "examples" not in path.parts)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_file_says_the_same_when_it_is_first_read(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text("a: {checked: 2026-11-21}\n")
    assert parse_shipped(file) == parse_shipped(file) == {"a": {"checked": "2026-11-21"}}
