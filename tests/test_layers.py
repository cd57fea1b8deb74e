"""Cost of importing; what may import what stands in pyproject.toml, for `lint-imports`."""

import subprocess
import sys
from pathlib import Path

import capacity_tui.engine

ENGINE = Path(capacity_tui.engine.__file__).parent
BARE_START = ("numpy", "pynvml", "yaml", "pydantic", "textual", "rich")


def test_importing_the_engine_loads_nothing_heavy() -> None:
    code = f"import sys, capacity_tui.engine; print([m for m in {BARE_START!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
