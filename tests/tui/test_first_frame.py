"""What the first frame must not wait for."""

from __future__ import annotations

import subprocess
import sys


def loaded_by(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(*(name for name in sys.modules if '.' not in name or 'capacity' in name))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_nothing_heavy_is_imported_before_the_first_frame() -> None:
    loaded = loaded_by("import capacity_tui.tui.app")
    assert not loaded & {"numpy", "pydantic", "yaml", "psutil", "pynvml", "archspec"}
    assert not loaded & {f"capacity_tui.tui.{name}" for name in ("engine_view", "view", "unsaved", "views.plan.edits")}
    assert "json" not in loaded


def test_only_the_adapter_reaches_the_engine() -> None:
    engine = {name for name in loaded_by("import capacity_tui.tui.app") if name.startswith("capacity_tui.engine.")}
    light = (
        "door",
        "errors",
        "files",
        "interruption",
        "printable",
        "record",
        "schema",
        "schema.stepping",
        "units",
        "verdict",
    )
    assert engine <= {f"capacity_tui.engine.{name}" for name in light}
