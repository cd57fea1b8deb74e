"""Plans pinned as columns beside the plan: named, kept in its file, undone, taken away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from flow import press, row, settle, shown, type_text

from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan.sections import MOST_SCENARIOS
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.comparison import Column

MakeApp = Callable[..., CapacityApp]
PLAN = "task: infer\nmodel: {name: llama-3.1-8b}\ninference: {batch: 4}\nhardware: {name: h100-sxm-80gb}\n"


@pytest.fixture(scope="module")
def engine() -> CapacityEngine:
    return CapacityEngine()


@pytest.fixture(scope="module")
def document(engine: CapacityEngine) -> PlanDocument:
    return engine.open(PLAN)


def texts(column: Column | None) -> dict[str, str]:
    assert column is not None
    return {each.key: each.text for each in column.rows if not each.key.startswith("mode.")}


def test_a_pin_keeps_its_numbers_across_hardware_and_models(document: PlanDocument) -> None:
    pinned = document.pinned("balanced")
    other = pinned.edited("hardware.name", "rtx-4090").edited("model.name", "qwen2.5-7b")
    column = other.compare().column("A")
    assert texts(column) == texts(document.compare().column("balanced"))
    assert column and column.is_pinned and "llama-3.1-8b" in column.about[0]
    assert texts(other.compare().column("balanced")) != texts(column)
    key = "memory.reserved_bytes"
    assert other.explain("A", key).result == document.explain("balanced", key).result
    assert "llama-3.1-8b" in other.dump("A")


def test_pins_are_saved_with_the_plan_and_read_again(
    document: PlanDocument, engine: CapacityEngine, tmp_path: Path
) -> None:
    kept = document.pinned("balanced").pinned("lowest latency").renamed("B", "quick one")
    path = tmp_path / "plan.yaml"
    path.write_text(kept.dump(), encoding="utf-8")
    again = engine.open(path)
    assert again.pins() == ("A", "quick one")
    assert [texts(column) for column in again.compare().columns] == [texts(each) for each in kept.compare().columns]
    assert "scenarios" not in kept.dump("balanced"), "what is exported of one column is that plan alone"


def test_there_is_an_end_to_pins(document: PlanDocument) -> None:
    for _ in range(MOST_SCENARIOS):
        document = document.pinned("balanced")
    with pytest.raises(PlanError):
        document.pinned("balanced")


def test_a_pin_that_cannot_be_estimated_says_why(engine: CapacityEngine) -> None:
    beside = "scenarios: {A: {model: {name: gpt2}, hardware: {name: gone}}}"
    column = engine.open(f"model: {{name: gpt2}}\nhardware: {{name: rtx-4090}}\n{beside}\n").compare().column("A")
    assert column is not None
    assert (column.verdict, column.rows) == (Verdict.CANNOT_RUN, ())
    assert "gone" in column.reason


async def test_pins_are_made_named_and_taken_away_by_keys(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        before = row(pilot, "plans", "peak")
        await press(pilot, "R")
        assert "only pinned columns" in shown(pilot, "note")
        await press(pilot, "P")
        assert "is pinned as A" in shown(pilot, "note")
        assert shown(pilot, "plans").splitlines()[0].split()[-1] == "A"
        await press(pilot, "down", "+")
        assert row(pilot, "plans", "peak") != before
        await press(pilot, "R")
        await type_text(pilot, "small")
        assert "[small]" in shown(pilot, "plans")
        assert "small:" in shown(pilot, "answer")
        await press(pilot, "P")
        assert "small" not in shown(pilot, "plans")
        await press(pilot, "u")
        assert "small" in shown(pilot, "plans")
        await press(pilot, "u", "u", "u")
        assert "A" not in shown(pilot, "plans").splitlines()[0].split()
        assert row(pilot, "plans", "peak") == before


async def test_columns_without_room_are_counted_and_the_chosen_one_is_in_sight(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, *("P" for _ in range(1)), "c", "c", "c")
        for _ in range(4):
            assert any("[" in name for name in shown(pilot, "plans").splitlines()[0].split())
            await press(pilot, "c")


async def test_a_real_plan_is_pinned_and_saved(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(PLAN, encoding="utf-8")
    app = CapacityApp(engine=CapacityEngine, source=path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "P", "w")
        assert "saved" in shown(pilot, "note")
    assert "scenarios:\n  A:\n    task: infer" in path.read_text("utf-8")


async def test_enter_takes_a_pinned_plan_over_in_one_edit(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(PLAN, encoding="utf-8")
    app = CapacityApp(engine=CapacityEngine, source=path)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        store = app.session.store
        await press(pilot, "P")
        app.session.change("inference.batch", "16")
        await settle(pilot)
        store.choose("A")
        await press(pilot, "3", "enter")
        assert store.document.plan.inference.batch == 4
        assert store.document.pins() == ("A",)
        assert "A is now the plan" in shown(pilot, "note")
        assert "▼" in row(pilot, "plans", "peak memory")
        await press(pilot, "u")
        assert store.document.plan.inference.batch == 16


async def test_long_times_of_four_columns_keep_their_days(tmp_path: Path, engine: CapacityEngine) -> None:
    path = tmp_path / "compared.yaml"
    compared, _ = engine.plan_of_line("a100 vs h100 train qwen2.5-7b 1T tokens 8 gpus", None)
    path.write_text(compared.dump(), encoding="utf-8")
    app = CapacityApp(engine=CapacityEngine, source=path)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        times = row(pilot, "plans", "time")
    assert "…" not in times
    assert times.split().count("d") == 4
