"""What the screen says about a plan: numbers, deltas, explanations, failures."""

from __future__ import annotations

from collections.abc import Callable

from fake_engine import FakeEngine
from flow import once, plan_screen, press, row, settle, shown, until

from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]
WIDE, USUAL, NARROW, TINY = (120, 40), (80, 24), (60, 20), (40, 12)


async def test_start_shows_plan_modes_machine_reason_and_sensors(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert "H100 SXM  79.6 GiB" in shown(pilot, "hardware")
        assert "detected" in shown(pilot, "hardware")
        assert "n/a (not mounted)" in shown(pilot, "hardware")
        assert "auto → 2" in row(pilot, "config", "Micro batch")
        assert row(pilot, "plans", "verdict").split() == ["verdict", "✓", "fits", "✓", "fits", "!", "tight"]
        assert "micro_batch × seq_len" in shown(pilot, "why")
        assert "GPU" in shown(pilot, "live")
        assert "llama-3-8b" in shown(pilot, "tabs")


async def test_first_frame_says_that_hardware_is_being_detected(make_app: MakeApp, engine: FakeEngine) -> None:
    engine.gate.clear()
    async with make_app().run_test(size=WIDE) as pilot:
        await until(pilot, "hardware", "detecting…")
        engine.gate.set()
        await settle(pilot)
        assert "detecting…" not in shown(pilot, "hardware")


async def test_deltas_count_from_the_chosen_baseline(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert row(pilot, "plans", "tokens/s").split()[-3:] == ["30.3", "k", "+52%"]
        await press(pilot, "3", "l", "x")
        assert "-34%" in row(pilot, "plans", "tokens/s")
        await press(pilot, "b", "2", "down", "+")
        assert "+100%" in row(pilot, "plans", "activations")


async def test_explanation_follows_row_and_column(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "3", "j", "j", "l")
        assert shown(pilot, "why").startswith("time (extreme)")
        await press(pilot, "enter", "enter")
        dialog = pilot.app.screen.query_one("TextLines").lines
        assert any("Korthikanti" in line.plain for line in dialog)


async def test_stale_answer_is_dropped(make_app: MakeApp, engine: FakeEngine) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        engine.gate.clear()
        await pilot.press("down", "plus", "plus", "plus")
        await until(pilot, "plans", "updating")
        compared = engine.compared
        engine.gate.set()
        await settle(pilot)
        assert "128.0 GiB" in row(pilot, "plans", "activations")
        assert engine.compared - compared <= 2


async def test_failed_estimate_keeps_old_numbers_and_says_why(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", *"broken", "enter")
        await until(pilot, "note", "✗ the model has no layers")
        assert "choose another model" in shown(pilot, "note")
        assert "46.0 GiB" in row(pilot, "plans", "peak / GPU")
        await press(pilot, "!")
        assert "the model has no layers" in pilot.app.screen.query_one("TextLines").lines[0].plain
        await press(pilot, "escape", "u")
        assert "✗" not in shown(pilot, "plans")


async def test_plan_that_does_not_fit_says_what_is_missing(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "down", "+", "+", "+")
        assert "✗ does not fit" in shown(pilot, "plans")
        assert "needs 270.0 GiB, a device has 80.0 GiB" in shown(pilot, "plans")
        assert "shard the optimizer: saves 30 GiB" in shown(pilot, "plans")


async def test_values_keep_their_units_beside_them(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await once(
            pilot,
            lambda: "\N{NO-BREAK SPACE}GiB" in pilot.app.export_screenshot().replace("&#160;", "\N{NO-BREAK SPACE}"),
        )
        assert "\\xa0" not in pilot.app.export_screenshot()


async def test_pause_stops_sampling(make_app: MakeApp) -> None:
    async with make_app(settings={"live_seconds": 0.05}).run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, ",")
        before = shown(pilot, "live")
        await pilot.pause(0.2)
        assert shown(pilot, "live") == before
        await press(pilot, ",")
        await once(pilot, lambda: shown(pilot, "live") != before)


async def test_rate_of_the_graphs_has_a_floor(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "]", "]", "]", "]")
        assert plan_screen(app).sensors.seconds == 0.5
        await press(pilot, "[")
        assert plan_screen(app).sensors.seconds == 1.0
