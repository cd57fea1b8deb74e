"""What several tests of hardware need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


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
