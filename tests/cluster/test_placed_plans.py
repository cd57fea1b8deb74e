"""Where plans lie on their clusters: which level divides what, which link is hottest, what crossing a node costs."""

from functools import cache
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import TablePart, placement_as_dict, placement_parts, placement_remarks
from capacity_tui.engine.solve import PlacedPlan, place_plan

CATALOG = load_catalog(Path("none"))
RACKS = [{"name": "rack", "devices": 64}, {"name": "fabric", "oversubscription": 2}]


@cache
def on_fabric(tp: int = 8, pp: int = 8, devices: int = 1024, ep: int = 1, model: str = "llama-3.1-70b") -> PlacedPlan:
    return place(
        {
            "model": {"name": model},
            "training": {"seq_len": 8192, "micro_batch": 1, "global_batch": 4096, "framework": "megatron"},
            "parallelism": {"tp": tp, "pp": pp, "ep": ep, "zero": 1},
            "hardware": {"name": "h100-sxm-80gb", "devices": devices, "per_node": 8, "levels": RACKS},
        }
    )


def place(data: dict[str, object]) -> PlacedPlan:
    return place_plan(plan_from_data(data), catalog=CATALOG)


def mixed(used: str = "best") -> PlacedPlan:
    groups = [{"name": name, "devices": 16, "per_node": 8} for name in ("h100-sxm-80gb", "a100-sxm-80gb")]
    return place(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"seq_len": 4096, "micro_batch": 1, "global_batch": 256},
            "parallelism": {"zero": 3},
            "hardware": {"groups": groups, "mixed": used},
        }
    )


def test_each_dimension_lies_on_the_levels_that_its_ranks_reach() -> None:
    found = on_fabric().placement
    assert found is not None
    assert [level.level.name for level in found.levels] == ["node", "rack", "fabric"]
    assert [found.at(place) for place in range(3)] == [(("tp", 8),), (("dp", 8),), (("dp", 2), ("pp", 8))]
    assert [(level.holds, level.units) for level in found.levels] == [(8, 128), (8, 16), (16, 1)]


@settings(max_examples=10, deadline=None)
@given(tp=st.sampled_from([1, 2, 8, 16]), pp=st.sampled_from([1, 4, 16]), devices=st.sampled_from([256, 4096]))
def test_levels_divide_a_dimension_as_often_as_it_is_large(tp: int, pp: int, devices: int) -> None:
    found = on_fabric(tp, pp, devices).placement
    assert found is not None
    assert {each.name: prod(each.ways) for each in found.dimensions} == pytest.approx(
        {name: size for name, size in (("tp", tp), ("dp", devices // tp // pp), ("pp", pp)) if size > 1}
    )
    filled = prod(ways for place in range(len(found.levels)) for _, ways in found.at(place))
    assert filled == pytest.approx(devices)


def test_tensor_parallel_beyond_a_node_makes_the_network_its_link() -> None:
    inside, beyond = on_fabric(), on_fabric(tp=16, pp=4)
    assert inside.placement is not None
    assert beyond.placement is not None
    assert "tp" in inside.placement.levels[0].carries
    hottest = beyond.placement.hottest
    assert hottest is not None
    assert hottest.level.name == "rack"
    assert hottest.carries[0] == "tp"
    assert hottest.busy > 0.2


def test_a_plan_is_told_what_crossing_a_node_costs_or_saves() -> None:
    inside, beyond = on_fabric().crossing, on_fabric(tp=16, pp=4).crossing
    assert inside is not None
    assert beyond is not None
    assert (inside.size, inside.other, inside.crosses) == (8, 16, False)
    assert (beyond.size, beyond.other, beyond.crosses) == (16, 8, True)
    assert inside.waited[1] > 3 * inside.waited[0]
    assert beyond.waited[0] > 3 * beyond.waited[1]
    assert "16 would cross" in " ".join(placement_remarks(on_fabric()))
    assert "16 crosses the 8 devices of a node; 8 would not" in " ".join(placement_remarks(on_fabric(16, 4)))


def test_one_node_has_nothing_to_cross_and_one_device_no_placement() -> None:
    assert on_fabric(tp=8, pp=1, devices=8).crossing is None
    alone = on_fabric(tp=1, pp=1, devices=1)
    assert alone.placement is None
    assert "not split" in str(tuple(placement_parts(alone)))


def test_experts_lie_across_the_other_dimensions() -> None:
    found = on_fabric(tp=1, pp=1, devices=64, ep=8, model="mixtral-8x7b").placement
    assert found is not None
    assert {each.name: each.size for each in found.dimensions} == {"dp": 64, "ep": 8}
    assert found.at(0) == (("dp", 8),)


def test_unlike_devices_share_evenly_or_so_that_all_end_together() -> None:
    found = mixed("all").sharing
    assert found is not None
    assert sum(each.share for each in found.groups) == pytest.approx(1)
    assert found.groups[0].share > 1.5 * found.groups[1].share
    assert found.balanced_rate > 1.3 * found.even_rate
    assert sum(each.sequences for each in found.groups) == 256
    remarks = " ".join(placement_remarks(mixed("all")))
    assert "at the pace of the slowest" in remarks
    assert "of the batch" in remarks


def test_the_even_share_is_that_of_the_plan_that_asks_for_all() -> None:
    one, every = mixed().sharing, mixed("all")
    assert one is not None
    computation = every.answer.estimate.computation
    assert one.even_rate == pytest.approx(float(computation.units_per_step / computation.step_seconds.value))


def test_the_drawing_moves_inner_levels_in_and_data_say_the_same() -> None:
    table = next(part for part in placement_parts(on_fabric()) if isinstance(part, TablePart))
    assert [row[0] for row in table.rows] == ["fabric", "  rack", "    node"]
    assert table.rows[0][2] == "dp 2 · pp 8"
    data = placement_as_dict(on_fabric())
    levels = data["levels"]
    assert isinstance(levels, list)
    assert [level["level"] for level in levels] == ["node", "rack", "fabric"]
    assert data["hottest"] in {"node", "rack", "fabric"}
