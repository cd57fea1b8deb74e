"""Saving, exporting, opening and quitting, as a person does them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from flow import press, row, settle, shown, type_text

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def test_save_export_and_copy_name_their_files(make_app: MakeApp, own_folders: Path) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "S", "enter")
        saved = own_folders / "config" / "plans" / "llama-3-8b.yaml"
        assert "seq_len: 8192" in saved.read_text()
        assert str(saved) in shown(pilot, "note")
        await press(pilot, "+", "w")
        assert "seq_len: 16384" in saved.read_text()
        await press(pilot, "E", "enter")
        await type_text(pilot, "out")
        exported = own_folders / "out.yaml"
        assert exported.read_text().startswith("# balanced")
        assert f"exported {exported.name} to " in shown(pilot, "note")
        await press(pilot, "y")
        assert app.clipboard.startswith("# balanced")
        assert "copied.yaml" in shown(pilot, "note")
        await press(pilot, "Y")
        assert "verdict" in (own_folders / "config" / "copied.txt").read_text(encoding="utf-8")


async def test_nothing_counts_as_a_change_once_it_is_saved(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+")
        await settle(pilot)
        assert "1 change" in shown(pilot, "answer")
        await press(pilot, "w", "enter")
        assert "change" not in shown(pilot, "answer")


async def test_existing_file_is_replaced_only_when_asked_twice(make_app: MakeApp, own_folders: Path) -> None:
    (own_folders / "mine.yaml").write_text("precious")
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "E", "enter")
        await type_text(pilot, "mine")
        assert (own_folders / "mine.yaml").read_text() == "precious"
        assert "exists" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await press(pilot, "enter")
        assert (own_folders / "mine.yaml").read_text().startswith("# balanced")


async def test_folder_is_refused_and_the_prompt_stays(make_app: MakeApp, own_folders: Path) -> None:
    (own_folders / "sub.d").mkdir()
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "E", "enter")
        await type_text(pilot, "sub.d")
        assert "is a folder" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain


async def test_opening_is_undone_like_any_edit(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "o", *"finetune", "enter")
        assert "finetune-8b" in row(pilot, "config", "Model")
        assert "u brings back the previous plan" in shown(pilot, "note")
        assert "change" not in shown(pilot, "answer")
        await press(pilot, "u")
        assert "llama-3-8b" in row(pilot, "config", "Model")
        assert "8192" in row(pilot, "config", "Sequence")
        assert "1 change" in shown(pilot, "answer")
        await press(pilot, "u")
        assert "4096" in row(pilot, "config", "Sequence")
        await press(pilot, "u")
        assert "nothing to undo" in shown(pilot, "note")
        await press(pilot, "ctrl+r", "ctrl+r")
        assert "finetune-8b" in row(pilot, "config", "Model")


async def test_quitting_warns_about_a_plan_that_another_was_opened_over(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "o", *"finetune", "enter", "q")
        assert "q again quits" in shown(pilot, "note")
        assert app.is_running


async def test_quitting_warns_once_about_unsaved_changes(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "q")
        assert "q again quits" in shown(pilot, "note")
        assert app.is_running
        await pilot.press("q")
    assert app.return_code == 0


async def test_quit_does_not_wait_for_the_sensors(make_app: MakeApp) -> None:
    started = 0.0
    async with make_app(settings={"live_seconds": 30.0}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        started = time.perf_counter()
        await pilot.press("q")
    assert time.perf_counter() - started < 20.0  # the sampler waits for 30
