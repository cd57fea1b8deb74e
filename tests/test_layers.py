"""Sizes of files and cost of importing; what may import what stands in pyproject.toml, for `lint-imports`."""

import subprocess
import sys
from pathlib import Path

import pytest

import capacity_tui.engine

ENGINE = Path(capacity_tui.engine.__file__).parent
BARE_START = ("numpy", "pynvml", "yaml", "pydantic", "textual", "rich")


@pytest.mark.parametrize("package", ["engine", "tui"])
def test_no_file_outgrows_a_head(package: str) -> None:
    folder = ENGINE.parent / package
    long = {
        str(file.relative_to(folder)): lines
        for file in sorted(folder.rglob("*.py"))
        if (lines := len(file.read_text("utf-8").splitlines())) > 400
    }
    assert not long


def test_importing_the_engine_loads_nothing_heavy() -> None:
    code = f"import sys, capacity_tui.engine.api; print([m for m in {BARE_START!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
