"""Keys of plans and of results stand in one place: everywhere else their names do."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from sources import name_of, nodes_of, source_files, tree_of

from capacity_tui.engine.keys import SERVING, Figure, Key, Parts

KEYS = {*map(str, Key), *map(str, Figure), *map(str, Parts)}
# Files in which a plain word that is a key too means something else.
OTHER_MEANINGS: dict[str, dict[str, str]] = {
    "engine/machine/vendors/nvidia/__init__.py": {Key.VERSION: "of CUDA"},
    "engine/plan/line/lexicon/flags.py": {Key.TASK: "an option's name"},
    "engine/present/storage/training_data.py": {Key.VERSION: "of a database"},
    "engine/runs/accuracy/scoring.py": {Key.VERSION: "a column of predictions"},
    "engine/runs/accuracy/published.py": {Key.TASK: "a column of measurements"},
    "engine/runs/accuracy/shared_runs.py": {Key.TASK: "a column of measurements"},
    "engine/runs/sampling/kernels.py": {Key.VERSION: "of a library"},
    "engine/solve/hardware_advice.py": {Key.TASK: "a key of profiles/proposal.yaml"},
    "engine/solve/modes/model_choice.py": {Key.TASK: "a key of profiles/remedies.yaml"},
    "engine/solve/plan_command.py": {Key.TASK: "an option's name"},
    "engine/storage/pattern_store.py": {Key.VERSION: "of a database"},
    "tui/cli/plan/fleet_jobs.py": {Key.TASK: "the name of a type of options"},
    "tui/cli/assistant_tools.py": {Key.TASK: "an option's name"},
    "tui/cli/plan/catalogue.py": {Key.TASK: "the head of a column"},
}


def literals(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are values: not those of annotations, docstrings and f-strings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            continue
        if isinstance(child, ast.Subscript) and isinstance(child.value, ast.Name) and child.value.id == "Literal":
            continue
        if isinstance(child, ast.Constant):
            yield child
        yield from literals(child)


@pytest.mark.parametrize("room", ["engine", "tui"])
def test_keys_stand_as_names(room: str) -> None:
    written_out = [
        f"{name_of(file)}:{constant.lineno} {constant.value}"
        for file in source_files(room)
        if name_of(file) != "engine/keys.py"
        for constant in literals(tree_of(file))
        if constant.value in KEYS - OTHER_MEANINGS.get(name_of(file), {}).keys()
    ]
    assert written_out == [], "write Key.NAME, Figure.NAME or Parts.NAME of engine/keys.py"


@pytest.mark.parametrize("room", ["engine", "tui"])
def test_what_stands_below_a_key_begins_with_its_name(room: str) -> None:
    above = {Key.MODEL_SPEC, Key.HARDWARE_SPEC, Key.HARDWARE_GROUPS, Key.TRAINING_ADAPTER, *Parts, SERVING}
    beginnings = tuple(f"{key}." for key in above)
    docstrings = {
        node.value
        for file in source_files(room)
        for node in nodes_of(file)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    written_out = [
        f"{name_of(file)}:{node.lineno} {node.value}"
        for file in source_files(room)
        if name_of(file) != "engine/keys.py"
        for node in nodes_of(file)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings
        if node.value.startswith(beginnings)
    ]
    assert written_out == [], 'write f"{Key.NAME}.…", f"{Parts.NAME}.…" or f"{SERVING}.…"'
