"""Warnings about machines, and suggestions whose effect is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import replay, write

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.machine import Fact, Process, cooling_now, detect, detected, missing, probe_power
from capacity_tui.engine.machine.benchmark.benchmark_report import FIGURES
from capacity_tui.engine.machine.machine import GpuProcess, MeasuredFacts, unknown_accelerator
from capacity_tui.engine.plan import with_values
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.solve import answer
from capacity_tui.engine.solve.advice import (
    job_notes,
    machine_warnings,
    power_need,
    power_text,
    predicted_bottleneck,
    run_space,
    space_text,
)


@pytest.fixture
def laptop(tmp_path):
    return replace(detect(host=replay("hybrid_laptop", tmp_path)), accelerators=())


def gpu(**facts: object):
    bare = unknown_accelerator(0, "NVIDIA", "test", "not told")
    pcie = replace(bare.pcie, generation_max=detected(4, "test"), lanes_max=detected(16, "test"))
    known = {name: detected(value, "test") for name, value in facts.items() if name != "lanes"}
    if "lanes" in facts:
        pcie = replace(pcie, lanes=detected(facts["lanes"], "test"))
    known.setdefault("catalogue_id", detected("rtx-4090", "test"))
    return replace(bare, pcie=pcie, visible=detected(True, "test"), name=detected("RTX 4090", "test"), **known)


def with_measured(machine, **values: float):
    nothing = missing("test", "not measured")
    facts = {name: Fact(value, "measured", "test") for name, value in values.items()}
    return replace(machine, benchmarked=MeasuredFacts(**{**dict.fromkeys(FIGURES, nothing), **facts}))


def told(notes) -> dict[str, str]:
    return {note.code: f"{note.title}. {note.detail}" for note in notes}


CASES = [
    ({"throttle": ("thermal (software)",)}, "throttling", "thermal (software)"),
    ({"temperature_celsius": 78.0}, "temperature", "78 °C now"),
    ({"power_limit_watts": 300.0, "power_default_watts": 450.0}, "power_limit", "13 % less speed"),
    ({"lanes": 4}, "pcie_lanes", "4 of 16 lanes: copies from the host at 7.9 GB/s instead of 31.5 GB/s"),
    (
        {"processes": (GpuProcess(7, detected("python", "t"), detected(8 << 30, "t"), detected(False, "t")),)},
        "held_memory",
        "8.0 GiB in 1 processes of other users",
    ),
]


@pytest.mark.parametrize(("facts", "code", "text"), CASES)
def test_what_holds_a_device_back_is_told(laptop, facts, code, text):
    found = told(machine_warnings(replace(laptop, accelerators=(gpu(**facts),))))
    assert text in found[code]


def test_the_surroundings_are_told(laptop):
    machine = replace(
        laptop,
        swap=replace(laptop.swap, kind=detected("HDD", "test")),
        processes=detected((Process(9, "postgres", 12 << 30, False), Process(10, "mine", 12 << 30, True)), "test"),
    )
    found = told(machine_warnings(machine))
    assert set(found) == {"swap", "held_main_memory", "battery"}
    assert "postgres" in found["held_main_memory"]
    assert "mine" not in found["held_main_memory"]
    assert "63 %" in found["battery"]


@pytest.fixture
def job(laptop):
    machine = replace(
        laptop,
        accelerators=(gpu(memory_total_bytes=24 << 30),),
        power=replace(laptop.power, battery_watt_hours=detected(40.0, "test")),
    )
    plan = plan_from_data(
        {
            "model": {"name": "smollm2-135m"},
            "training": {"tokens": 1e9, "micro_batch": 4, "global_batch": 16, "seq_len": 1024},
        }
    )
    return machine, answer(plan, machine)


def test_effects_are_computed(job):
    machine, found = job
    suggestions, warnings = job_notes(machine, found, load_catalog())
    mixed = next(note for note in suggestions if note.code == "keep_mixed_precision")
    assert "%" in mixed.detail
    assert mixed.saves["computation.step_seconds"] < 0
    battery = told(warnings)["battery_energy"]
    assert "the battery holds 40" in battery


def test_a_job_has_a_bottleneck_and_needs_space(job):
    machine, found = job
    assert predicted_bottleneck(found).split(":")[0] in {"compute", "memory bandwidth", "network", "capacity"}
    space = run_space(machine, found, load_catalog())
    assert space.checkpoint_bytes == pytest.approx(float(found.estimate.model.parameters) * 42)
    assert space.data_bytes == pytest.approx(4e9, rel=0.01)
    assert space.download_seconds == pytest.approx(40, rel=0.01)  # no speed is known: as such lines usually are
    assert "400.0 GiB free on /; downloading them takes 40.0 s at 100.0 MB/s (assumed" in space_text(space)
    slow = with_measured(machine, download=2e6)
    text = space_text(run_space(slow, found, load_catalog()))
    assert "downloading them takes 33 min 20 s at 2.0 MB/s (measured here)" in text


@pytest.mark.parametrize(("share", "verdict"), [(0.99, "adequate"), (0.93, "at its limit"), (0.7, "inadequate")])
def test_cooling_under_a_load_is_told_from_what_was_measured(laptop, share, verdict):
    told_now = cooling_now(with_measured(laptop, held_share=share))
    assert f"processor under load: {verdict}, it kept {share:.0%} of its rate (test)" in told_now


def test_a_disk_that_makes_devices_wait_is_told(laptop):
    machine = replace(laptop, accelerators=(gpu(memory_total_bytes=24 << 30),))
    plan = plan_from_data({"model": {"name": "resnet50"}})
    slow = with_measured(machine, disk_read=1e6)
    suggestions, _ = job_notes(slow, answer(plan, slow), load_catalog())
    assert "an NVMe disk gives" in told(suggestions)["faster_disk"]
    suggestions, _ = job_notes(machine, answer(plan, machine), load_catalog())
    assert "faster_disk" not in told(suggestions)


def test_limits_add_up_to_a_supply(laptop):
    catalog = load_catalog()
    alone = power_need(laptop, catalog)
    assert alone.devices_watts == 0
    assert alone.drawn_watts == alone.processor_watts + alone.board_watts
    told = replace(laptop.power, package_limit_watts=detected(100.0, "test"))
    gpus = (gpu(power_limit_watts=450.0), gpu(power_limit_watts=450.0))
    machine = replace(laptop, accelerators=gpus, power=told)
    text = power_text(power_need(machine, catalog))
    assert text.startswith("1.1 kW at its limits: devices 900 W, processor 100 W (detected here: test)")
    assert text.endswith("a supply of 1.4 kW or more carries that")
    assert "85 % of the supply's 1.3 kW, 200 W left" in power_text(power_need(machine, catalog, 1300))
    assert "it cannot deliver that" in power_text(power_need(machine, catalog, 850))


def test_a_run_that_loads_the_supply_is_warned_of(job):
    machine, found = job
    near, enough = (
        answer(with_values(found.plan, {"watch.supply_watts": watts}), machine).estimate.warnings
        for watts in (400.0, 2000.0)
    )
    assert "of its 400 W" in told(near)["power_supply"]
    assert "power_supply" not in told(enough)


def test_heat_that_the_kernel_counted_is_told(laptop, tmp_path):
    host = replay("graviton3", tmp_path / "hot")
    for cpu, count in enumerate((0, 7)):
        write(host.root, f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/package_throttle_count", str(count))
    machine = replace(laptop, power=probe_power(host))
    assert (
        cooling_now(machine)[0] == "processor: at its limit, heat held the clock down 7 times since the system started"
    )
    assert "7 times" in told(machine_warnings(machine))["processor_heat"]
    assert cooling_now(replace(laptop, accelerators=(gpu(throttle=("thermal (software)",)),)))[-1].startswith(
        "GPU 0: inadequate, thermal (software)"
    )


def test_mixed_precision_is_not_advised_where_nothing_multiplies_it(laptop):
    plan = plan_from_data(
        {"model": {"name": "smollm2-135m"}, "training": {"tokens": 1e7, "micro_batch": 1, "precision": "fp32"}}
    )
    plain = replace(laptop, cpu=replace(laptop.cpu, simd=detected(("AVX", "FMA", "AVX2"), "test")))
    suggestions, _ = job_notes(plain, answer(plan, plain), load_catalog())
    assert "mixed_precision" not in told(suggestions)


def test_full_disks_are_told(job):
    machine, found = job
    full = tuple(replace(disk, free_bytes=detected(1 << 20, "test")) for disk in machine.disks)
    _, warnings = job_notes(replace(machine, disks=full), found, load_catalog())
    assert {"disk_full", "disk_space"} <= set(told(warnings))


def test_requests_wait_for_the_core_that_was_measured(laptop):
    from capacity_tui.engine.cluster.levels import machine_host

    assert machine_host(laptop, 1).core_speed == 1.0
    assert machine_host(with_measured(laptop, core_speed=0.5), 1).core_speed == 0.5
