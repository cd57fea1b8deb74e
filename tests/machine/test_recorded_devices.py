"""Outputs of real machines' tools, quoted from public places, read by the real probes."""

from __future__ import annotations

import subprocess

import pytest
from recorded import replay

from capacity_tui.engine.machine import Accelerator, detect
from capacity_tui.engine.machine.cpu import probe_cpu
from capacity_tui.engine.machine.vendors.nvidia import probe_nvidia_smi, topology_matrix

GIB = 1 << 30
MIB = 1 << 20


def found(name: str, tmp_path, **host: object) -> tuple[Accelerator, ...]:
    return detect(host=replay(name, tmp_path, **host)).accelerators


# recording, devices, name, catalogue id, total memory in MiB, generation's number types, further settings of the host
DEVICES = [
    ("gaudi2_node", 3, "HL-225", "gaudi2", 98304, "fp8", {}),
    ("trn1_2xlarge", 1, "Trainium1", "trainium1", 32768, "bf16", {}),
    ("trn2n_48xlarge", 2, "Trainium2", "trainium2", 98304, "bf16", {}),
    ("trn2_3xlarge", 1, "Trainium2", "trainium2", 98304, "bf16", {}),
    ("arc_pro_b60", 1, "Intel(R) Graphics [0xe211]", "arc-pro-b60", 25669140480 / MIB, "bf16", {}),
    ("arc_pro_b70_pair", 2, "Intel(R) Arc(TM) Pro B70 Graphics", None, None, "bf16", {}),
    ("max_1100", 1, "Intel(R) Data Center GPU Max 1100", "max-1100", 51522830336 / MIB, "tf32", {}),
    ("macbook_m3_pro", 1, "Apple M3 Pro (18-core GPU)", "apple-m3-pro-18", 36864 * 0.78, "bf16", {"system": "Darwin"}),
    ("rx_7900_xt", 1, "Radeon RX 7900 XT", "rx-7900-xt", 21458059264 / MIB, "bf16", {}),
    ("radeon_780m", 1, "Phoenix3", None, None, None, {}),
    ("dgx_spark", 1, "NVIDIA GB10", "gb10-dgx-spark", 127600748 / 1024, "fp4", {}),
    ("titan_v_and_ada", 2, "NVIDIA TITAN V", "titan-v", None, "fp16", {}),
    ("a100_mig", 1, "NVIDIA A100-SXM4-80GB", "a100-sxm-80gb", 81920, None, {}),
    ("tpu_v6e_8", 2, None, "tpu-v6e", None, None, {}),
    ("tpu_v6e_8", 2, "TPU v6e", "tpu-v6e", None, "bf16", {"environment": {"TPU_ACCELERATOR_TYPE": "v6e-8"}}),
]


@pytest.mark.parametrize(("recording", "count", "name", "identifier", "memory", "type_", "host"), DEVICES)
def test_recorded_devices_are_recognised(
    recording, count, name, identifier, memory, type_, host, tmp_path, without_nvml
):
    gpus = found(recording, tmp_path, **host)
    assert len(gpus) == count
    first = gpus[0]
    assert first.name.value == name
    assert first.catalogue_id.value == identifier
    total = first.memory_total_bytes
    assert total.value is None if memory is None else total.value == pytest.approx(memory * MIB, rel=1e-4)
    assert total.value or total.reason
    assert type_ is None or type_ in (first.precisions.value or ())


def test_gaudi_sensors(tmp_path):
    busy, idle, _ = found("gaudi2_node", tmp_path)
    assert (busy.power_watts.value, busy.power_limit_watts.value, busy.temperature_celsius.value) == (525, 600, 35)
    assert busy.memory_free_bytes.value == (98304 - 94963) * MIB
    assert idle.memory_used_bytes.value == 768 * MIB
    assert busy.driver.value == "1.21.1-bfcec49"
    assert busy.matrix_units.value == "matrix multiplication engines"


def test_neuron_links_and_processes(tmp_path):
    first, last = found("trn2n_48xlarge", tmp_path)
    assert [link.peer for link in first.links.value or ()] == [1, 3, 4, 12]
    assert first.numa_node.value == 1
    assert [process.pid for process in first.processes.value or ()] == [113985]
    assert last.processes.value == ()


def test_neuron_devices_without_their_tool(tmp_path):
    def nothing(words, seconds):
        raise FileNotFoundError(words[0])

    (chip,) = found("trn1_2xlarge", tmp_path, run=nothing)
    assert (chip.name.value, chip.catalogue_id.value) == ("Trainium1", "trainium1")
    assert chip.memory_total_bytes.reason == "neuron-ls is not installed"


def test_unified_memory_is_main_memory(tmp_path, without_nvml):
    (spark,) = found("dgx_spark", tmp_path)
    assert spark.integrated.value is True
    assert spark.memory_free_bytes.value == 118566368 * 1024
    assert spark.power_watts.value == 11.17


def test_slices_of_a_gpu_carry_their_share(tmp_path, without_nvml):
    (gpu,) = found("a100_mig", tmp_path)
    slices = gpu.mig_instances.value or ()
    assert gpu.mig_enabled.value is True
    assert len(slices) == 7
    assert slices[0].compute_share == pytest.approx(1 / 7)


def test_older_drivers_are_asked_for_less(tmp_path):
    recorded = replay("titan_v_and_ada", tmp_path)

    def run(words, seconds):
        if "compute_cap" in words[1]:
            raise subprocess.CalledProcessError(2, words)
        return recorded.run(words, seconds)

    found = probe_nvidia_smi(replay("titan_v_and_ada", tmp_path / "again", run=run))
    assert [gpu.driver.value for gpu in found.accelerators] == ["570.86.15"] * 2
    assert found.links.reason == "no table of links"


@pytest.mark.parametrize(
    ("answers", "memory", "origin"),
    [
        ({"iogpu.wired_limit_mb": "30000\n"}, 30000, "detected"),
        ({"-productVersion": "15.7.7\n"}, 27 * 1024, "assumed"),
        ({"-productVersion": "26.2\n"}, 36864 * 0.78, "assumed"),
    ],
)
def test_macos_says_what_its_gpu_may_use(answers, memory, origin, tmp_path):
    recorded = replay("macbook_m3_pro", tmp_path, system="Darwin")

    def run(words, seconds):
        return answers.get(words[-1]) or recorded.run(words, seconds)

    (gpu,) = detect(host=replay("macbook_m3_pro", tmp_path / "again", system="Darwin", run=run)).accelerators
    assert gpu.memory_total_bytes.value == pytest.approx(memory * MIB)
    assert gpu.memory_total_bytes.origin == origin


@pytest.mark.parametrize(
    ("recording", "size", "cell"), [("hgx_h100_topology", 8, "NV18"), ("pcie_h20_topology", 5, "NODE")]
)
def test_printed_topologies(recording, size, cell, tmp_path):
    host = replay(recording, tmp_path)
    matrix = topology_matrix(host.command("nvidia-smi", "topo", "-m").value or "")
    assert len(matrix) == size
    assert matrix[0][:2] == ("X", cell)
    assert all(row[index] == "X" for index, row in enumerate(matrix))


def test_a_jetson_shares_its_memory(tmp_path):
    machine = detect(host=replay("jetson_orin_nano", tmp_path, architecture="aarch64"))
    (gpu,) = machine.accelerators
    assert gpu.compute_capability.value == "8.7"
    assert gpu.driver.value == "R36.4.3"
    assert gpu.memory_total_bytes.value == 7802616 * 1024
    assert "bf16" in (gpu.precisions.value or ())


# recording, architecture, model, vendor, microarchitecture, vector bits
PROCESSORS = [
    ("graviton3", "aarch64", "Amazon EC2 Neoverse-V1", "ARM", None, None),
    ("xeon_8370c", "x86_64", "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", "Intel", "icelake", 512),
]


@pytest.mark.parametrize(("recording", "architecture", "model", "vendor", "generation", "bits"), PROCESSORS)
def test_recorded_processors(recording, architecture, model, vendor, generation, bits, tmp_path):
    cpu = probe_cpu(replay(recording, tmp_path, architecture=architecture))
    assert (cpu.model.value, cpu.vendor.value) == (model, vendor)
    assert generation is None or cpu.microarchitecture.value == generation
    assert bits is None or cpu.simd_bits.value == bits
