"""The floors of the house: an import only ever goes down."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import capacity_tui.engine

ENGINE = Path(capacity_tui.engine.__file__).parent
TUI = ENGINE.parent / "tui"
# From the bottom up; folders on one floor may use each other.
FLOORS = (
    ("errors", "units", "numeric", "files", "printable", "verdict"),
    ("catalog",),
    ("schema",),
    ("models",),
    ("plan", "machine", "cluster"),
    ("estimate", "uncertainty"),
    ("explain",),
    ("choose",),
    ("present", "accuracy", "sampling", "observe", "fleet", "storage"),
    ("api",),
)
FLOOR_OF = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
BARE_START = ("numpy", "pynvml", "yaml", "pydantic", "textual", "rich")


def imported_modules(file: Path) -> list[str]:
    tree = ast.parse(file.read_text("utf-8"))
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return names


def engine_files() -> list[Path]:
    return sorted(ENGINE.rglob("*.py"))


@pytest.mark.parametrize("file", engine_files(), ids=lambda file: str(file.relative_to(ENGINE)))
def test_engine_imports_go_down_only(file: Path) -> None:
    room = file.relative_to(ENGINE).parts[0].removesuffix(".py")
    for module in imported_modules(file):
        assert not module.startswith(("textual", "rich", "click", "capacity_tui.tui")), module
        if not module.startswith("capacity_tui.engine.") or room == "__init__":
            continue
        other = module.split(".")[2]
        assert FLOOR_OF[other] <= FLOOR_OF[room], f"{room} must not import {other}"


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
