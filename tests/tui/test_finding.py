"""Finding fields by other words, editing them from the palette, and what `?` says of one."""

from __future__ import annotations

from collections.abc import Callable

from flow import offered, plan_screen, press, settle, shown, type_text
from textual.pilot import Pilot

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import field_text, plan_fields
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.tui.app import CapacityApp

MakeApp = Callable[..., CapacityApp]
WIDE = (120, 40)


async def palette(pilot: Pilot[None], text: str) -> None:
    await press(pilot, "ctrl+p")
    await pilot.press(*("space" if letter == " " else letter for letter in text))
    await offered(pilot)
    await press(pilot, "enter")
    await settle(pilot)


def test_words_people_use_lead_to_fields() -> None:
    plan = plan_from_data({"model": {"name": "llama-3.1-8b"}, "training": {"method": "lora"}})
    fields = plan_fields(plan, "transformer", "finetune", load_catalog())
    known = {word for entry in fields for word in field_text(entry.path).synonyms}
    assert {"fsdp", "gradient accumulation", "vram", "price", "lora"} <= known


async def test_what_a_field_means_is_found_too(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "/")
        await type_text(pilot, "replicas")
        assert "▌Data parallel" in shown(pilot, "config")


async def test_the_palette_sets_a_field(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await palette(pilot, "micro batch 8")
        assert plan_screen(pilot.app).session.store.document.get("training.micro_batch") == "8"


async def test_the_palette_asks_for_the_value_of_a_field(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await palette(pilot, "global batch")
        await type_text(pilot, "128")
        assert plan_screen(pilot.app).session.store.document.get("training.global_batch") == "128"


async def test_help_begins_with_the_field_under_the_cursor(make_app: MakeApp) -> None:
    async with make_app().run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "j", "?")
        lines = pilot.app.screen.query_one("TextLines").lines
        assert lines[0].plain == "Sequence"
        assert "tokens of one sequence" in lines[1].plain
