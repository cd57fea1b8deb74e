"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from capacity_tui.engine.errors import StorageError
from capacity_tui.engine.files import rename_file, write_atomically


def test_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "text\n")
    (tmp_path / "b").write_text("text\n")
    assert (tmp_path / "a").read_text() == "text\n"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_replacing_needs_consent_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    with pytest.raises(StorageError, match="already"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    write_atomically(path, "new", overwrite=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_device_is_written_to_not_replaced() -> None:
    write_atomically(Path(os.devnull), "text", overwrite=True)
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize(("name", "remedy"), [("missing/a", "make the folder"), (".", "name a file")])
def test_impossible_places_have_a_remedy(tmp_path: Path, name: str, remedy: str) -> None:
    with pytest.raises(StorageError, match=remedy):
        write_atomically(tmp_path / name, "text")


def test_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    write_atomically(tmp_path / "a", "one")
    write_atomically(tmp_path / "b", "two")
    with pytest.raises(StorageError, match="already"):
        rename_file(tmp_path / "a", tmp_path / "b")
    rename_file(tmp_path / "a", tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c"]
