"""The start prompt: what a newcomer sees first, how few keys an answer takes, and what is kept for the next time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from flow import press, settle
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input

from capacity_tui.engine.solve import answer
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.settings import RecentPlan, Settings, recent_file, recent_plans, remember_plan
from capacity_tui.tui.views.dialogs.start import StartPrompt
from capacity_tui.tui.widgets.lines import Lines

NAMES = {" ": "space", ".": "full_stop", "-": "minus", "/": "slash"}


def told(pilot: Pilot[None]) -> str:
    """Return the lines of the prompt that are in sight."""
    lines = pilot.app.screen.query_one("#start Lines", Lines)
    return "\n".join(line.plain for line in lines.lines[lines.top : lines.top + lines.size.height])


async def type_keys(pilot: Pilot[None], *keys: str) -> None:
    await press(pilot, *(NAMES.get(key, key) for key in keys))


@pytest.mark.parametrize(
    ("start", "keys", "most", "wanted"),
    [
        ({}, [*"qlora 4090", "enter"], 12, {"training.method": "qlora", "hardware.name": "rtx-4090"}),
        (
            {},
            [*"70b l", "tab", *"8xh", "tab", *"4k 50M", "enter"],
            20,
            {"model.name": "llama-3.1-70b", "training.method": "lora", "hardware.devices": 8}
            | {"hardware.name": "h100-sxm-80gb", "training.seq_len": 4096, "training.tokens": 50e6},
        ),
        (
            {"accelerator": "8xH100-SXM"},
            ["i", *"70b l", "tab", *"4k 50M", "enter"],
            20,
            {"model.name": "llama-3.1-70b", "training.method": "lora", "hardware.devices": 8}
            | {"hardware.name": "H100-SXM", "training.seq_len": 4096, "training.tokens": 50e6},
        ),
        (
            {},
            ["s", "e", "tab", *"72b bat", "tab", *"16", "enter"],
            15,
            {"task": "infer", "model.name": "qwen2.5-72b", "inference.batch": 16},
        ),
    ],
)
async def test_an_answer_of_ones_own_takes_few_keys(
    start: dict[str, str], keys: list[str], most: int, wanted: dict[str, object], real_engine: CapacityEngine
) -> None:
    assert len(keys) <= most
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False), **start)  # type: ignore[arg-type]
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await type_keys(pilot, *keys)
        document = app.session.store.document
        assert isinstance(document, PlanDocument)
        assert {path: document.plan.value(path) for path in wanted} == wanted
        assert not isinstance(app.screen, StartPrompt)
        assert app.session.store.comparison is not None
    assert not app.mistakes
    if "accelerator" not in start and wanted.get("task") != "infer":
        assert answer(document.plan).estimate.fits
    assert recent_plans()


async def test_what_is_typed_is_understood_while_it_is_typed(make_app: Callable[..., CapacityApp]) -> None:
    app = make_app(settings={"start": True})
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "Try" in told(pilot)
        await type_keys(pilot, *"mist", "tab")
        assert pilot.app.screen.query_one(Input).value == "mistral-7b "
        assert "understood: model mistral-7b" in told(pilot)
        await press(pilot, "ctrl+u", "x", "enter")
        assert "✗ not understood: 'x'" in told(pilot)
        assert pilot.app.screen.query_one(Input).value == "x"


async def test_words_that_mean_nothing_are_underlined_and_can_be_left_out(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False, start=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        said: list[str] = []
        app.session.status.subscribe(app, lambda span: said.append(span.text))
        entry = pilot.app.screen.query_one(Input)
        entry.value = "serve llama-3.1-8b wibble on l4 "
        await settle(pilot)
        marked = [segment.text for segment in entry.render_line(0) if segment.style and segment.style.underline]
        assert "".join(marked) == "wibble"
        await press(pilot, "enter", "enter")
        await settle(pilot)
        assert app.session.store.document is not None
        assert "left out: wibble" in " ".join(said)


async def test_all_lines_of_a_post_that_is_pasted_are_read(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False, start=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.post_message(Paste("Hello everybody!\nqlora llama-3.1-8b \\\n  on a 4090\nbatch 4"))
        await press(pilot, "enter")
        await settle(pilot)
        document = app.session.store.document
        assert isinstance(document, PlanDocument)
        plan = document.plan
        assert (plan.model.name, plan.hardware.name) == ("llama-3.1-8b", "rtx-4090")
        assert plan.training.global_batch == 4


async def test_a_line_that_says_nothing_of_a_plan_is_refused(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False, start=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await type_keys(pilot, *"hello there", "enter")
        await settle(pilot)
        assert isinstance(app.screen, StartPrompt)
        assert "nothing of it says what to plan" in told(pilot)


async def test_escape_goes_to_the_plan_and_a_key_asks_again(make_app: Callable[..., CapacityApp]) -> None:
    app = make_app(settings={"start": True})
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        assert isinstance(app.screen, StartPrompt)
        await press(pilot, "escape")
        assert not isinstance(app.screen, StartPrompt)
        assert app.session.store.document is not None
        await press(pilot, "i")
        assert isinstance(app.screen, StartPrompt)


@pytest.mark.parametrize("choices", [{"source": "gpt2"}, {"accelerator": "h100-sxm-80gb"}])
async def test_a_plan_or_hardware_that_is_named_is_shown_at_once(
    choices: dict[str, str], make_app: Callable[..., CapacityApp]
) -> None:
    app = make_app(settings={"start": True}, **choices)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert not isinstance(app.screen, StartPrompt)


async def test_a_line_is_a_plan_that_may_be_named(real_engine: CapacityEngine) -> None:
    app = CapacityApp(
        source=Path("llama-3.1-8b lora h100 4k"), accelerator="2xa100", engine=lambda: real_engine,
        settings=Settings(hint=False),
    )  # fmt: skip
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        document = app.session.store.document
        assert isinstance(document, PlanDocument)
        assert (document.plan.model.name, document.plan.hardware.devices) == ("llama-3.1-8b", 2)
        assert document.plan.training.seq_len == 4096


async def test_a_name_of_no_plan_is_refused(real_engine: CapacityEngine) -> None:
    app = CapacityApp(source=Path("qwertz uiop"), engine=lambda: real_engine, settings=Settings(hint=False))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert app.session.last_failure is not None
        assert "no such file, example or saved plan" in app.session.last_failure.title


async def test_recent_plans_stand_first_and_are_begun_with_two_keys(
    make_app: Callable[..., CapacityApp], tmp_path: Path
) -> None:
    remember_plan(RecentPlan("gpt2", False, "model gpt2"))
    file = tmp_path / "mine.yaml"
    file.write_text("mixtral-8x7b\n")
    remember_plan(RecentPlan(str(file), True, "mixtral"))
    app = make_app(settings={"start": True})
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert told(pilot).index("Recent") < told(pilot).index("mine.yaml") < told(pilot).index("Try")
        await press(pilot, "down", "enter")
        await settle(pilot)
        assert app.session.store.path == file
        await press(pilot, "i")
        await press(pilot, "down", "down", "enter")
        await settle(pilot)
        assert app.session.store.document is not None
        assert app.session.store.document.name == "gpt2"
    assert recent_plans()[0].text == "gpt2"


def test_a_damaged_list_of_recent_plans_is_set_aside() -> None:
    remember_plan(RecentPlan("qlora 4090", False))
    for text in ("{", json.dumps([{"text": 1}]), "[[[]]]"):
        recent_file().write_text(text)
        assert recent_plans() == ()
    remember_plan(RecentPlan("qlora 4090", False))
    remember_plan(RecentPlan("qlora 4090", False, "again"))
    assert [plan.words for plan in recent_plans()] == ["again"]
    for number in range(30):
        remember_plan(RecentPlan(f"line {number}", False))
    assert len(recent_plans()) == 12
    remember_plan(RecentPlan("x" * 10_000_000, False))
    assert recent_plans()[0].text == "line 29"


async def test_a_megabyte_that_is_pasted_is_refused_and_nothing_is_lost(real_engine: CapacityEngine) -> None:
    app = CapacityApp(engine=lambda: real_engine, settings=Settings(hint=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.screen.query_one(Input).value = "train " * 170_000
        await settle(pilot)
        await press(pilot, "enter")
        assert "too long for one line" in told(pilot)
        await press(pilot, "escape")
    assert not app.mistakes
