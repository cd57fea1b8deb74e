"""The JSON files of the fleet guide are read as they are, and what they say otherwise than it is gets told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.catalog.fleet_files.files import Known, read_fleet_files
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer

P5 = {
    "name": "P5 (H100)", "family": "P", "gpu_type": "NVIDIA H100", "vcpus": 192, "gpu_memory_gb": 80,
    "gpus_per_instance": 8, "compute_tflops": 2000.0, "interconnect_type": "NVSwitch",
    "interconnect_bandwidth_gbps": 900, "on_demand_cost_per_hour": 50.0, "spot_cost_per_hour": 16.0,
    "memory_bandwidth_factor": 0.9, "interconnect_multiplier": 1.0, "description": "for training",
}  # fmt: skip
G6E = {
    **P5, "name": "G6e (L40S)", "family": "G", "gpu_type": "NVIDIA L40S", "gpu_memory_gb": 48,
    "compute_tflops": 733.0, "interconnect_type": "NVLink 4-way", "interconnect_bandwidth_gbps": 450,
    "on_demand_cost_per_hour": 3.5, "spot_cost_per_hour": 1.75,
}  # fmt: skip
NEW = {
    **P5, "name": "New Instance (Custom GPU)", "family": "N", "gpu_type": "NVIDIA CustomGPU", "vcpus": 128,
    "gpu_memory_gb": 96, "gpus_per_instance": 4, "compute_tflops": 1500.0, "interconnect_bandwidth_gbps": 800,
    "on_demand_cost_per_hour": 45.0, "spot_cost_per_hour": 15.0,
}  # fmt: skip
NINE = {
    "G4dn": ("aws-g4dn-xlarge", 0.53, 1), "G5": ("aws-g5-4xlarge", 1.62, 1), "G6": ("aws-g6-4xlarge", 1.32, 1),
    "G6e": ("aws-g6e-4xlarge", 3.5, 1), "P4d": ("aws-p4d-24xlarge", 32, 8), "P4de": ("aws-p4de-24xlarge", 40, 8),
    "P5": ("aws-p5-48xlarge", 50, 8), "P5e": ("aws-p5e-48xlarge", 55, 8), "P6": ("aws-p6-b200-48xlarge", 60, 8),
}  # fmt: skip
Build = Callable[[object], Catalog]
FACTS = load_catalog(Path("none"))
SHIPPED = Known(
    FACTS.instances,
    FACTS.accelerators,
    {name: getattr(FACTS, name).find_id for name in ("model_sizes", "workloads", "workload_sets")},
)


@pytest.fixture
def read(tmp_path: Path) -> Build:
    """Return the catalogue with one file, given as text or data, laid over it."""

    def build(said: object) -> Catalog:
        path = tmp_path / "gpu_instances.json"
        path.write_text(said if isinstance(said, str) else json.dumps(said, indent=2), "utf-8")
        return Catalog(tmp_path / "none", [path])

    return build


def remarks(catalog: Catalog) -> dict[str, str]:
    """Return what was remarked, by the entry and field."""
    return {".".join((each.place.field or "").split(".")[-2:]): each.words for each in catalog.remarks}


def test_the_nine_names_take_the_prices_of_a_file(read: Build) -> None:
    said = {name: {"on_demand_cost_per_hour": usd, "gpus_per_instance": 8} for name, (_, usd, _) in NINE.items()}
    catalog = read({"gpu_instances": said})
    assert catalog.problems == ()
    for name, (row_id, usd, devices) in NINE.items():
        row = catalog.instances.find(name)
        assert (row.id, row.on_demand_usd_per_hour, row.sold_devices) == (row_id, usd, devices)
        assert row.provenance == "user file"
    one_gpu = {name for name, (_, _, devices) in NINE.items() if devices == 1}
    assert set(remarks(catalog)) == {f"{name}.gpus_per_instance" for name in one_gpu}


def test_headlines_and_one_gpu_prices_are_told_and_read_right(read: Build) -> None:
    catalog = read({"gpu_instances": {"P5": P5, "G6e": G6E}})
    told = remarks(catalog)
    assert "2000 is the headline with sparsity: H100 SXM5 80GB reaches 989.4 dense" in told["P5.compute_tflops"]
    assert "450 GB/s per direction" in told["P5.interconnect_bandwidth_gbps"]
    assert "g6e.48xlarge with 8 costs $30.13/h" in told["G6e.gpus_per_instance"]
    assert "no such link" in told["G6e.interconnect_bandwidth_gbps"]
    assert "not used" in told["P5.memory_bandwidth_factor"]
    p5 = catalog.instances.find("P5")
    assert (p5.on_demand_usd_per_hour, p5.spot_usd_per_hour, p5.in_node_gbs) == (50, 16, 450)
    assert catalog.accelerators[p5.accelerator].bf16_tflops == pytest.approx(989.4)


def test_a_price_of_one_gpu_of_eight_is_read_as_such(read: Build) -> None:
    catalog = read({"P5": {"on_demand_cost_per_hour": 6.9, "spot_cost_per_hour": 2}})
    assert catalog.instances.find("P5").on_demand_usd_per_hour == pytest.approx(8 * 6.9)
    assert catalog.instances.find("P5").spot_usd_per_hour == pytest.approx(16)
    assert "the price of one GPU" in remarks(catalog)["P5.on_demand_cost_per_hour"]


def test_comments_and_a_bare_part_of_an_entry_are_read(read: Build) -> None:
    text = '{\n  "P5": {\n  "on_demand_cost_per_hour": 45.0,  // Updated\n\t"spot_cost_per_hour": 15.0 /* so\n*/ }\n}\n'
    row = read(text).instances.find("P5")
    assert (row.on_demand_usd_per_hour, row.spot_usd_per_hour) == (45.0, 15.0)
    assert row.overrides == ("on_demand_usd_per_hour", "spot_usd_per_hour", "price_date", "spot_price_date")
    assert row.in_node_gbs == 450


def test_a_new_instance_is_hardware_that_plans_run_on(read: Build) -> None:
    catalog = read({"gpu_instances": {"NewGPU": NEW}})
    assert catalog.problems == ()
    plan = plan_from_data({"task": "infer", "model": {"name": "13B"}, "hardware": {"name": "NewGPU", "devices": 4}})
    estimate = answer(plan, catalog=catalog).estimate
    assert estimate.fits
    assert estimate.cost.usd_per_hour == 45.0
    device = catalog.accelerators["nvidia-customgpu"]
    assert (device.bf16_tflops, device.link_gbs) == (750, 400)
    assert "750 dense" in remarks(catalog)["NewGPU.compute_tflops"]
    assert "nearest in peak and memory" in remarks(catalog)["NewGPU.gpu_type"]


def test_sizes_workloads_and_sets_of_ones_own(read: Build) -> None:
    scenario = {"current_instance": "P4d", "current_gpu_count": 8, "workload_type": "FINE_TUNING",
                "model_size": "EXTRA_LARGE", "monthly_hours": 300, "use_spot": True, "precision": "bf16"}  # fmt: skip
    catalog = read(
        {
            "model_sizes": {"extra_large": {"parameter_count_billion": 200, "memory_overhead_multiplier": 1.8}},
            "workloads": {"mine": {"name": "Mine", "scenario": scenario, "tags": ["a"]},
                          "inference_small_p5": {"scenario": {"monthly_hours": 300}}},
            "workload_sets": {"own": ["mine", "inference_small_p5"]},
        }
    )  # fmt: skip
    assert catalog.problems == ()
    assert catalog.workloads["mine"].scenario.workload_type == "finetune"
    changed = catalog.workloads["inference_small_p5"]
    assert (changed.scenario.monthly_hours, changed.scenario.current_instance) == (300, "P5")
    assert catalog.workload_sets["own"].workloads == ("mine", "inference_small_p5")
    assert catalog.architectures.find("Extra-Large").params_total == 200e9
    assert "counted part by part" in remarks(catalog)["extra_large.memory_overhead_multiplier"]


def test_every_fault_is_named_by_line_and_field_and_the_rest_is_used(read: Build) -> None:
    text = """{
  "gpu_instances": {
    "P5": {"on_demand_cost_per_hour": -3},
    "P6": {"on_demand_cost_per_hour": 45.0, "spot_cost": 1},
    "P77": {"spot_cost_per_hour": 45.0},
    "P4d": {"on_demand_cost_per_hour": 22.5}
  },
  "workload": {},
  "model_sizes": {"SMALL": {"parameter_count_billion": "many"}},
  "workloads": {
    "mine": {"scenario": {"current_instance": "P5", "current_gpu_count": 1, "workload_type": "TRAINING",
                          "model_size": "tiny"}}
  },
  "workload_sets": {"own": ["nothing"], "basic_demos": ["inference_small_p5"]}
}"""
    catalog = read(text)
    found = {(each.place.line, each.place.field): each.one_line() for each in catalog.problems}
    assert set(found) == {
        (3, "gpu_instances.P5.on_demand_cost_per_hour"),
        (4, "gpu_instances.P6.spot_cost"),
        (5, "gpu_instances.P77"),
        (8, "workload"),
        (9, "small.parameter_count_billion"),
        (12, "mine.scenario.model_size"),
        (14, "own.workloads"),
    }
    assert "nearest known: spot_cost_per_hour" in found[4, "gpu_instances.P6.spot_cost"]
    assert "nearest known: workloads" in found[8, "workload"]
    assert catalog.instances.find("P4d").on_demand_usd_per_hour == 22.5
    assert catalog.instances.find("P5").on_demand_usd_per_hour == 55.04
    assert catalog.workload_sets["basic_demos"].workloads == ("inference_small_p5",)
    assert "mine" not in catalog.workloads


@settings(max_examples=40)
@given(text=st.text(max_size=200) | st.builds(json.dumps, st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=9)
    | st.sampled_from(["P5", "TRAINING", "small"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["gpu_instances", "workloads", "workload_sets", "model_sizes", "P5", "x", "scenario", *P5]), inner, max_size=4),
    max_leaves=12,
)))  # fmt: skip
def test_whatever_a_file_holds_only_faults_come_of_it(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "workloads.json"
    path.write_text(text, "utf-8", errors="replace")
    said = read_fleet_files([path], SHIPPED)
    assert all(each.one_line() for each in (*said.problems, *said.remarks))
    assert all(isinstance(each.data, dict) for each in said.documents.get("instances", ()))
