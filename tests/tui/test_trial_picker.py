"""Lists of models and hardware: what each row would make of the plan, in sight first, sorted on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from fake_engine import FakeEngine
from flow import press, settle
from textual.pilot import Pilot

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.app import CapacityApp
from capacity_tui.tui.engine_view import choices
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.comparison import ORDERS, Trial, best_of, is_called
from capacity_tui.tui.views.dialogs.picker import TrialPicker
from capacity_tui.tui.views.plan.field_list import sweep_lines
from capacity_tui.tui.widgets.lines import Lines


def rows(pilot: Pilot[None]) -> list[str]:
    """Return the rows of the list that are in sight, without what stands above them."""
    lines = pilot.app.screen.query_one(".dialog Lines", Lines)
    return [line.plain.strip(" ▌") for line in lines.lines if line.plain.strip()][1:]


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 20)])
async def test_every_row_says_what_the_plan_would_be(
    make_app: Callable[..., CapacityApp], size: tuple[int, int]
) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "H")
        assert isinstance(app.screen, TrialPicker)
        shown = {line.split()[1]: line for line in rows(pilot)}
        assert shown["l4"].startswith("✓ l4")
        assert shown["h100-sxm-80gb"].startswith("✗")
        assert "2/80 GiB" in shown["l4"]
        assert ("$2.00/h" in shown["l4"]) is (size[0] >= 120)  # dropped from the right
        assert all(len(line) <= size[0] for line in shown.values())
        await press(pilot, "escape")


@pytest.mark.parametrize(
    ("name", "typed", "is_meant"),
    [("h200-sxm", "h200", True), ("gh200-96gb", "h200", False), ("aws-p5-48xlarge", "p5", True), ("l4", "", True)],
)
def test_a_row_is_meant_where_its_name_begins_as_typed(name: str, typed: str, is_meant: bool) -> None:
    assert is_called(name, typed.split()) is is_meant


async def test_rows_are_sorted_by_what_they_need(make_app: Callable[..., CapacityApp]) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "H")
        assert str(app.screen.query_one(".dialog").border_title).endswith(", by fit (tab sorts)")
        listed = [line.split()[1] for line in rows(pilot)]
        by_fit = [line.split()[1] for line in rows(pilot)]
        assert by_fit == sorted(listed, key=lambda name: (len(name) > 12, len(name)))
        await press(pilot, "enter")
        assert app.session.store.document is not None
        document = app.session.store.document
        assert next(field.text for field in document.fields() if field.key == "hardware.name") == by_fit[0]


async def test_what_cannot_be_estimated_says_why(make_app: Callable[..., CapacityApp]) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        broken = next(line for line in rows(pilot) if "broken" in line)
        assert broken.startswith("–")
        assert "the model has no layers" in broken
        await press(pilot, "tab")
        assert "broken" in rows(pilot)[-1]


async def test_closing_the_list_ends_the_trying(
    make_app: Callable[..., CapacityApp], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    gate = threading.Event()

    def slow(document: object, key: str, text: str) -> Trial:
        tried.append(text)
        gate.wait(5)
        return Trial(Verdict.FITS)

    monkeypatch.setattr("fake_document.FakeDocument.trial", slow)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("H")
        while not tried:
            await pilot.pause(0.01)
        await pilot.press("escape")
        await pilot.pause()
        gate.set()
        await settle(pilot)
        assert len(tried) == 1


def test_the_engine_tries_hardware_and_models() -> None:
    catalog = load_catalog()
    plan = plan_from_data({"model": {"name": "llama-3.1-8b"}, "task": "infer", "hardware": {"name": "h100-sxm-80gb"}})
    document = PlanDocument(plan, None, catalog)
    h100, small = document.trial("hardware.name", "h100-sxm-80gb"), document.trial("hardware.name", "gtx-1660-ti")
    assert (h100.verdict, small.verdict) == (Verdict.FITS, Verdict.DOES_NOT_FIT)
    assert h100.usd is not None and h100.price.endswith("/h")
    assert "GiB" in h100.memory and h100.time
    assert document.trial("model.name", "llama-3.1-70b").verdict is Verdict.DOES_NOT_FIT
    assert document.trial("model.name", "no such model").reason
    both = {"h100-sxm-80gb": h100, "gtx-1660-ti": small}
    assert h100.time.endswith("/token")  # what the rows are sorted by is what they show
    assert min(both, key=lambda name: ORDERS["fit"](both[name])) == "h100-sxm-80gb"


def test_hardware_is_offered_in_a_sensible_order() -> None:
    offered = [choice.id for choice in choices("accelerator", load_catalog(), None)]
    assert offered[0] == "detected"
    assert offered.index("b200-sxm") < offered.index("h100-sxm-80gb") < offered.index("a100-sxm-80gb")
    assert offered.index("a100-sxm-80gb") < offered.index("mi300x") < offered.index("rtx-4090")
    instance = next(choice for choice in choices("accelerator", load_catalog(), None) if choice.id == "aws-p5-48xlarge")
    assert instance.price.startswith("$")
    assert "us-" in instance.detail and "AWS" in instance.detail


def test_what_does_not_fit_is_never_the_cheapest_or_the_fastest() -> None:
    fits, over = Trial(Verdict.FITS, usd=2.0, seconds=9.0), Trial(Verdict.DOES_NOT_FIT, usd=1.0, seconds=1.0)
    assert all(min((over, fits), key=ORDERS[name]) is fits for name in ("fit", "price", "time"))


@pytest.mark.parametrize(
    ("time", "beside"), [("3 h 49 min", "3 h 49"), ("92.6 ms/token", "92.6 ms"), ("step 33.6 ms", "33.6 ms")]
)
def test_times_beside_a_field_keep_what_matters(time: str, beside: str) -> None:
    tried = {"1": Trial(Verdict.FITS, time=time, seconds=10.0), "2": Trial(Verdict.FITS, time=time, seconds=11.0)}
    last = sweep_lines(["1", "2"], "1", tried, 22)[-1].plain
    assert last.split("+")[0].strip() == beside
    assert "+10 %" in last


def test_a_row_has_the_cost_of_the_job_and_whose_price_that_is() -> None:
    data = {"model": {"name": "llama-3.1-8b"}, "task": "finetune", "hardware": {"name": "h100-sxm-80gb", "devices": 8},
            "training": {"method": "lora", "tokens": 5e7}}  # fmt: skip
    document = PlanDocument(plan_from_data(data), None, load_catalog())
    cheap, dear = (document.trial("hardware.name", name) for name in ("h100-sxm-80gb", "h200-sxm"))
    assert cheap.cost_usd and dear.cost_usd and cheap.cost.startswith("$")
    assert cheap.source.split()[0] != dear.source.split()[0] == "AWS"
    assert ORDERS["fit"](cheap) < ORDERS["fit"](dear)


def test_the_best_of_what_fits_are_marked() -> None:
    tried = {
        "slow": Trial(Verdict.FITS, seconds=9.0, cost_usd=1.0, share=0.5),
        "fast": Trial(Verdict.FITS, seconds=3.0, cost_usd=2.0, share=0.2),
        "tight": Trial(Verdict.TIGHT, seconds=1.0, cost_usd=0.1, share=0.1),
    }
    assert best_of(tried) == {"slow": "cheapest", "fast": "fastest safest"}


async def test_the_largest_models_of_the_hardware_are_a_list_on_the_model(make_app: Callable[..., CapacityApp]) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        shown = [line.plain for line in app.screen.query_one(".dialog Lines", Lines).lines]
        assert "fine-tune: QLoRA" in shown[0]
        assert "71 %" in shown[0]
        assert "! qwen2.5-14b" in shown[1]
        await press(pilot, "escape")
