"""Warnings about machines, and suggestions whose effect is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded import replay

from capacity_tui.engine.api import answer, plan_from_data
from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.choose.advice.host_requirements import power_text, run_space, space_text
from capacity_tui.engine.choose.advice.machine_notes import (
    job_notes,
    machine_warnings,
    predicted_bottleneck,
)
from capacity_tui.engine.machine.detect import detect
from capacity_tui.engine.machine.facts import detected
from capacity_tui.engine.machine.machine import GpuProcess, Process, unknown_accelerator


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
    space = run_space(machine, found)
    assert space.checkpoint_bytes == pytest.approx(float(found.estimate.model.parameters) * 42)
    assert space.data_bytes == pytest.approx(4e9, rel=0.01)
    assert space.download_seconds is None  # a wireless card that tells no speed
    assert "token ids 3.7 GiB; 400.0 GiB free on /" in space_text(space)


def test_limits_add_up_to_a_supply(laptop):
    assert power_text(laptop) is None
    machine = replace(laptop, accelerators=(gpu(power_limit_watts=450.0), gpu(power_limit_watts=450.0)))
    assert power_text(machine).startswith("900 W for devices (the processor's limit is not told)")
    assert "1.2 kW" in power_text(machine)


def test_full_disks_are_told(job):
    machine, found = job
    full = tuple(replace(disk, free_bytes=detected(1 << 20, "test")) for disk in machine.disks)
    _, warnings = job_notes(replace(machine, disks=full), found, load_catalog())
    assert {"disk_full", "disk_space"} <= set(told(warnings))
