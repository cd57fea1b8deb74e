"""YAML as plain data with a line for every key, and what was parsed once kept."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import parse_shipped, read_yaml, shipped
from capacity_tui.engine.catalog.reading import LARGEST_FILE
from capacity_tui.engine.errors import CapacityError, DocumentError, StorageError
from capacity_tui.engine.printable import printable

PLAN = """\
version: 1
model:
  name: llama-3-8b  # a comment
  spec: {}
training:
  tokens: 2.0e9
  compile: no
hardware: {name: h100,
           devices: 8}
counts:
  - 1
  - 2.5
checked: 2026-11-21
nothing: null
quoted: "8"
"""


def test_data_and_lines() -> None:
    document = read_yaml(PLAN, "plan.yaml")
    assert document.data == {
        "version": 1,
        "model": {"name": "llama-3-8b", "spec": {}},
        "training": {"tokens": 2.0e9, "compile": False},
        "hardware": {"name": "h100", "devices": 8},
        "counts": [1, 2.5],
        "checked": date(2026, 11, 21),
        "nothing": None,
        "quoted": "8",
    }
    assert str(document.place("hardware", "devices")) == "plan.yaml:9: hardware.devices"
    assert document.place("counts", 1).line == 12
    assert document.place("model", "config").line == 2  # absent: its parent's line
    assert document.place().line == 1


def test_empty_text_is_nothing() -> None:
    assert read_yaml("").data is None
    assert read_yaml("# only a comment\n").data is None


def test_aliases_are_written_out() -> None:
    assert read_yaml("a: &x [1, 2]\nb: *x\n").data == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    ("text", "line", "title"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key given twice"),
        ("a: 1\n2: b\n", 2, "a key must be text"),
        ("a: 1\n? [x]\n: b\n", 2, "a key must be text"),
        ("a:\n  b: !!python/object/apply:os.system [ls]\n", 2, "unknown tag"),
        ("a: !secret x\n", 1, "unknown tag"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "merge keys are not read"),
        ("a: 1\n---\nb: 2\n", 2, "more than one document"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: *nowhere\n", 1, None),
        ("a: &a [*a]\n", 1, None),
        ("a: 2026-13-45\n", 1, "cannot read this as timestamp"),
        ("a: \t- b\n\t c\n", None, "not valid YAML"),
        ("[" * 5000, None, None),
        ("a: " + "{b: " * 200, None, None),
        ("a: " + "1" * 10_000, 1, None),
    ],
)
def test_refused_with_its_line(text: str, line: int | None, title: str | None) -> None:
    with pytest.raises(DocumentError) as caught:
        read_yaml(text, "mine.yaml")
    assert caught.value.place.file == "mine.yaml"
    assert len(caught.value.one_line()) < 400
    if line is not None:
        assert caught.value.place.line == line
    if title is not None:
        assert caught.value.title == title


def test_an_alias_bomb_is_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentError, match="too large"):
        read_yaml("\n".join(rows))


def test_files_that_are_no_text(tmp_path: Path) -> None:
    binary = tmp_path / "model.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\xfe\x00\x01")
    with pytest.raises(DocumentError, match="UTF-8") as caught:
        read_yaml(binary)
    assert caught.value.place.line == 2
    binary.write_bytes(b"a: 1\0\0\0")
    with pytest.raises(DocumentError, match="binary"):
        read_yaml(binary)
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"a" * (LARGEST_FILE + 1))
    with pytest.raises(DocumentError, match="too large"):
        read_yaml(huge)
    with pytest.raises(StorageError, match="cannot be read"):
        read_yaml(tmp_path / "absent.yaml")
    with pytest.raises(StorageError, match="not a file"):
        read_yaml(tmp_path)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_yaml(path).data == {"a": 1, "b": 2}


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>?#'\" \n\t0.~<%@`", max_size=60))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        read_yaml(text)
    except CapacityError as refusal:
        assert printable(refusal.one_line()) == refusal.one_line()


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
