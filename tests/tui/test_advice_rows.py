"""Advice on the screen: what it says, how it is taken, and that it is never of another plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fake_engine import FakeEngine
from flow import plan_screen, press, settle, shown

from capacity_tui.engine.estimate import METRICS
from capacity_tui.engine.solve.advice import Offer
from capacity_tui.engine.solve.changes import Effect
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.plan.field_values import advice_of

MakeApp = Callable[..., CapacityApp]
OVER = ("j", "+", "+", "+")  # Sequences so long that nothing fits, from the start


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24)])
async def test_ways_out_stand_on_the_screen_where_nothing_fits(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app().run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, *OVER)
        first = shown(pilot, "advice")
        assert "a ✓ Shorten the sequence" in first
        assert "memory 18.0 GiB -93 %" in first
        assert "speed 20.0 k" in first
        assert "→ fits (a): Shorten the sequence" in shown(pilot, "note")


async def test_advice_is_taken_as_one_edit_and_undone_as_one(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, *OVER)
        store = plan_screen(pilot.app).session.store
        before = store.document
        await press(pilot, "a")
        assert "✓ fits" in shown(pilot, "answer")
        assert store.document.get("training.seq_len") == "1024"
        assert store.document.get("training.micro_batch") == "1"
        assert "u undoes it" in shown(pilot, "note")
        await press(pilot, "u")
        assert store.document == before


async def test_the_advice_under_the_cursor_is_taken(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "6", "j", "enter")
        store = plan_screen(pilot.app).session.store
        assert store.document.get("training.seq_len") == "2048"
        assert store.document.get("training.micro_batch") == "auto"


async def test_advice_on_an_earlier_plan_is_never_taken(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, *OVER)
        engine.gate.clear()
        await pilot.press("plus", "a")
        await pilot.pause()
        store = plan_screen(pilot.app).session.store
        assert store.document.get("training.seq_len") == "65536"
        assert "no advice on this plan yet" in shown(pilot, "note")
        engine.gate.set()
        await settle(pilot)
        assert "memory 18.0 GiB" in shown(pilot, "advice")


async def test_each_plan_is_advised_on_once(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "j", "j", "3", "j", "x", "b", "t")
        assert engine.advised == 1


async def test_a_plan_that_nothing_improves_says_so(make_app: MakeApp) -> None:
    async with make_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "6", "enter", "a", "a")
        assert "no improvement found" in shown(pilot, "advice")
        assert "no improvement found" in shown(pilot, "note")


def test_an_effect_says_its_unit_once() -> None:
    rate = replace(METRICS["computation.tokens_per_second"], label="throughput", unit="tok/s", brief="tok/s")
    effects = tuple(Effect(metric, 400.0, 300.0) for metric in (rate, METRICS["energy.kwh"]))
    texts = [effect.text for effect in advice_of(Offer("Do it", {}, effects, Verdict.FITS)).effects]
    assert texts == ["throughput 300 tok/s -25 %", "energy 300.0 kWh -25 %"]
