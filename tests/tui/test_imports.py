"""That commands load no screen, and that the engine's public names are what they say."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from capacity_tui.engine import api

ENGINE = Path(api.__file__).parent
FILES = (ENGINE / "api.py", *(ENGINE / f"{part}_names.py" for part in ("fleet", "node", "present", "run")))


def imported(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield module, name and alias of all that a file imports by name, in functions and for types too."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name, alias.asname or alias.name) for alias in node.names)


def test_a_command_runs_without_textual() -> None:
    code = (
        "import sys; from capacity_tui.tui.cli import main;"
        "sys.stdout = sys.stderr;"
        "main(['plan', 'linear_regression', '--explain', 'cost.usd']); main(['models', '--filter', 'llama']);"
        "assert 'textual' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


def test_every_public_name_is_what_type_checkers_take_it_for() -> None:
    named = [entry for file in FILES for entry in imported(file)]
    for module, name, alias in named:
        if alias in dir(api):
            assert getattr(api, alias) is getattr(importlib.import_module(module), name), alias
    for name in dir(api):
        assert getattr(api, name) is not None
    declared = {alias for _, _, alias in named} | {
        target.id
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert set(dir(api)) <= declared
