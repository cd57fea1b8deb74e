"""Searching: the same best and the same front as estimating every plan by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import METRICS, estimate_plan
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.solve.search import Answer, Question, SearchResult, search
from capacity_tui.engine.solve.search.question import Goal, Limit
from capacity_tui.engine.solve.search.results import Front, dominator, undominated
from capacity_tui.engine.solve.space import Axis
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

PLAN: Mapping[str, object] = {
    "model": {"name": "llama-3.2-1b"},
    "training": {"seq_len": 4096, "global_batch": 64, "tokens": 1e9, "framework": "megatron"},
    "hardware": {"name": "h100-sxm-80gb", "devices": 8},
}
# What a plan may say itself of its layout, beside what is searched.
LAYOUTS: tuple[Mapping[str, object], ...] = (
    {},
    {"tp": 2, "pp": 2, "dp": 2, "interleave": 2, "zero": 1},
    {"shard": 2, "zero": 3, "sequence_parallel": False},
    {"pp": 4, "interleave": 3, "offload": "optimizer", "context": "all_to_all"},
)
Figures: TypeAlias = Mapping[str, Interval]
TIME, MEMORY, MONEY = "computation.estimated_train_time_seconds", "memory.utilization_percent", "cost.usd"
VALUES: Mapping[str, tuple[object, ...]] = {
    "training.checkpointing": ("none", "full"),
    "training.precision": ("bf16", "fp8"),
    "training.optimizer": ("adamw", "muon"),
    "training.seq_len": (2048, 8192),
    "training.global_batch": (4, 64),
    "training.micro_batch": (1, 4),
    "training.attention": ("flash", "eager"),
    "parallelism.offload": ("none", "optimizer"),
    "parallelism.zero": (0, 3),
    "parallelism.tp": (1, 2, 3),
    "parallelism.pp": (1, 2),
    "parallelism.cp": (1, 2),
    "parallelism.shard": (1, 2, 8),
    "hardware.devices": (4, 8),
    "hardware.name": ("h100-sxm-80gb", "l4"),
    "model.name": ("llama-3.2-1b", "qwen-2.5-0.5b"),
}
layouts = st.integers(0, len(LAYOUTS) - 1)
spaces = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True).map(tuple)


def plan_of(layout: int) -> Plan:
    return Plan.model_validate({**PLAN, "parallelism": LAYOUTS[layout]})


@cache
def one_by_one(
    paths: tuple[str, ...], layout: int = 0
) -> tuple[tuple[Mapping[str, object], Mapping[str, Interval]], ...]:
    """Return the figures of every plan that can be and that memory holds, each estimated by itself."""
    plan, catalog, found = plan_of(layout), load_catalog(), []
    for values in product(*(VALUES[path] for path in paths)):
        change = dict(zip(paths, values, strict=True))
        try:
            estimate = estimate_plan(edited(plan, change, catalog).plan, None, catalog).estimate
        except CapacityError:
            continue
        if estimate.verdict is not Verdict.DOES_NOT_FIT:
            read = {key: METRICS[key].read(estimate) for key in (TIME, MEMORY, MONEY)}
            found.append((change, {key: interval(value) for key, value in read.items() if value is not None}))
    return tuple(found)


def interval(value: object) -> Interval:
    if isinstance(value, Interval):
        return Interval(mean(value.value), mean(value.low), mean(value.high))
    assert isinstance(value, int | float | np.ndarray)
    return Interval(mean(value), mean(value), mean(value))


def searched(paths: tuple[str, ...], layout: int = 0, **rest: object) -> Answer:
    axes = tuple(Axis(path, VALUES[path]) for path in paths)
    return search(Question(plan_of(layout), axes, **rest))  # type: ignore[arg-type]


@settings(max_examples=12, deadline=None)
@given(spaces, layouts)
def test_the_best_is_that_of_estimating_every_plan_by_itself(paths: tuple[str, ...], layout: int) -> None:
    alone = one_by_one(paths, layout)
    try:
        found = searched(paths, layout, goal=Goal(TIME), top=3)
    except CapacityError:
        assert not alone
        return
    assert found.complete
    assert found.fitting == len(alone)
    assert found.evaluated == found.valid + sum(each.count for each in found.rejected)
    best = sorted({float(f"{mean(figures[TIME].value):.10g}") for _, figures in alone})[:1]
    assert [each.figures[TIME].value for each in found.top[:1]] == pytest.approx(best, rel=1e-9)
    times = [each.figures[TIME].value for each in found.top]
    assert times == pytest.approx(sorted(times), rel=1e-9)
    assert all(each.fits is not False for each in found.top)


@settings(max_examples=6, deadline=None)
@given(spaces, st.floats(0.3, 1.5), st.floats(0.5, 1.5))
def test_limits_hold_at_the_far_end_of_the_range(paths: tuple[str, ...], time: float, memory: float) -> None:
    alone = one_by_one(paths)
    if not alone:
        return
    middle = {key: float(np.median([figures[key].high for _, figures in alone])) for key in (TIME, MEMORY)}
    limits = (Limit(TIME, most=time * middle[TIME]), Limit(MEMORY, most=memory * middle[MEMORY]))
    held = [
        figures
        for _, figures in alone
        if all(limit.most is not None and figures[limit.figure].high <= limit.most for limit in limits)
    ]
    found = searched(paths, goal=Goal(MONEY), limits=limits, top=2)
    assert found.fitting == len(held)
    best = sorted(mean(figures[MONEY].value) for figures in held)[:1]
    assert [each.figures[MONEY].value for each in found.top[:1]] == pytest.approx(best, rel=1e-9)
    assert all(each.figures[TIME].high <= time * middle[TIME] for each in found.top)


@settings(max_examples=6, deadline=None)
@given(spaces)
def test_the_front_is_that_of_all_plans(paths: tuple[str, ...]) -> None:
    alone = one_by_one(paths)
    if not alone:
        return
    points = np.array([[figures[key].value for key in (TIME, MEMORY)] for _, figures in alone])
    wanted = points[undominated(points)]
    found = searched(paths, goal=Goal(TIME), pareto=(TIME, MEMORY), top=1)
    front = np.array([[found.top[place].figures[key].value for key in (TIME, MEMORY)] for place in found.pareto])
    assert sorted(map(tuple, np.round(front, 6).tolist())) == sorted(map(tuple, np.round(wanted, 6).tolist()))


def test_the_rest_of_the_front_stands_in_the_order_of_the_goal_too() -> None:
    found = searched(tuple(VALUES)[:2], goal=Goal(TIME), pareto=(MEMORY, TIME), top=1)
    times = [result.figures[TIME].value for result in found.top]
    assert len(times) > 2
    assert times == sorted(times)


points = st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=40)


@settings(max_examples=50, deadline=None)
@given(points, st.integers(1, 3), st.integers(1, 10))
def test_a_front_is_the_same_however_its_points_come(rows: list[list[int]], figures: int, size: int) -> None:
    given_points = np.array(rows, dtype=np.float64)[:, :figures]
    front = Front(figures)
    for start in range(0, len(given_points), size):
        block = given_points[start : start + size]
        joining = front.improving(block)
        front.join(block[joining], list(joining))
    best = {tuple(point) for place, point in enumerate(given_points) if dominator(given_points, place) is None}
    assert {tuple(point) for point in front.points} == best
    assert len(front.points) == len(best) == len(front.owners)


def test_what_is_the_same_to_all_that_is_shown_is_not_beaten() -> None:
    rows = np.array([[0.159, 0.44437], [0.159, 0.44431], [0.159, 0.41], [0.2, 0.3]])
    assert [dominator(rows[:2], place) for place in (0, 1)] == [None, None]
    assert dominator(rows, 0) == 2


def test_what_is_not_known_is_beaten_by_what_is() -> None:
    assert dominator(np.array([[1.0, 2.0], [1.0, np.inf]]), 1) == 0


def test_a_search_that_is_stopped_keeps_the_best_so_far() -> None:
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 2

    axes = (Axis("hardware.devices", (1, 2, 4, 8)), Axis("training.micro_batch", (1, 2)))
    told: list[Answer] = []
    found = search(Question(Plan.model_validate(PLAN), axes), None, None, told.append, stopped)
    assert not found.complete
    assert 0 < found.share_done < 1
    assert {each.set["hardware.devices"] for each in found.top} == {1}


def test_fields_that_a_plan_leaves_open_are_varied_or_filled_and_said() -> None:
    opened = {"tp": "auto", "zero": "auto"}
    data = {**PLAN, "parallelism": opened, "training": {"seq_len": "auto", "tokens": "auto", "micro_batch": "auto"}}
    found = search(Question(Plan.model_validate(data), top=1))
    (best,) = found.top
    assert {"training.seq_len", "training.tokens", "training.micro_batch", "parallelism.tp"} <= best.set.keys()
    assert "auto" not in best.set.values()
    assert dict(found.varied).keys() >= {"parallelism.zero", "training.checkpointing"}


def test_any_model_means_the_largest_that_fits() -> None:
    plan = Plan.model_validate({**PLAN, "hardware": {"name": "h100-sxm-80gb", "devices": 1}})
    axes = (Axis("training.micro_batch", (1,)), Axis("parallelism.offload", ("none",)))
    models = ("llama-3.2-1b", "llama-3.1-8b", "qwen-2.5-0.5b")
    found = search(Question(plan, axes, models=models))
    sizes = [each.figures["model.parameters"].value for each in found.top]
    assert sizes == sorted(sizes, reverse=True)
    assert {each.set["model.name"] for each in found.top} == {"llama-3.2-1b", "qwen-2.5-0.5b"}


def test_few_of_each_leave_room_for_other_devices_and_are_the_best_of_theirs() -> None:
    plan = Plan.model_validate(PLAN)
    axes = (Axis("training.micro_batch", (1, 2, 4)), Axis("parallelism.tp", (1, 2, 4)))
    asked = Question(plan, axes, ("h100-sxm-80gb", "a100-sxm-80gb"), (4, 8), goal=Goal(MONEY), top=300)
    found, few = search(asked), search(replace(asked, per_kind=1))

    def kind(each: SearchResult) -> tuple[object, object]:
        return each.set["hardware.name"], each.set["hardware.devices"]

    assert len(found.top) > len(few.top) == len({kind(each) for each in few.top}) == 4
    best = {}
    for each in found.top:
        best.setdefault(kind(each), each.figures)
    assert [best[kind(each)] for each in few.top] == [each.figures for each in few.top]


def test_sequences_of_images_are_not_varied() -> None:
    data = {"model": {"name": "vit-large"}, "training": {"steps": 10}, "hardware": {"name": "h100-sxm-80gb"}}
    axes = (Axis("training.seq_len", (1024, 2048)), Axis("training.micro_batch", (1, 2, 4)))
    found = search(Question(Plan.model_validate(data), axes))
    assert dict(found.varied) == {"training.micro_batch": 3}
    assert [each.set["training.micro_batch"] for each in found.top] == [1, 2, 4]


def test_rows_have_the_ranges_of_their_plans() -> None:
    offloads, plan = ("none", "optimizer"), Plan.model_validate(PLAN)
    for row in search(Question(plan, (Axis("parallelism.offload", offloads),))).top:
        alone = estimate_plan(edited(plan, row.set, load_catalog()).plan).estimate
        step = METRICS["computation.step_seconds"].read(alone)
        assert isinstance(step, Interval)
        assert row.figures["computation.step_seconds"].high == pytest.approx(mean(step.high))
