"""The view of a cluster: its nodes, planning for what is free, where the plan lies, the queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_engine import FakeEngine
from flow import press, row, settle, shown
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.cluster.screen import ClusterScreen

MakeApp = Callable[..., CapacityApp]
LARGE, WIDE, USUAL, NARROW, TINY = (200, 60), (120, 40), (80, 24), (60, 20), (40, 12)


async def cluster(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "l", *keys)


def devices(pilot: Pilot[None]) -> str:
    return pilot.app.session.store.document.get("hardware.devices")


async def test_nodes_placement_and_queue_stand_together(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await cluster(pilot)
        nodes = shown(pilot, "nodes")
        assert "■ planned" in nodes
        assert "slurm, just now" in nodes
        assert "[▒▒▒▒]" in row(pilot, "nodes", "node 5")
        assert "[░░░✗]  node 6: GPU 3 missing" in row(pilot, "nodes", "node 6")
        assert "▸ fabric" in shown(pilot, "placement")
        assert "hottest link" in shown(pilot, "placement")
        assert "pending" in row(pilot, "queue", "42")


async def test_enter_plans_for_what_is_free_in_one_edit_that_undo_takes_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        before = devices(pilot)
        await cluster(pilot, "enter")
        assert devices(pilot) == "16"
        assert pilot.app.session.store.edits == 1
        await press(pilot, "enter")
        assert "that is the plan already" in shown(pilot, "note")
        await press(pilot, "u")
        assert devices(pilot) == before
        assert isinstance(pilot.app.screen, ClusterScreen)


async def test_a_busy_node_is_neither_planned_for_nor_pinned_and_says_so(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        before = devices(pilot)
        await cluster(pilot, *["j"] * 5, "enter")
        assert "nothing here is free" in shown(pilot, "note")
        await press(pilot, "P")
        assert "nothing here is free" in shown(pilot, "note")
        assert devices(pilot) == before
        await press(pilot, "g", "P")
        assert pilot.app.session.store.document.pins() == ("A",)


async def test_rows_stand_for_more_or_less(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await cluster(pilot, "-")
        assert "rack 3" in shown(pilot, "nodes")
        assert "by rack" in pilot.app.screen.query_one("#nodes").border_subtitle
        await press(pilot, "-", "-")
        assert len(shown(pilot, "nodes").splitlines()) == 2
        await press(pilot, "+", "+", "+")
        assert "node 6" in shown(pilot, "nodes")


@pytest.mark.parametrize("size", [LARGE, USUAL, NARROW, TINY])
async def test_every_panel_is_reached_at_any_size(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app(ascii_only=True).run_test(size=size) as pilot:
        await cluster(pilot)
        assert "16 free" in shown(pilot, "nodes")
        await press(pilot, "2")
        assert "fabric" in shown(pilot, "placement")
        await press(pilot, "tab")
        assert "running" in shown(pilot, "queue")
        for panel in ("nodes", "placement", "queue"):
            assert all(len(line) <= size[0] for line in shown(pilot, panel).splitlines())


async def test_the_plan_is_followed_while_the_view_is_shown(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await cluster(pilot)
        pilot.app.session.change("hardware.devices", "8")
        await settle(pilot)
        assert "[■■■■]" in row(pilot, "nodes", "node 2")
        assert "[░░░░]" in row(pilot, "nodes", "node 3")
