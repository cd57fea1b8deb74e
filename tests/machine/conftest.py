"""What several tests of hardware need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Never

import pytest

from capacity_tui.engine.machine import Host
from capacity_tui.engine.machine.probing import NotPresentError


@pytest.fixture
def without_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recorded machines have no driver library: that of the machine which runs the tests is not theirs."""

    def absent(host: Host) -> Never:
        raise NotPresentError("no driver library")

    monkeypatch.setattr("capacity_tui.engine.machine.vendors.nvidia.probe.probe_nvidia", absent)


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a driver library compiled for the tests; see fake_nvml.c."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build the driver library with")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("fake_nvml.c")
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return folder
