"""Clusters of any depth: what levels around a node do to collectives, and what a plan may say of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.cluster import Cluster, Level, resolve_cluster
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.estimate.timing.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
)
from capacity_tui.engine.machine import Provenance
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import HardwareSection, Plan, PricingSection
from capacity_tui.engine.plan.files import plan_from_text
from capacity_tui.engine.present import result_as_dict

TOLD = Provenance("given", "a test")
DEVICES = 4096
Collective = Callable[[Number, Number, Number, Cluster], Number]
COLLECTIVES: dict[str, Collective] = {
    "all_gather": all_gather_seconds,
    "all_reduce": all_reduce_seconds,
    "all_to_all": all_to_all_seconds,
    "all_to_all_of_experts": lambda payload, group, stride, on: all_to_all_seconds(payload, group, stride, on, 8.0),
    "point_to_point": lambda payload, group, stride, on: point_to_point_seconds(payload, stride, on),
}


def cluster(**hardware: object) -> Cluster:
    section = HardwareSection.model_validate({"name": "h100-sxm-80gb", "devices": DEVICES, **hardware})
    return resolve_cluster(section, PricingSection(), load_catalog(Path("none")))


@cache
def base() -> Cluster:
    return cluster()


def network(name: str, devices: float, gbs: float, hop_us: float) -> Level:
    return Level(name, devices, gbs * 1e9, hop_us * 1e-6, name, TOLD)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Level, ...]:
    """Networks from the innermost out, none faster than the one inside."""
    sizes = sorted(draw(st.sets(st.sampled_from([16, 32, 64, 256, 1024]), max_size=3)))
    rates = sorted((draw(st.floats(1, 400)) for _ in (*sizes, 0)), reverse=True)
    return tuple(
        network(f"level-{size}", size, rate, draw(st.floats(1, 30)))
        for size, rate in zip((*sizes, DEVICES), rates, strict=True)
    )


def around(levels: tuple[Level, ...]) -> Cluster:
    return replace(base(), levels=(base().levels[0], *levels))


def groups() -> st.SearchStrategy[tuple[float, float]]:
    """Sizes of groups with the distance of their members; they fit into the cluster."""
    powers = st.integers(0, 12)
    return (
        st.tuples(powers, powers)
        .filter(lambda pair: sum(pair) <= 12)
        .map(lambda pair: (2.0 ** pair[0], 2.0 ** pair[1]))
    )


@pytest.mark.parametrize("name", COLLECTIVES)
@settings(max_examples=25)
@given(levels=networks(), sizes=groups(), payload=st.floats(1, 1e11))
def test_no_cluster_is_faster_than_one_flat_network_of_its_best_link(
    name: str, levels: tuple[Level, ...], sizes: tuple[float, float], payload: float
) -> None:
    group, stride = sizes
    best = replace(levels[0], devices=DEVICES, hop_seconds=min(level.hop_seconds for level in levels))
    deep, flat = (COLLECTIVES[name](payload, group, stride, around(each)) for each in (levels, (best,)))
    assert float(deep) >= float(flat) * (1 - 1e-9)


@pytest.mark.parametrize("name", COLLECTIVES)
@settings(max_examples=25)
@given(levels=networks(), sizes=groups(), payload=st.floats(1, 1e11), size=st.sampled_from([8, 128, 512]))
def test_a_level_divided_in_two_of_the_same_link_changes_nothing(
    name: str, levels: tuple[Level, ...], sizes: tuple[float, float], payload: float, size: int
) -> None:
    index = next(n for n, level in enumerate(levels) if level.devices >= size)
    divided = (*levels[:index], replace(levels[index], name="half", devices=size), *levels[index:])
    whole, parts = (COLLECTIVES[name](payload, *sizes, around(each)) for each in (levels, divided))
    assert float(parts) == pytest.approx(float(whole), rel=1e-9)


@settings(max_examples=25)
@given(levels=networks(), stride=st.sampled_from([1.0, 2.0, 8.0, 64.0]), payload=st.floats(1e6, 1e11))
def test_a_wider_group_takes_no_less_for_the_same_bytes(
    levels: tuple[Level, ...], stride: float, payload: float
) -> None:
    sizes = [2.0**power for power in range(1, 13) if 2.0**power * stride <= DEVICES]
    seconds = [float(all_gather_seconds(payload, size, stride, around(levels))) for size in sizes]
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(seconds))


def test_two_levels_are_the_default_and_a_level_of_the_same_network_is_the_same() -> None:
    assert [level.name for level in base().levels] == ["node", "fabric"]
    rails = cluster(levels=[{"name": "rail", "devices": 256}, {"name": "fabric"}])
    for collective in COLLECTIVES.values():
        assert float(collective(1e9, 512.0, 8.0, rails)) == pytest.approx(float(collective(1e9, 512.0, 8.0, base())))


def test_oversubscription_leaves_groups_inside_the_level_alone() -> None:
    levels = [{"name": "rail", "devices": 256}, {"name": "fabric", "oversubscription": 4}]
    narrow = cluster(levels=levels)
    inside, beyond = 4.0, 64.0
    assert float(all_gather_seconds(1e9, inside, 64.0, narrow)) == float(all_gather_seconds(1e9, inside, 64.0, base()))
    slower = float(all_gather_seconds(1e9, beyond, 64.0, narrow)) / float(all_gather_seconds(1e9, beyond, 64.0, base()))
    assert slower == pytest.approx(1.0)  # four members of a rail drive a port each
    apart = float(all_gather_seconds(1e9, 4.0, 1024.0, narrow)) / float(all_gather_seconds(1e9, 4.0, 1024.0, base()))
    assert apart == pytest.approx(4.0, rel=0.01)


def test_a_rack_over_the_devices_own_links_is_as_one_large_node() -> None:
    rack = cluster(levels=[{"name": "rack", "devices": 64, "link": "nvlink-4"}])
    large = cluster(per_node=64)
    assert [level.is_direct for level in rack.levels] == [True, True, False]
    for collective in COLLECTIVES.values():
        assert float(collective(1e9, 32.0, 1.0, rack)) == pytest.approx(float(collective(1e9, 32.0, 1.0, large)))


def test_racks_of_the_catalogue_are_called_racks() -> None:
    section = HardwareSection.model_validate({"name": "gb200", "devices": 144})
    assert resolve_cluster(section, PricingSection(), load_catalog(Path("none"))).levels[0].name == "rack"


def test_ports_of_the_level_inside_bound_what_leaves_it() -> None:
    found = cluster(levels=[{"name": "rack", "devices": 64, "link": "ib-hdr"}, {"name": "fabric", "link": "ib-xdr"}])
    assert float(found.levels[2].bandwidth) == float(found.levels[1].bandwidth) == 25e9
    assert any("goes through the ports of the rack" in line for line in found.assumed)


FAULTS = {
    "[{name: rack, devices: 100}]": ("hardware.levels.0", "whole units of the node"),
    "[{name: rack, devices: 64}, {name: row, devices: 96}]": ("hardware.levels.1", "whole units of the rack"),
    "[{name: rack}, {name: fabric}]": ("hardware.levels.0", "a level is around it"),
    "[{name: node, devices: 64}]": ("hardware.levels.0", "the hardware itself has a level called node"),
    "[{name: rack, devices: 64}, {name: rack, devices: 128}]": ("hardware.levels.1", "two levels are called rack"),
    "[{name: rack, devices: 64, link: ib-nrd}]": ("hardware.levels.0.link", "ib-ndr"),
    "[{name: rack, devices: 64}]": ("hardware.levels.0.devices", "the plan has 128"),
    "[{name: rack, devcies: 64}]": ("hardware.levels.0.devcies", "did you mean hardware.levels.0.devices?"),
    "[{devices: 64}]": ("hardware.levels.0.name", "is missing"),
    "[{name: rack, oversubscription: 0.5}]": ("hardware.levels.0.oversubscription", "from 1 to"),
    "rack": ("hardware.levels", "a list, each a block of name, devices"),
}


@pytest.mark.parametrize("written", FAULTS)
def test_faults_of_levels_name_the_field_and_what_is_allowed(written: str) -> None:
    text = f"model: {{name: llama-3-8b}}\nhardware:\n  name: h100-sxm-80gb\n  devices: 128\n  levels: {written}\n"
    with pytest.raises(PlanError) as caught:
        estimate_plan(plan_from_text(text, "plan.yaml"), None, load_catalog(Path("none")))
    field, words = FAULTS[written]
    assert caught.value.place.field == field
    assert words in caught.value.one_line()


def test_answers_show_the_levels() -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "llama-3-8b"},
            "training": {"micro_batch": 1},
            "hardware": {
                "name": "h100-sxm-80gb",
                "devices": 1024,
                "levels": [{"name": "rack", "devices": 64}, {"name": "fabric", "oversubscription": 2}],
            },
        }
    )
    found = estimate_plan(plan, None, load_catalog(Path("none")))
    levels = result_as_dict(plan, found.estimate)["basis"]["levels"]
    assert [(level["name"], level["devices"]) for level in levels] == [("node", 8), ("rack", 64), ("fabric", 1024)]
    assert levels[2]["oversubscription"] == 2
    assert levels[2]["bandwidth"] == levels[1]["bandwidth"] / 2


@pytest.mark.parametrize(
    ("name", "pair", "more"), [("rtx-a6000", 56.25, 31.5), ("rtx-4090", 6.3, 6.3), ("h100-sxm-80gb", 450, 450)]
)
def test_bridges_join_pairs_and_cards_without_peer_access_meet_in_host_memory(
    name: str, pair: float, more: float
) -> None:
    def link(devices: int, **spec: float) -> float:
        section = HardwareSection(name=name, devices=devices, per_node=devices, spec=spec)
        return float(resolve_cluster(section, PricingSection(), load_catalog()).device.link_bandwidth) / 1e9

    assert (link(2), link(4)) == (pytest.approx(pair, rel=0.01), pytest.approx(more, rel=0.01))
    assert link(4, link_gbs=25) == 25
