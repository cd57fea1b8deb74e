"""What profiles/ says was fitted or measured is what a fit makes, and other rows say where they come from."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from capacity_tui.engine.catalog import load_catalog
from tools.calibrate.classical import COMMON, FIELDS, classical_constants
from tools.calibrate.constants import TABLES, all_constants, table_of

CATALOG = load_catalog()
CONSTANTS = (*all_constants(CATALOG), *classical_constants("time", CATALOG), *classical_constants("memory", CATALOG))
FITTED_ROWS = {(each.table, row) for each in CONSTANTS for row in each.rows}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_row_that_claims_a_fit_has_one(table):
    claims = [row for row, found in table_of(CATALOG, table).items() if re.search(r"\bfitted\b", found.source)]
    assert not [row for row in claims if (table, row) not in FITTED_ROWS]


def test_every_measured_constant_of_an_algorithm_is_fitted():
    fitted = {(row, each.field) for each in CONSTANTS if each.table == "algorithms" for row in each.rows}
    for row_id, row in CATALOG.algorithms.items():
        if row_id == COMMON or "tools/calibrate" not in row.source:
            continue
        for field in (name for names in FIELDS.values() for name in names):
            held = getattr(row, field)
            assert not [key for key, value in held.items() if value > 0 and (row_id, f"{field}.{key}") not in fitted]


def test_every_constant_is_one_the_catalogue_holds():
    for constant in CONSTANTS:
        table = table_of(CATALOG, constant.table)
        assert constant.low <= constant.shipped(CATALOG) <= constant.high, constant.id
        shared = {str(constant.model_copy(update={"rows": (row,)}).shipped(CATALOG)) for row in constant.rows}
        assert len(shared) == 1, f"{constant.id}: rows that share a value hold {shared}"
        assert all(row in table for row in constant.rows)


def test_no_constant_is_fitted_twice():
    seen: set[tuple[str, str, str]] = set()
    for constant in CONSTANTS:
        for row in constant.rows:
            place = (constant.table, row, constant.field)
            assert place not in seen, place
            seen.add(place)


def test_no_other_file_speaks_of_a_fit():
    """A claim of a fit in a further file would need a fit of its own."""
    # What a result has of a model that is fitted is no claim either.
    known = {f"{table}.yaml" for table in TABLES} | {"reliability.yaml", "counts.yaml", "figure_texts.yaml"}
    for file in files("capacity_tui.profiles").iterdir():
        if file.name.endswith(".yaml") and file.name not in known:
            assert not re.search(r"\bfitted\b", file.read_text("utf-8")), file.name
