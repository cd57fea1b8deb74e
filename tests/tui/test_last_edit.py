"""What the last edit did: the change of each figure beside it, and marks on fields that moved along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flow import press, row, settle, shown, until

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.text import MOVED, to_ascii

MakeApp = Callable[..., CapacityApp]
WIDE = (120, 40)
PLAN = """task: finetune
model: {name: llama-3.2-1b}
training: {steps: 100, seq_len: 1024, micro_batch: 1, global_batch: 8, checkpointing: auto}
hardware: {name: rtx-4090}
"""


def edge(app: CapacityApp) -> str:
    return str(app.screen.query_one("#plans").border_subtitle)


async def test_every_figure_that_moved_shows_its_change_at_the_right_of_its_value(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "▲" not in shown(pilot, "plans")
        await press(pilot, "down", "+")
        assert row(pilot, "plans", "activations").split()[-3:] == ["128.0", "GiB", "▲×2.0"]
        assert row(pilot, "plans", "peak").split()[-1].startswith("▲+")
        assert "▲" not in row(pilot, "plans", "optimizer")
        starts = {line.index("▲") for line in shown(pilot, "plans").splitlines() if "▲" in line}
        assert len(starts) == 1
        assert "since the last edit" in edge(app)
        await press(pilot, "-")
        assert "▼-50%" in row(pilot, "plans", "activations")
        assert "v-50%" in to_ascii(row(pilot, "plans", "activations"))


async def test_the_baseline_comes_back_by_a_key_and_stays_where_it_was_pinned(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await until(pilot, "plans", "activations")
        before = row(pilot, "plans", "activations")
        await press(pilot, "down", "+", "escape")
        assert "+300%" in row(pilot, "plans", "activations")
        assert "deltas from conservative" in edge(app)
        await press(pilot, "+", "x")
        assert "deltas from balanced" in edge(app)
        await press(pilot, "x", "u", "u")
        assert row(pilot, "plans", "activations").split()[1:3] == before.split()[1:3]
        await press(pilot, "b", "+")
        assert row(pilot, "plans", "activations").split()[-1] == "+100%"


async def test_pinning_a_column_moves_nothing(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "P")
        assert "▲" not in shown(pilot, "plans")


async def test_a_small_terminal_drops_a_column_for_the_changes(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+")
        assert "▲+70%" in row(pilot, "plans", "peak / GPU")
        assert "[balanced]" in shown(pilot, "plans")
        assert "1–2 of 3" in shown(pilot, "plans")


async def test_values_that_moved_along_are_marked_and_say_why(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(PLAN, encoding="utf-8")
    app = CapacityApp(engine=CapacityEngine, source=path)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        store = app.session.store
        app.session.change("training.tokens", "1000000")
        await settle(pilot)
        assert store.moved_along == {"training.steps": "a job has one length: tokens, steps or epochs"}
        assert f"{MOVED}Steps" in shown(pilot, "config")
        assert "Steps: a job has one length" in shown(pilot, "note")
        app.session.change("training.seq_len", "16384")
        await settle(pilot)
        assert " → " in store.moved_along["training.checkpointing"]
        await press(pilot, "u")
        assert store.moved_along == {}
