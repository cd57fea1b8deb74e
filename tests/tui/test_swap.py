"""Edits that no file holds: kept while the program runs, offered after it was killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from flow import once, press, row, settle, shown

from capacity_tui.engine.errors import StorageError
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.unsaved import KeptPlan, Swap
from capacity_tui.tui.widgets.lines import Lines

MakeApp = Callable[..., CapacityApp]
SIZE = (120, 40)
PLAN = KeptPlan("llama-3-8b", "", "training.seq_len: 8192\n")
OTHER = KeptPlan("gpt2", "/plans/gpt2.yaml", "model.name: gpt2\n")


def end_without_a_word(swap: Swap) -> None:
    """Let go of the lock as the operating system does for a process that ends."""
    import os

    assert swap._lock is not None
    os.close(swap._lock)


def test_what_a_running_program_keeps_is_offered_to_no_other(tmp_path: Path) -> None:
    running = Swap(tmp_path)
    running.keep([PLAN], 1)
    assert not Swap(tmp_path).left_behind()
    running.close()
    assert not list(tmp_path.iterdir())


def test_what_was_left_behind_is_offered_once_at_a_time_until_it_is_discarded(tmp_path: Path) -> None:
    killed = Swap(tmp_path)
    killed.keep([PLAN, OTHER], 1)
    end_without_a_word(killed)
    (offered,) = Swap(tmp_path).left_behind()
    assert offered.plans == (PLAN, OTHER)
    assert not Swap(tmp_path).left_behind()
    offered.leave()
    (again,) = Swap(tmp_path).left_behind()
    again.discard()
    assert not list(tmp_path.iterdir())


def test_a_later_run_writes_over_nothing_that_was_left_behind(tmp_path: Path) -> None:
    for _ in range(3):
        swap = Swap(tmp_path)
        swap.keep([PLAN], 1)
        end_without_a_word(swap)
    assert len(Swap(tmp_path).left_behind()) == 3


def test_an_older_write_that_comes_late_is_passed_over(tmp_path: Path) -> None:
    swap = Swap(tmp_path)
    swap.keep([OTHER], 2)
    swap.keep([PLAN], 1)
    end_without_a_word(swap)
    (offered,) = Swap(tmp_path).left_behind()
    assert offered.plans == (OTHER,)


def test_nothing_is_kept_of_what_is_saved_nor_after_the_end(tmp_path: Path) -> None:
    swap = Swap(tmp_path)
    swap.keep([PLAN], 1)
    swap.keep([], 2)
    assert not list(tmp_path.iterdir())
    swap.close()
    swap.keep([PLAN], 3)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["", "{", "null", "7", "[[]]", '[{"name": "x"}]', '[{"name": 1, "path": 2, "text": 3}]']
)
def test_damaged_file_is_set_aside_and_hides_no_other(tmp_path: Path, text: str) -> None:
    killed = Swap(tmp_path)
    killed.keep([PLAN], 1)
    end_without_a_word(killed)
    damaged = tmp_path / "host-1-0.plans.json"
    damaged.write_text(text)
    offered = Swap(tmp_path).left_behind()
    assert [kept.plans for kept in offered] == [(PLAN,)]
    assert not damaged.exists()
    assert [path.read_text() for path in tmp_path.glob("*corrupt*")] == [text]


def test_place_that_cannot_be_written_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        Swap(tmp_path / "file" / "folder").keep([PLAN], 1)
    assert not Swap(tmp_path / "file" / "folder").left_behind()


async def test_edits_are_kept_and_given_up_on_an_orderly_end(make_app: MakeApp, own_folders: Path) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+")
        await once(pilot, lambda: list((own_folders / "state" / "unsaved").glob("*.json")))
        (file,) = (own_folders / "state" / "unsaved").glob("*.json")
        (plan,) = json.loads(file.read_text())
        assert "training.seq_len: 8192" in plan["text"]
        await press(pilot, "w", "enter")
        await once(pilot, lambda: not file.exists())
        await press(pilot, "+")
        await once(pilot, lambda: list((own_folders / "state" / "unsaved").glob("*.json")))
        await press(pilot, "q")
        await pilot.press("q")
    assert not list((own_folders / "state" / "unsaved").iterdir())


async def test_whoever_types_already_is_told_and_keeps_the_keys(make_app: MakeApp, own_folders: Path) -> None:
    killed = Swap(own_folders / "state" / "unsaved")
    killed.keep([PLAN, OTHER], 1)
    end_without_a_word(killed)
    app = make_app()
    app.session.was_typed = True
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "unsaved changes from the last session: llama-3-8b, gpt2; O restores" in shown(pilot, "note")
        await press(pilot, "O", "enter")
        await once(pilot, lambda: "8192" in row(pilot, "config", "Sequence"))


@pytest.mark.parametrize(
    ("keys", "stays"), [(("enter",), True), ((*"later", "enter"), True), ((*"discard", "enter"), False)]
)
async def test_what_was_left_behind_is_offered_at_the_start(
    make_app: MakeApp, own_folders: Path, keys: tuple[str, ...], stays: bool
) -> None:
    folder = own_folders / "state" / "unsaved"
    killed = Swap(folder)
    killed.keep([PLAN, OTHER], 1)
    end_without_a_word(killed)
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await once(pilot, lambda: "llama-3-8b, gpt2" in app.screen.query_one("Lines", Lines).lines[0].plain)
        await press(pilot, *keys)
        await once(pilot, lambda: bool(list(folder.glob("*.json"))) == stays)
        await settle(pilot)
        if keys == ("enter",):
            await once(pilot, lambda: "8192" in row(pilot, "config", "Sequence"))
            assert "restored" in shown(pilot, "note")
            await press(pilot, "u")
            assert "gpt2" in row(pilot, "config", "Model")
            await press(pilot, "u")
            assert "4096" in row(pilot, "config", "Sequence")
