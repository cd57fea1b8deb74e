"""Every figure of the hardware says how it came about, from the probe to the panel, the JSON and the explanation."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from recorded import replay

from capacity_tui.engine.catalog import Catalog, load_catalog
from capacity_tui.engine.cluster import cluster_of_machine as own_machine
from capacity_tui.engine.cluster import score_machine, usable_devices
from capacity_tui.engine.estimate import estimate_plan, resolve_plan
from capacity_tui.engine.machine import Fact, Host, MeasuredFacts, detect, detected, missing
from capacity_tui.engine.machine.benchmark import FIGURES
from capacity_tui.engine.machine.cpu import probe_cpu
from capacity_tui.engine.machine.machine import MigInstance
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.present import basis, explanation_text, result_as_dict
from capacity_tui.engine.solve import explain
from capacity_tui.tui.views.plan.hardware_facts import cluster_rows

SPEC = {"bf16_tflops": 77, "bandwidth_gbs": 1230, "memory_mib": 1000, "link_gbs": 11, "node_gbs": 2}


def plan_of(hardware: dict[str, object], **training: object):
    own = {"seq_len": 512, "micro_batch": 1, "tokens": "1M", "precision": "bf16", **training}
    return plan_from_data({"model": {"name": "gpt2-small"}, "hardware": hardware, "training": own})


@pytest.fixture
def given():
    return plan_of({"name": "h100-sxm-80gb", "devices": 16, "spec": SPEC})


@pytest.fixture
def unknown_cpu(tmp_path):
    """A guest of 16 cores whose name no row has."""
    machine = detect(host=replay("xeon_8370c", tmp_path))
    nothing = missing("test", "no row")
    cpu = replace(machine.cpu, catalogue_id=nothing, model=detected("Xeon of the year 2040", "/proc/cpuinfo"))
    return replace(machine, cpu=cpu, accelerators=(), measured=(), benchmarked=None)


def test_what_the_plan_gives_is_never_called_the_catalogues(given):
    resolved = resolve_plan(given, load_catalog())
    origins = {row.label: row.origin for row in cluster_rows(given, resolved.cluster, None)}
    assert {origins[name] for name in ("GPU", "Peak", "Memory", "Link", "Network")} == {"given"}
    found = estimate_plan(given)
    assert "given in the plan: memory, memory bandwidth, bf16 peak, link, network between nodes" in basis(
        found.estimate
    )
    data = json.loads(json.dumps(result_as_dict(found.plan, found.estimate)))["basis"]["hardware"]
    assert data["peaks.bf16"] == {"value": 77e12, "origin": "given", "source": "hardware.spec.bf16_tflops"}
    assert data["units"]["origin"] == "catalogue"


def test_the_numbers_put_into_a_formula_say_how_they_came_about(given):
    found = explain(given, "bottleneck.ridge_point")
    told = {entry.name: entry.provenance for entry in found.explanation.derivations[0].inputs}
    assert told["peak"] == "given in the plan: hardware.spec.bf16_tflops"
    assert told["bandwidth"] == "given in the plan: hardware.spec.bandwidth_gbs"
    shown = explanation_text(found)
    assert any("given in the plan: hardware.spec.bf16_tflops" in entry.source for entry in shown.inputs)
    assert found.explanation.calibration == ""


def test_what_is_guessed_of_an_unknown_processor_is_named(unknown_cpu):
    device = own_machine(unknown_cpu, load_catalog()).device
    assert {device.known[name].origin for name in ("peaks.fp32", "bandwidth", "tdp_watts")} == {"assumed"}
    assert "multiply-adds of 512 bits" in device.known["peaks.fp32"].source
    assumed = " ".join(estimate_plan(plan_of({"name": "detected"}), unknown_cpu).estimate.basis.assumed)
    for part in ("fp32 peak", "power limit", "memory bandwidth", "for each core", "cores of a server draw"):
        assert part in assumed


def test_a_server_is_not_taken_for_a_laptop(unknown_cpu):
    device = own_machine(unknown_cpu, load_catalog()).device
    laptop = load_catalog().processors["cpu-4c-2.5ghz-basic"]
    assert device.tdp_watts != laptop.tdp_w
    assert device.bandwidth != laptop.bandwidth_gbs * 1e9
    whole = replace(unknown_cpu.cpu, physical_cores=detected(64, "test"), usable_threads=detected(64, "test"))
    larger = own_machine(replace(unknown_cpu, cpu=whole), load_catalog()).device
    assert larger.bandwidth > 2e11
    assert larger.tdp_watts > 200


def test_the_limit_that_the_kernel_tells_counts(unknown_cpu):
    power = replace(unknown_cpu.power, package_limit_watts=detected(123.0, "/sys/class/powercap"))
    device = own_machine(replace(unknown_cpu, power=power), load_catalog()).device
    assert device.tdp_watts == 123
    assert str(device.known["tdp_watts"]) == "detected here: /sys/class/powercap"


def test_amx_multiplies_bf16_in_the_estimate_as_in_the_advice(unknown_cpu):
    names = (*(unknown_cpu.cpu.simd.value or ()), "AMX", "AMX BF16")
    cpu = replace(unknown_cpu.cpu, simd=detected(names, "/proc/cpuinfo"))
    device = own_machine(replace(unknown_cpu, cpu=cpu), load_catalog()).device
    assert device.native("bf16") == "bf16"
    clock = (cpu.base_mhz.value or cpu.current_mhz.value) * 1e6
    assert device.peaks["bf16"] == pytest.approx(1024 * clock * float(device.units))
    assert "AMX BF16" in device.known["peaks.bf16"].source
    without = own_machine(unknown_cpu, load_catalog()).device
    assert without.native("bf16") == "fp32"


def test_measured_bandwidth_counts_everywhere_and_is_cited_alone(unknown_cpu):
    nothing = missing("benchmarks", "not measured")
    rate = Fact(2.5e10, "measured", "memory triad on 2026-11-21, 2 threads")
    machine = replace(
        unknown_cpu, benchmarked=MeasuredFacts(**{**dict.fromkeys(FIGURES, nothing), "memory_bandwidth": rate})
    )
    usual, device = (own_machine(each, load_catalog()).device for each in (unknown_cpu, machine))
    assert device.bandwidth * device.efficiency.stream == pytest.approx(2.5e10)
    assert device.efficiency.elementwise / device.efficiency.stream == pytest.approx(
        usual.efficiency.elementwise / usual.efficiency.stream
    )
    found = explain(plan_of({"name": "detected"}, precision="fp32"), "bottleneck.ridge_point", machine)
    told = {entry.name: entry.provenance for entry in found.explanation.derivations[0].inputs}
    assert told["bandwidth"] == "measured here: memory triad on 2026-11-21, 2 threads"
    assert told["peak"].startswith("assumed: concluded from")
    assert found.explanation.calibration == ""
    scored = {part.id: part for part in score_machine(machine, load_catalog()).parts}
    assert scored["bandwidth"].value == 2.5e10
    assert scored["bandwidth"].known.startswith("measured here: memory triad")
    assert scored["arithmetic"].known.startswith("assumed: concluded from")
    assert "memory bandwidth" in basis(estimate_plan(plan_of({"name": "detected"}), machine).estimate)


@pytest.mark.parametrize(
    ("name", "spec", "gib", "words"),
    [
        ("apple-m4-10", {"memory_mib": 16384}, 11.84, "macOS lets the GPU use 11.8 GiB of 16.0 GiB"),
        ("apple-m1-max-32", {}, 51.84, "macOS lets the GPU use 51.8 GiB of 64.0 GiB"),
        ("apple-m3-ultra-80", {}, 463.9, "macOS lets the GPU use 463.9 GiB of 512.0 GiB"),
        ("apple-m4-10", {"memory_mib": 16384, "usable_memory_mib": 14336}, 14, ""),
        ("apple-m4-10", {"memory_mib": 16384, "usable_memory_mib": 20000}, 16, ""),
        ("radeon-8060s", {}, 96, "firmware gives the GPU at most 96.0 GiB of 128.0 GiB"),
        ("radeon-780m", {}, 16, "Linux maps 16.0 GiB of 32.0 GiB for the GPU"),
        ("mi300a", {}, 128, ""),
        ("gb10-dgx-spark", {}, 118.8, ""),
        ("rtx-4090", {"memory_mib": 16384}, 16, ""),
    ],
)
def test_memory_that_is_shared_is_the_devices_as_far_as_its_system_lets_it(name, spec, gib, words):
    estimate = estimate_plan(plan_of({"name": name, "spec": spec})).estimate
    assert estimate.memory.capacity_bytes / 2**30 == pytest.approx(gib, rel=0.005)
    assert not words or any(line.startswith(f"memory: {words}") for line in estimate.basis.assumed)


@pytest.mark.parametrize(("spec", "gib"), [({}, 36 * 0.78), ({"memory_mib": 32768}, 32)])
def test_a_detected_mac_has_what_it_says_or_what_the_plan_says(spec, gib, tmp_path, without_nvml):
    machine = detect(host=replay("macbook_m3_pro", tmp_path, system="Darwin"))
    estimate = estimate_plan(plan_of({"name": "detected", "spec": spec}), machine).estimate
    assert estimate.memory.capacity_bytes / 2**30 == pytest.approx(gib)


def test_rows_that_lack_a_figure_name_what_stands_in(tmp_path):
    (tmp_path / "accelerators.yaml").write_text(
        "mine: {vendor: Own, memory_mib: 1000, bandwidth_gbs: 100, bf16_tflops: 10}\n"
        "h100-sxm-80gb: {bandwidth_gbs: 3000}\n"
    )
    catalog = Catalog(tmp_path)
    device = resolve_plan(plan_of({"name": "mine"}), catalog).cluster.device
    assert str(device.known["bandwidth"]) == "given in the plan: your own catalogue file, row mine"
    named = " ".join(device.assumptions())
    assert "units: units of an accelerator whose row does not tell, 64" in named
    assert "PCIe generation of a device whose row does not tell, 4" in named
    h100 = resolve_plan(plan_of({"name": "h100-sxm-80gb"}), catalog).cluster.device
    assert (h100.known["bandwidth"].origin, h100.known["tdp_watts"].origin) == ("given", "catalogue")
    spec = {"units": 30, "host_gbs": 10, "link_gbs": 10}
    assert resolve_plan(plan_of({"name": "mine", "spec": spec}), catalog).cluster.device.assumptions() == ()


def test_a_slice_that_tells_only_its_memory_is_not_taken_for_the_whole_device(tmp_path):
    machine = detect(host=replay("a100_mig", tmp_path))
    gpu = machine.accelerators[0]
    total = gpu.memory_total_bytes.value
    slices = detected((MigInstance("unnamed", total // 4, None),), "test")
    gpu = replace(gpu, mig_enabled=detected(True, "test"), mig_instances=slices)
    (found,) = usable_devices(replace(machine, accelerators=(gpu,)))
    assert found.compute_share == pytest.approx(0.25)
    assert found.share_known.origin == "assumed"


@pytest.mark.parametrize(
    ("model", "stepping", "name"),
    [
        (143, 8, "sapphirerapids"),
        (106, 6, "icelake"),
        (85, 7, "cascadelake"),
        (85, 4, "skylake_avx512"),
        (175, 3, "sierraforest"),
    ],
)
def test_a_core_is_known_by_its_numbers_though_a_hypervisor_hides_flags(model, stepping, name, tmp_path):
    place = tmp_path / "proc"
    place.mkdir()
    flags = "sse sse2 avx avx2 fma avx512f avx512_fp16 amx_tile amx_bf16 hypervisor"
    place.joinpath("cpuinfo").write_text(
        f"processor: 0\nvendor_id: GenuineIntel\ncpu family: 6\nmodel: {model}\nstepping: {stepping}\n"
        f"model name: Intel Xeon Processor\nflags: {flags}\n"
    )
    found = probe_cpu(Host(root=tmp_path, system="Linux", architecture="x86_64", environment={}))
    assert found.microarchitecture.value == name
