"""Advice that can be taken: what it promises is what the plan comes to once it is taken."""

from __future__ import annotations

from math import isfinite

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import while_wanted
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import apply_settings
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, change_text, plan_of_line
from capacity_tui.engine.solve.advice import offers
from capacity_tui.engine.solve.advice.advice import MOST_OFFERS
from capacity_tui.engine.solve.changes import value_of
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.verdict import Holds, Verdict

CATALOG = load_catalog()
OPEN = {
    "model": {"name": "llama-3-8b"},
    "training": {"tokens": 1e9, "attention": "eager", "global_batch": 64, "micro_batch": "auto"},
    "parallelism": {"zero": 3},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}
TOO_LARGE = {
    "model": {"name": "llama-3.1-70b"},
    "task": "infer",
    "inference": {"engine": "vllm", "batch": 8},
    "hardware": {"name": "h100-sxm-80gb", "devices": 1},
}


@pytest.mark.parametrize("sections", [OPEN, TOO_LARGE], ids=["open fields", "too large"])
def test_what_is_promised_comes_true(sections: dict[str, object]) -> None:
    plan = Plan.model_validate(sections)
    found = offers(plan, fill(plan, "balanced", None, CATALOG))
    assert 0 < len(found) <= MOST_OFFERS
    assert len({str(offer.change) for offer in found}) == len(found)
    for offer in found:
        then = fill(edited(plan, offer.change, CATALOG).plan, "balanced", None, CATALOG).estimate
        assert then.verdict is offer.verdict
        assert any(effect.gain > 0 for effect in offer.effects) or then.fits
        for effect in offer.effects:
            assert value_of(then, effect.metric.key) == pytest.approx(effect.after)


def test_ways_out_come_before_all_else_where_nothing_fits() -> None:
    plan = Plan.model_validate(TOO_LARGE)
    found = offers(plan, fill(plan, "balanced", None, CATALOG))
    over = [offer.verdict is Verdict.DOES_NOT_FIT for offer in found]
    assert not over[0]
    assert over == sorted(over)


def test_advice_that_is_not_wanted_any_more_ends_within_a_part_of_an_estimate() -> None:
    plan = Plan.model_validate(OPEN)
    filled = fill(plan, "balanced", None, CATALOG)
    asked = 0

    def is_wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 20

    assert while_wanted(lambda: offers(plan, filled), is_wanted) is None
    assert asked == 20
    assert offers(plan, filled)


ASKED = {
    "open": "llama-3.1-8b qlora rtx-4090 2k 10M",
    "hardware": "deepseek-v3 train 1024xgb200 4k 1T",
    "load": "qwen2.5-72b serve 8xh100 3 req/s ttft<1s",
    "short": "llama-2-13b serve l4",
    "network": "resnet50 train a100",
    "missed": "qwen2.5-72b serve 8xh100 batch 200 ttft<1s",
}


@pytest.mark.parametrize("line", ASKED.values(), ids=ASKED.keys())
def test_figures_of_advice_are_those_of_planning_what_it_says(line: str) -> None:
    plan = plan_of_line(read_line(line), None, None, CATALOG).plan
    before = answer(plan, catalog=CATALOG).estimate
    on_screen = {offer.title: offer for offer in offers(plan, fill(plan, "balanced", None, CATALOG))}
    for note in before.recommendations:
        assert note.change and note.saves and note.title in on_screen
        assert note.saves == on_screen[note.title].saves
        pasted = change_text(note.change).split(", ")
        assert change_text(note.change) in note.detail
        then = fill(apply_settings(plan, pasted).plan, "balanced", None, CATALOG).estimate
        for key, saved in note.saves.items():
            old, new = value_of(before, key), value_of(then, key)
            assert old is not None and new is not None
            assert saved == new - old
            assert isfinite(new)
        assert all(each.holds is not Holds.NO for each in then.constraints) or before.fits is False


def test_what_is_further_from_a_limit_is_no_advice() -> None:
    plan = plan_of_line(read_line(ASKED["missed"]), None, None, CATALOG).plan
    before, key = answer(plan, catalog=CATALOG).estimate, "computation.infer.time_to_first_token_seconds"
    assert before.fits is False and before.recommendations
    assert all(note.saves and note.saves.get(key, 0.0) <= 0.0 for note in before.recommendations)
    first = before.recommendations[0]
    assert fill(edited(plan, first.change or {}).plan, "balanced").estimate.fits


@pytest.mark.parametrize("line", ["llava 7b finetune 2x3090 fsdp", "llama 2 13b finetune g4dn.12xlarge"])
def test_advice_keeps_what_the_model_learns_unless_it_says_so(line: str) -> None:
    plan = plan_of_line(read_line(line)).plan
    advice = [note for note in answer(plan).estimate.recommendations if note.code != "adapters"]
    planned = [fill(edited(plan, note.change or {}).plan, "balanced").resolved.plan for note in advice]
    assert {other.training.method for other in planned} <= {"full"}
