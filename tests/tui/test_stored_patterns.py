"""The view of scaling: what the plan stores, and what patterns of its data take to keep."""

from __future__ import annotations

from collections.abc import Callable

from flow import press, row, settle, shown, type_text
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.scale.screen import ScaleScreen

MakeApp = Callable[..., CapacityApp]
WIDE, NARROW = (120, 40), (60, 20)


async def corpus(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "s", "3", *keys)


async def test_the_corpus_is_edited_like_a_plan_which_stays_as_it_is(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await corpus(pilot)
        assert "auto → 1 000 000" in row(pilot, "corpus", "Samples")
        assert "15.0 GB" in row(pilot, "levels", "all")
        assert "15 GB" in shown(pilot, "corpus")
        assert "[1000000✓]" in shown(pilot, "corpus")
        await press(pilot, "+")
        assert "30.0 GB" in row(pilot, "levels", "all")
        await press(pilot, "j", "e")
        await type_text(pilot, "30")
        assert "60.0 GB" in row(pilot, "levels", "all")
        await press(pilot, "u", "u", "ctrl+r")
        assert "30.0 GB" in row(pilot, "levels", "all")
        await press(pilot, "k", "backspace")
        assert "auto" in row(pilot, "corpus", "Samples")
        assert "15.0 GB" in row(pilot, "levels", "all")
        assert pilot.app.session.store.edits == 0


async def test_samples_go_as_far_as_the_disk_and_nonsense_is_refused_below_the_field(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await corpus(pilot, "M")
        assert "4000.0 GB" in row(pilot, "levels", "all")
        await press(pilot, "j", "M")
        assert "only the samples have a limit" in shown(pilot, "note")
        await press(pilot, "e")
        await type_text(pilot, "many")
        assert "✗ many is not a number (such as 100)" in shown(pilot, "corpus")
        assert "auto → 15" in row(pilot, "corpus", "Chunk")


async def test_levels_stand_above_growth_with_the_disk_and_how_often_their_patterns_occur(make_app: MakeApp) -> None:
    async with make_app(ascii_only=True).run_test(size=WIDE) as pilot:
        await corpus(pilot, "4", "j")
        assert "▇▇▇▇▇▇░░░░░░" in row(pilot, "levels", "node0")
        drawn = shown(pilot, "charts")
        assert "disk 4.00 TB free" in drawn
        assert "occurrences over rank, node1" in drawn
        assert "◆" in drawn
        await press(pilot, "G")
        assert "▌The disk is full at 1 M." in shown(pilot, "levels")
        await press(pilot, "y")
        assert "copied too" in shown(pilot, "note")


async def test_every_panel_and_the_pictures_are_in_sight_on_a_small_screen(make_app: MakeApp) -> None:
    async with make_app().run_test(size=NARROW) as pilot:
        await corpus(pilot)
        for key, panel, word in (("1", "devices", "knee 4"), ("2", "storage", "data set"), ("3", "corpus", "Exponent"),
                                 ("4", "levels", "node2")):  # fmt: skip
            await press(pilot, key)
            widget = pilot.app.screen.query_one(f"#{panel}")
            assert widget.has_focus
            assert widget.size.height > 1
            assert word in shown(pilot, panel)
        await press(pilot, "v")
        assert "size over samples" in shown(pilot, "charts")
        assert not pilot.app.screen.query_one("#corpus").size
        await press(pilot, "escape", "escape")
        assert pilot.app.screen.query_one("#devices").has_focus
        assert isinstance(pilot.app.screen, ScaleScreen)
