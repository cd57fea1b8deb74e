"""That commands load no screen, and that the names of the engine's doors are there and used."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capacity_tui import engine
from capacity_tui.engine.door import public_names

ROOT = Path(__file__).parents[2]
DOORS = sorted((ROOT / "engine").rglob("__init__.pyi"))


def test_a_command_runs_without_textual() -> None:
    code = (
        "import sys; from capacity_tui.tui.cli import main;"
        "sys.stdout = sys.stderr;"
        "main(['plan', 'linear_regression', '--explain', 'cost.usd']); main(['models', '--filter', 'llama']);"
        "assert 'textual' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("stub", DOORS, ids=lambda stub: str(stub.parent.relative_to(ROOT)))
def test_a_door_offers_what_its_modules_define(stub: Path) -> None:
    package = importlib.import_module(".".join(("capacity_tui", *stub.parent.relative_to(ROOT).parts)))
    for name, (module, original) in public_names(stub).items():
        home = importlib.import_module(f"{package.__name__}.{module}")
        assert getattr(package, name) is getattr(home, original), name
    written = [line for line in stub.read_text("utf-8").splitlines() if line]
    assert len(written) == len(public_names(stub))


def test_a_submodule_does_not_hide_the_name_it_is_spelled_like() -> None:
    package = importlib.import_module("capacity_tui.engine.estimate")
    importlib.import_module("capacity_tui.engine.estimate.derivation")
    assert callable(package.equation)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"capacity_tui\.engine.*no attribute 'nothing'"):
        engine.nothing  # noqa: B018


def test_what_scripts_are_told_to_import_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    imported = [
        name.strip()
        for page in pages
        for names in re.findall(r"^from capacity_tui\.engine import ([\w, ]+)$", page.read_text("utf-8"), re.MULTILINE)
        for name in names.split(",")
    ]
    assert imported
    assert set(imported) <= set(dir(engine))
