"""Saved plans survive: damage, full disks, read-only folders, two programs at once."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from capacity_tui.engine.errors import PlanError, StorageError
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import delete_plan, list_plans, rename_plan, saved
from capacity_tui.engine.plan.files.saved import load_saved, save_plan

PLAN = Plan.model_validate({"model": {"name": "llama-3-8b"}, "hardware": {"name": "rtx-4090"}})
OTHER = Plan.model_validate({"model": {"name": "gpt2-small"}})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "plans"


def test_nothing_is_saved_at_first() -> None:
    assert list_plans() == ()


def test_save_load_rename_delete() -> None:
    save_plan("first try", PLAN)
    assert load_saved("first try") == PLAN
    rename_plan("first try", "second")
    assert [entry.name for entry in list_plans()] == ["second"]
    assert load_saved("second") == PLAN
    delete_plan("second")
    assert list_plans() == ()


def test_saving_again_needs_consent() -> None:
    save_plan("a", PLAN)
    with pytest.raises(StorageError, match="already"):
        save_plan("a", OTHER)
    assert load_saved("a") == PLAN
    save_plan("a", OTHER, overwrite=True)
    assert load_saved("a") == OTHER


def test_renaming_never_replaces() -> None:
    save_plan("a", PLAN)
    save_plan("b", OTHER)
    with pytest.raises(StorageError, match="already"):
        rename_plan("a", "b")
    assert load_saved("a") == PLAN
    assert load_saved("b") == OTHER


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", ".hidden", "a\nb", "x" * 200, "a.yaml", "-x", "a\0b"])
def test_names_that_are_no_file_names(name: str) -> None:
    with pytest.raises(PlanError, match="cannot be the name"):
        save_plan(name, PLAN)


def test_unknown_name_suggests_the_nearest() -> None:
    save_plan("llama run", PLAN)
    with pytest.raises(PlanError, match="did you mean 'llama run'"):
        load_saved("lama run")


@pytest.mark.parametrize("content", [b"model: [", b"\xff\xfe\x00\x01", b"a\x00b", b"x: 1\nx: 2\n"])
def test_damaged_file_is_moved_aside(folder: Path, content: bytes) -> None:
    path = save_plan("a", PLAN)
    path.write_bytes(content)
    with pytest.raises(PlanError, match="kept as"):
        load_saved("a")
    (kept,) = folder.iterdir()
    assert kept.name.startswith("a.corrupt-")
    assert kept.read_bytes() == content
    assert list_plans() == ()


def test_wrong_value_is_reported_and_left_to_be_corrected() -> None:
    path = save_plan("a", PLAN)
    path.write_text("model: {name: x}\ntraining: {micro_batch: 0}\n")
    with pytest.raises(PlanError, match=r"training\.micro_batch"):
        load_saved("a")
    assert path.exists()


def test_overwriting_keeps_what_could_not_be_read(folder: Path) -> None:
    path = save_plan("a", PLAN)
    path.write_text("model: {name: x}\ntraining: {micro_batch: 0}\n")
    save_plan("a", OTHER, overwrite=True)
    assert load_saved("a") == OTHER
    kept = [entry for entry in folder.iterdir() if "corrupt" in entry.name]
    assert len(kept) == 1
    assert "micro_batch: 0" in kept[0].read_text()


def test_two_damaged_files_in_one_second_are_both_kept(folder: Path) -> None:
    for number in range(3):
        save_plan("a", PLAN).write_text(f"[{number}")
        with pytest.raises(PlanError):
            load_saved("a")
    assert len(list(folder.iterdir())) == 3


def test_older_form_loads() -> None:
    path = save_plan("old", PLAN)
    path.write_text(
        "version: 0\nmodel:\n  name: mlp\n  spec: {n: 1000, layers: [8], batch_size: 32, epochs: 2}\n"
        "  optimization: adam\nhardware: {name: RTX_3060_fp16, parallel_devices: 2}\n"
    )
    plan = load_saved("old")
    assert (plan.version, plan.training.micro_batch, plan.training.epochs) == (1, 32, 2)
    assert (plan.training.optimizer, plan.training.samples, plan.hardware.devices) == ("adamw", 1000, 2)
    assert plan.model.spec == {"layers": [8]}


def test_newer_version_is_refused_and_kept() -> None:
    path = save_plan("new", PLAN)
    path.write_text("version: 2\nmodel: {name: x}\n")
    with pytest.raises(PlanError, match="newer"):
        load_saved("new")
    assert path.exists()


def test_full_disk_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_plan("a", PLAN)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("capacity_tui.engine.files.os.fsync", full)
    with pytest.raises(StorageError, match="free some space"):
        save_plan("a", OTHER, overwrite=True)
    monkeypatch.undo()
    monkeypatch.setenv("CAPACITY_TUI_DATA", str(folder.parent))
    assert load_saved("a") == PLAN
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]


def test_read_only_home_names_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(self: Path, *args: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match="may write"):
        save_plan("a", PLAN)


def test_folder_in_the_way_is_reported(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("not a folder")
    with pytest.raises(StorageError):
        save_plan("a", PLAN)
    assert list_plans() == ()


def test_two_programs_writing_at_once_leave_a_whole_plan(folder: Path) -> None:
    def write(plan: Plan) -> None:
        for _ in range(10):
            save_plan("a", plan, overwrite=True)

    threads = [threading.Thread(target=write, args=(plan,)) for plan in (PLAN, OTHER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_saved("a") in (PLAN, OTHER)
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]


def test_of_two_new_plans_of_one_name_the_first_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_plan("a", PLAN)
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(StorageError, match="already"):
        save_plan("a", OTHER)
    monkeypatch.undo()
    assert "llama-3-8b" in path.read_text()


def test_default_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPACITY_TUI_DATA")
    assert saved.plans_folder().parts[-2:] == ("capacity-tui", "plans")


def test_replacing_a_damaged_file_keeps_it_aside(tmp_path: Path) -> None:
    path = tmp_path / "plans" / "mine.yaml"
    assert saved.write_plan_file(path, "model: {name: gpt2}\nhardware: {name: rtx-4090}\n") is None
    path.write_bytes(b"\xff\xfe damaged")
    aside = saved.write_plan_file(path, "model: {name: gpt2}\nhardware: {name: rtx-4090}\n", overwrite=True)
    assert aside is not None
    assert aside.read_bytes() == b"\xff\xfe damaged"
    assert path.read_text().startswith("model:")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_passing_read_error_moves_nothing(code: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_plan("a", PLAN)
    real = Path.open

    def refuse(self: Path, *args: object, **options: object) -> object:
        if self == path:
            raise OSError(code, os.strerror(code))
        return real(self, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StorageError, match="cannot be read"):
        load_saved("a")
    with pytest.raises(StorageError, match="cannot be read"):
        save_plan("a", OTHER, overwrite=True)
    monkeypatch.setattr(Path, "open", real)
    assert [entry.name for entry in folder.iterdir()] == ["a.yaml"]
    assert load_saved("a") == PLAN


def test_odd_entries_hide_no_plan(folder: Path) -> None:
    save_plan("a", PLAN)
    (folder / "nowhere.yaml").symlink_to(folder / "absent")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    (folder / "folder.yaml").mkdir()
    assert [entry.name for entry in list_plans()] == ["a"]
    with pytest.raises(PlanError, match="no saved plan"):
        load_saved("aa")


def test_a_plan_deleted_meanwhile_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    save_plan("a", PLAN)
    gone = save_plan("b", PLAN)
    real = Path.stat

    def stat(self: Path, **options: bool) -> os.stat_result:
        if self == gone:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert [entry.name for entry in list_plans()] == ["a"]


def test_drafts_of_programs_that_were_killed_are_removed(folder: Path) -> None:
    save_plan("a", PLAN)
    stale, young = folder / ".capacity-tui-draft-old", folder / ".capacity-tui-draft-new"
    for draft in (stale, young):
        draft.write_text("half")
    os.utime(stale, (0, 0))
    save_plan("b", PLAN)
    assert not stale.exists()
    assert young.exists()
