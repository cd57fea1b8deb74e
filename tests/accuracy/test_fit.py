"""Fitting constants: a catalogue with other values estimates like any other."""

from __future__ import annotations

from capacity_tui.engine.accuracy.cases import memory_bytes, training_cases
from capacity_tui.engine.accuracy.constants import read_constants
from capacity_tui.engine.accuracy.fit import current_value, overlaid
from capacity_tui.engine.catalog import load_catalog


def test_other_values_of_constants_move_the_runs_they_touch() -> None:
    catalog = load_catalog()
    constant = next(each for each in read_constants("memory") if each.field == "bucket_mib")
    case = next(each for each in training_cases("train_memory", catalog) if each.touched_by(constant))
    before = memory_bytes(case, catalog)
    changed = overlaid(catalog, {constant: 2.0 * current_value(constant, catalog)})
    assert memory_bytes(case, changed) > before
    assert memory_bytes(case, catalog) == before
    assert changed.frameworks.find_id("Megatron-LM") == catalog.frameworks.find_id("Megatron-LM")
