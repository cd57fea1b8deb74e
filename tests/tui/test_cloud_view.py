"""The view of clouds: offers, what-if on the month, the page of an offer, and taking one over into the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fake_engine import FakeEngine
from flow import press, resize, settle, shown, type_text, until
from textual.pilot import Pilot

from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.views.cloud.screen import CloudScreen

MakeApp = Callable[..., CapacityApp]
VAST, WIDE, USUAL, NARROW = (200, 60), (120, 40), (80, 24), (60, 20)


async def cloud(pilot: Pilot[None], *keys: str) -> None:
    await settle(pilot)
    await press(pilot, "space", "c", *keys)


def rows(pilot: Pilot[None]) -> list[str]:
    return shown(pilot, "offers").splitlines()[1:]


async def test_offers_verdict_and_saving_are_in_sight_at_any_size(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await cloud(pilot, "j")
        for size in (VAST, WIDE, NARROW, USUAL):
            await resize(pilot, size)
            here = next(row for row in rows(pilot) if row.startswith("▌"))
            assert "✓" in here
            assert "h100-sxm" in here
            assert "12 h" in here
            assert "$96" in here
            assert all(len(row) <= size[0] for row in rows(pilot))
            assert "→ move: h100-sxm-80gb saves" in shown(pilot, "conclusion")
        assert "+52 %" in here
        assert "8.00*" in here
        assert "over 90 days old" in shown(pilot, "details")
        await press(pilot, "r")
        text = "\n".join(line.plain for line in pilot.app.screen.query_one("TextLines").lines)
        assert "cost: move to h100-sxm-80gb. It costs half." in text


async def test_what_if_follows_keys_and_refuses_what_makes_no_sense(make_app: MakeApp, engine: FakeEngine) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await cloud(pilot, "tab", "l", "+")
        assert "Spot yes" in shown(pilot, "question")
        assert "+76 %" in rows(pilot)[1]
        await press(pilot, "backspace", "h", "e")
        await type_text(pilot, "soon")
        assert "soon is no month (such as 160)" in pilot.app.screen.query_one("Prompt Lines").lines[0].plain
        await type_text(pilot, "100")
        assert "Hours a month 100" in shown(pilot, "question")
        assert engine.pace.searched == 4
        await press(pilot, "l", "l", "+", "tab")
        assert any("✗   l4" in row for row in rows(pilot))
        await press(pilot, "G")
        assert "12.0 GiB short" in shown(pilot, "details")


async def test_taking_an_offer_is_one_edit_and_pinning_puts_it_beside(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await cloud(pilot, "j", "enter")
        document = pilot.app.session.store.document
        assert (document.get("hardware.name"), document.get("hardware.devices")) == ("h100-sxm-80gb", "4")
        assert pilot.app.session.store.edits == 1
        await press(pilot, "u", "j", "P")
        assert pilot.app.session.store.document.get("hardware.name") == "detected"
        assert pilot.app.session.store.document.pins() == ("A",)
        assert isinstance(pilot.app.screen, CloudScreen)


async def test_figures_of_an_offer_open_and_lead_back(make_app: MakeApp) -> None:
    async with make_app().run_test(size=USUAL) as pilot:
        await cloud(pilot, "j", "3")
        assert "1 × h100-sxm-80gb" in shown(pilot, "offer")
        assert "risk low: few hours of notice" in shown(pilot, "offer")
        await press(pilot, "j", "j", "enter")
        assert "usd = hours ⋅ usd_per_hour" in shown(pilot, "offer")
        await press(pilot, "backspace")
        assert "risk low" in shown(pilot, "offer")
        await press(pilot, "backspace", "j")
        assert rows(pilot)[2].startswith("▌")
        await resize(pilot, WIDE)
        assert "1 × a100-sxm-80gb" in shown(pilot, "offer")


async def test_escape_keeps_the_offers_so_far_and_older_answers_never_win(
    make_app: MakeApp, engine: FakeEngine
) -> None:
    engine.pace.steps.clear()
    async with make_app().run_test(size=USUAL) as pilot:
        await settle(pilot)
        await pilot.press("space", "c")
        await until(pilot, "progress", "10 tried")
        assert "= stay so far" in shown(pilot, "conclusion")
        await press(pilot, "escape")
        assert "stopped at 33 %" in shown(pilot, "progress")
        await pilot.press("tab", "plus")
        await pilot.press("l", "plus")
        engine.pace.steps.set()
        await settle(pilot)
        assert "Spot yes" in shown(pilot, "question")
        assert len(rows(pilot)) == 3
        assert "+76 %" in rows(pilot)[1]


async def test_offers_are_filtered_by_name_and_limit_and_exported(make_app: MakeApp, own_folders: Path) -> None:
    async with make_app(ascii_only=True).run_test(size=USUAL) as pilot:
        await cloud(pilot, "/", *"risk", "equals_sign", *"low", "enter")
        assert len(rows(pilot)) == 1
        await press(pilot, "escape", "/", "dollar_sign", "/", "h", "less_than_sign", *"10", "enter")
        assert len(rows(pilot)) == 1
        await press(pilot, "escape", "E", "j", "enter", "enter")
        assert (own_folders / "offers.csv").read_text() == "Offers as CSV\n"
        await press(pilot, "y")
        assert "fleet migrate --hours 720" in (own_folders / "config" / "command.txt").read_text()
