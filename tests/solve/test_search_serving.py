"""Searching how to serve: the same best, the same front and the same limits as estimating every plan by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS, Estimate, estimate_plan
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.search import Question, parse_axis, parse_goal, parse_limit, search
from capacity_tui.engine.solve.search.results import SAME_SHARE
from capacity_tui.engine.solve.space import Axis
from capacity_tui.engine.uncertainty import Interval

INFER = "computation.infer."
PRICE, RATE = "cost.usd_per_million_tokens", f"{INFER}requests_per_second"
FIRST, EACH = f"{INFER}time_to_first_token_seconds", f"{INFER}time_per_output_token_seconds"
VALUES: Mapping[str, tuple[object, ...]] = {
    "parallelism.tp": (1, 2, 3, 8),
    "parallelism.pp": (1, 2),
    "inference.batch": (1, 16, 200),
    "inference.prompt_tokens": (512, 8192),
    "inference.engine": ("vllm", "llama.cpp"),
    "inference.weights": ("bf16", "fp8"),
    "inference.kv_cache": ("fp16", "fp8"),
    "inference.num_speculative_tokens": (0, 4),
    "inference.request_rate": (None, 2.0),
    "hardware.name": ("h100-sxm-80gb", "mi300x"),
}
spaces = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True).map(tuple)


def plan_of(**inference: object) -> Plan:
    return Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "llama-3.1-70b"},
            "inference": {"engine": "vllm", "batch": 8, **inference},
            "parallelism": {"tp": 4, "pp": 1},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        }
    )


@cache
def alone(paths: tuple[str, ...]) -> tuple[tuple[Mapping[str, object], Estimate], ...]:
    """Return every plan that can be and that keeps all it must, each estimated by itself."""
    found = []
    for values in product(*(VALUES[path] for path in paths)):
        change = dict(zip(paths, values, strict=True))
        try:
            estimate = estimate_plan(edited(plan_of(), change).plan).estimate
        except CapacityError:
            continue
        # A batch that runs in waves is tight, and none that a search takes.
        if estimate.fits and not estimate.broken:
            found.append((change, estimate))
    return tuple(found)


def ends(estimate: Estimate, key: str) -> Interval:
    value = METRICS[key].read(estimate)
    assert value is not None
    found = value if isinstance(value, Interval) else Interval(value, value, value)
    return Interval(mean(found.value), mean(found.low), mean(found.high))


def is_beaten(point: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether another point is no worse in either figure, and better in one by more than users can tell."""
    pairs = list(zip(point, other, strict=True))
    return all(theirs <= own for own, theirs in pairs) and any(theirs < own * (1 - SAME_SHARE) for own, theirs in pairs)


@settings(max_examples=12, deadline=None)
@given(spaces, st.sampled_from((PRICE, RATE)), st.sampled_from(((), ("tpot<=60ms", "ttft<=4s"))))
def test_the_best_way_to_serve_is_that_of_estimating_every_plan(
    paths: tuple[str, ...], goal: str, limits: tuple[str, ...]
) -> None:
    axes = tuple(Axis(path, VALUES[path]) for path in paths)
    bounds = tuple(parse_limit(text, "infer") for text in limits)
    found = search(Question(plan_of(), axes, limits=bounds, goal=parse_goal(goal, "infer"), pareto=(PRICE, FIRST)))
    kept = [
        (change, estimate)
        for change, estimate in alone(paths)
        if not limits or (ends(estimate, EACH).high <= 0.06 and ends(estimate, FIRST).high <= 4.0)
    ]
    assert found.fitting == len(kept)
    sign = 1 if goal == PRICE else -1
    scores = sorted({float(f"{sign * ends(estimate, goal).value:.9g}") for _, estimate in kept})
    told = sorted({float(f"{sign * each.figures[goal].value:.9g}") for each in found.top})
    assert set(told) <= set(scores)
    assert told[:1] == scores[:1]
    points = {(ends(estimate, PRICE).value, ends(estimate, FIRST).value) for _, estimate in kept}
    front = {one for one in points if not any(is_beaten(one, other) for other in points)}
    own = {(found.top[place].figures[PRICE].value, found.top[place].figures[FIRST].value) for place in found.pareto}
    assert np.allclose(sorted(own), sorted(front), rtol=1e-9, atol=0)


def test_a_question_about_serving_finds_what_its_own_command_repeats() -> None:
    plan = Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "llama-3.1-70b"},
            "inference": {"engine": "vllm"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 8},
        }
    )
    axes = (parse_axis("inference.batch=1..256"), parse_axis("parallelism.tp=1,2,4,8"))
    limits = (parse_limit("ttft<=2s", "infer"), parse_limit("tpot<=50ms", "infer"))
    found = search(Question(plan, axes, limits=limits, goal=parse_goal("usd", "infer")))
    assert found.evaluated == 36
    best = found.top[0]
    assert best.fits
    assert best.set["parallelism.pp"] == 1, "of a layout that was asked for in part the rest is said"
    assert best.figures[FIRST].high <= 2.0
    assert best.figures[EACH].high <= 0.05
    again = answer(edited(plan, best.set).plan, load_catalog()).estimate
    assert ends(again, PRICE).value == pytest.approx(best.figures[PRICE].value, rel=1e-9)


def test_layout_and_batch_vary_where_a_plan_leaves_them_open() -> None:
    plan = Plan.model_validate(
        {
            "task": "infer",
            "model": {"name": "llama-3.1-8b"},
            "inference": {"engine": "vllm", "weights": "auto"},
            "hardware": {"name": "h100-sxm-80gb", "devices": 4},
        }
    )
    found = search(Question(plan, goal=parse_goal("throughput", "infer")))
    assert {"parallelism.tp", "parallelism.pp", "inference.batch", "inference.weights"} <= set(found.top[0].set)
    assert found.top[0].set["inference.weights"] == "bf16", "what rounds least and fits, as the balanced mode chooses"


def test_what_an_engine_does_not_run_on_is_counted_with_the_reason() -> None:
    axes = (Axis("inference.engine", ("vllm", "mlx")),)
    found = search(Question(plan_of(), axes, goal=parse_goal("usd", "infer")))
    assert found.evaluated == 2
    assert [(each.rule, each.count) for each in found.rejected] == [("this engine does not run on this hardware", 1)]


@pytest.mark.parametrize(
    ("model", "path", "values", "key"),
    [
        ("resnet-50", "training.micro_batch", (16, 64, 256), "computation.tokens_per_second"),
        ("kmeans", "model.spec.k", (8, 64), "computation.step_seconds"),
    ],
)
def test_networks_and_classical_plans_are_searched_like_any_other(
    model: str, path: str, values: tuple[int, ...], key: str
) -> None:
    plan = Plan.model_validate({"model": {"name": model}, "hardware": {"name": "h100-sxm-80gb", "devices": 1}})
    found = search(Question(plan, (Axis(path, values),), goal=parse_goal(key)))
    assert found.evaluated == found.valid == len(values)
    alone = [
        ends(estimate_plan(edited(plan, {path: value}).plan).estimate, key).value * (1 if "seconds" in key else -1)
        for value in values
    ]
    assert found.top[0].set == {path: values[alone.index(min(alone))]}


def test_rows_keep_the_limits_that_the_plan_itself_sets() -> None:
    plan = edited(plan_of(), {"inference.ttft_seconds": 0.5}).plan
    found = search(Question(plan, (Axis("inference.batch", (1, 8, 64, 512)),), goal=parse_goal(RATE, "infer")))
    assert found.top and all(row.fits for row in found.top)
    assert all(row.figures[FIRST].value <= 0.5 for row in found.top)
    assert any("TTFT" in missed.rule for missed in found.missed)
