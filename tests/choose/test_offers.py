"""Advice that can be taken: what it promises is what the plan comes to once it is taken."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.advice.advice import MOST_OFFERS, offers
from capacity_tui.engine.choose.modes.modes import fill
from capacity_tui.engine.choose.whatif.deltas import value_of
from capacity_tui.engine.plan.edit import edited
from capacity_tui.engine.plan.plan import Plan
from capacity_tui.engine.verdict import Verdict

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
        assert any(effect.gain > 0 for effect in offer.effects) or then.held
        for effect in offer.effects:
            assert value_of(then, effect.metric.key) == pytest.approx(effect.after)


def test_ways_out_come_before_all_else_where_nothing_fits() -> None:
    plan = Plan.model_validate(TOO_LARGE)
    found = offers(plan, fill(plan, "balanced", None, CATALOG))
    over = [offer.verdict is Verdict.DOES_NOT_FIT for offer in found]
    assert not over[0]
    assert over == sorted(over)


def test_nobody_waits_for_advice_that_is_not_wanted() -> None:
    plan = Plan.model_validate(OPEN)
    assert offers(plan, fill(plan, "balanced", None, CATALOG), is_wanted=lambda: False) == ()
