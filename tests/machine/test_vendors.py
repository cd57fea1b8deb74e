"""One module or package a vendor: what a new one makes, and that no other file of the machine knows any by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from recorded import write
from sources import ROOT, nodes_of, source_files

from capacity_tui.engine.machine import detect, detected, examine, missing
from capacity_tui.engine.machine.machine import Stack, unknown_accelerator
from capacity_tui.engine.machine.probing import Host, NotPresentError
from capacity_tui.engine.machine.sample import GpuSensors
from capacity_tui.engine.machine.vendors import GpuSample
from capacity_tui.engine.machine.vendors.registry import VENDORS
from capacity_tui.engine.machine.vendors.vendor import ProbedDevices, Vendor

MACHINE = ROOT / "engine/machine"
SHARED = ("vendor.py", "registry.py")
NAMES = re.compile(
    r"nvidia|nvml|nvlink|nccl|cuda|geforce|jetson|\btegra|\bamd\b|amdsmi|amdgpu|rocm|radeon|xgmi|mi300|\bintel\b|oneapi|xpu|"
    r"gaudi|habana|apple|\bmetal\b|\bmps\b|google|\btpu\b|\bjax\b|\baws\b|neuron|trainium|inferentia",
    re.IGNORECASE,
)


class TwoMeters:
    """Sensors of two devices."""

    closed = 0

    def __init__(self, host: Host, throttle: bool) -> None:
        self.throttle = throttle

    def read(self, first: int) -> tuple[GpuSample, ...]:
        gone = missing("meter", "no battery")
        return tuple(GpuSample(index, *[gone] * 6) for index in (first, first + 1))

    def close(self) -> None:
        TwoMeters.closed += 1


def two_devices(host: Host) -> ProbedDevices:
    devices = (unknown_accelerator(index, "Acme", "acme-smi", "not asked") for index in range(2))
    links = detected((("X", "AcmeLink"), ("AcmeLink", "X")), "acme-smi")
    return ProbedDevices(tuple(devices), links, (Stack("Acme driver", detected("7", "acme-smi")),))


def stacks(host: Host) -> tuple[Stack, ...]:
    return (Stack("Acme toolkit", detected("3", "/opt/acme")),)


def no_sensors(host: Host, throttle: bool) -> TwoMeters:
    raise NotPresentError("nothing to read")


ACME = Vendor("acme", "Acme", two_devices, stacks, TwoMeters)
DUMB = Vendor("dumb", "Dumb", two_devices, sensors=no_sensors)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(root=tmp_path, system="Linux", environment={})


def test_one_record_is_all_that_a_new_vendor_gives(host):
    machine = detect(host=host, vendors=[ACME, DUMB])
    assert [(gpu.index, gpu.vendor) for gpu in machine.accelerators] == [
        (0, "Acme"),
        (1, "Acme"),
        (2, "Acme"),
        (3, "Acme"),
    ]
    assert [stack.name for stack in machine.stacks][:3] == ["Acme driver", "Acme driver", "Acme toolkit"]
    assert machine.topology.links.value[0][:2] == ("X", "AcmeLink")
    assert {probe.name for probe in machine.probes} >= {"acme", "dumb"}
    assert examine(machine, 0.1).findings


def test_sensors_are_numbered_across_vendors_and_given_back(host):
    sensors = GpuSensors(host, vendors=[ACME, DUMB, ACME])
    assert [sample.index for sample in sensors.read()] == [0, 1, 2, 3]
    sensors.close()
    assert TwoMeters.closed == 2
    with pytest.raises(NotPresentError, match="nothing to read"):
        GpuSensors(host, vendors=[DUMB]).read()


def test_every_vendor_is_registered_once():
    homes = {path.relative_to(MACHINE / "vendors").parts[0] for path in (MACHINE / "vendors").rglob("*.py")}
    registered = {vendor.probe.__module__.partition(".vendors.")[2].partition(".")[0] for vendor in VENDORS}
    assert registered == {Path(home).stem for home in homes - {"__init__.py", *SHARED}}
    assert len({vendor.id for vendor in VENDORS}) == len(VENDORS)


def test_a_tool_in_its_vendors_folder_is_found_off_the_search_path(tmp_path):
    write(tmp_path, "/opt/acme/bin/acme-smi", "")
    asked = []

    def run(words, seconds):
        asked.append(words[0])
        if "/" not in words[0]:
            raise FileNotFoundError(words[0])
        return "two cards"

    host = Host(root=tmp_path, run=run)
    assert host.command("acme-smi", "-L", folder="/opt/acme/bin").value == "two cards"
    assert host.command("acme-smi", "-L").reason == "acme-smi is not installed"
    assert asked == ["acme-smi", "/opt/acme/bin/acme-smi", "acme-smi"]


def texts_and_names(file: Path) -> list[str]:
    """Return the texts of a file that are no docstrings, and its identifiers."""
    bare = {id(node.value) for node in nodes_of(file) if isinstance(node, ast.Expr)}
    found = []
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            found.append(node.value)
        elif isinstance(node, ast.Name):
            found.append(node.id.replace("_", " "))
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found += [alias.name.replace("_", " ") for alias in node.names]
    return found


@pytest.mark.parametrize("file", source_files("engine/machine"), ids=lambda file: str(file.relative_to(MACHINE)))
def test_no_vendor_is_named_outside_its_module(file):
    inside = file.relative_to(MACHINE).parts
    if inside[0] == "vendors" and inside[1] not in ("__init__.py", "vendor.py"):
        return
    assert [text for text in texts_and_names(file) if NAMES.search(text)] == []
