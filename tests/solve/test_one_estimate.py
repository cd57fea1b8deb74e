"""A plan that leaves nothing open is estimated once, whatever is asked of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.estimate import ResolvedPlan, Work, resolve_plan
from capacity_tui.engine.estimate import estimate as estimating
from capacity_tui.engine.estimate.figures.values import keys
from capacity_tui.engine.explain import explain_estimate, roofline
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.modes import compare, fill
from capacity_tui.engine.solve.modes.modes import open_fields

H100 = {"name": "h100-sxm-80gb", "devices": 8}
PLANS = {
    "training": {"model": {"name": "llama-3-8b"}, "hardware": H100, "training": {"steps": 10}, "report": {}},
    "serving": {
        "task": "infer",
        "model": {"name": "llama-3-8b"},
        "hardware": H100,
        "parallelism": {"tp": 8, "pp": 1},
        "inference": {"engine": "vllm"},
    },
    "network": {"model": {"name": "resnet50"}, "hardware": H100},
    "classical": {
        "model": {"name": "kmeans", "spec": {"n": 20000, "p": 50, "precision": "fp32"}},
        "hardware": {"name": "h100-sxm-80gb"},
    },
}


def text_of(plan: Plan) -> str:
    """What is computed from a plan: what is chosen last depends on it."""
    return plan.model_dump_json(exclude={"data", "watch", "recovery"})


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count how often the work of each plan is computed, by the plan's own text."""
    found: Counter[str] = Counter()
    work_of = estimating.work_of

    def counted(resolved: ResolvedPlan, catalog: Catalog) -> Work:
        found[text_of(resolved.plan)] += 1
        return work_of(resolved, catalog)

    monkeypatch.setattr(estimating, "work_of", counted)
    yield found


def plan_of(name: str) -> Plan:
    plan = Plan.model_validate(PLANS[name])
    assert not open_fields(plan)
    return plan


@pytest.mark.parametrize("name", PLANS)
def test_an_answer_estimates_its_plan_once(name: str, computed: Counter[str]) -> None:
    found = answer(plan_of(name))
    assert computed[text_of(found.plan)] == 1


@pytest.mark.parametrize("name", PLANS)
def test_three_modes_of_a_plan_without_open_fields_are_one_estimate(name: str, computed: Counter[str]) -> None:
    compare(plan_of(name))
    fill(plan_of(name), "extreme")
    assert computed.total() == 2


@pytest.mark.parametrize("name", PLANS)
def test_an_explanation_costs_one_estimate_and_further_ones_none(name: str, computed: Counter[str]) -> None:
    catalog = load_catalog()
    resolved = resolve_plan(plan_of(name), catalog)
    estimate = estimating.estimate_resolved(resolved, catalog, recorded=True)
    assert computed.total() == 1
    for key in keys(estimate):
        explain_estimate(resolved, estimate, key, catalog)
    assert computed.total() == 1


@pytest.mark.parametrize("name", PLANS)
def test_a_roofline_and_its_intervals_are_read_from_the_estimate(name: str, computed: Counter[str]) -> None:
    catalog = load_catalog()
    resolved = resolve_plan(plan_of(name), catalog)
    found = roofline(estimating.Answer(resolved, estimating.estimate_resolved(resolved, catalog)))
    assert found is not None
    assert found.points
    assert computed.total() == 1


def test_explaining_again_leaves_what_was_recorded_as_it_is() -> None:
    catalog = load_catalog()
    resolved = resolve_plan(plan_of("serving"), catalog)
    estimate = estimating.estimate_resolved(resolved, catalog, recorded=True)
    assert estimate.derivations is not None
    before = len(estimate.derivations.derivations)
    first, second = (explain_estimate(resolved, estimate, "computation.mfu", catalog) for _ in range(2))
    assert first == second
    assert len(estimate.derivations.derivations) == before
