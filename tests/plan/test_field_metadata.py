"""Everything that is known of a field stands with the field, and nothing else lists fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from sources import name_of, nodes_of, source_files

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.plan import KnownField, Plan, all_fields, field_names, field_text, known_names
from capacity_tui.engine.plan.consequences import REPLACING, RULES
from capacity_tui.engine.plan.field_table import automatic_parameters, knobs
from capacity_tui.engine.plan.fields import LACKING
from capacity_tui.engine.schema import REPORT_FORMATS, Knob

FIELDS = all_fields()
KNOWN = frozenset({*FIELDS, *automatic_parameters()})
LONGEST_LIST = 2
# Lists that say something no field says of itself.
ALLOWED = {
    "engine/runs/accuracy/shared_runs.py": "which tables have the names that may be shared",
    "engine/fleet/regions.py": "what one replica in another region is",
    "engine/fleet/serving/candidates.py": "what one replica under a light load is asked",
    "engine/solve/placement.py": "what a part of the devices has of its own",
    "engine/solve/need/need.py": "what a model is split into, beside the experts",
    "engine/solve/search/results.py": "what sets one kind of answer apart from another",
    "engine/fleet/migration/throughput.py": "what a job keeps wherever it runs, and what it does not",
    "engine/fleet/serving/serve.py": "what a fleet that serves is set to",
    "engine/solve/space/configurations.py": "which limits of a plan may vary, and the order in which arrays stay small",
    "engine/plan/imports/derived.py": "what divides the devices of a run in other tools",
    "engine/plan/imports/sources.py": "what words of other tools do not say",
    "engine/plan/options/meanings.py": "the nine numbers of a file of another tool",
    "engine/present/search_report.py": "what has a column of its own",
    "tui/views/dialogs/map.py": "what a map begins with",
}


def test_every_value_of_a_plan_has_metadata() -> None:
    assert {name for name in field_names() if not name.startswith("hardware.groups.")} <= set(FIELDS)


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS.keys())
def test_a_field_says_all_about_itself(field: KnownField) -> None:
    knob, words = field.knob, field_text(field.path)
    assert knob.label
    assert knob.role is not None
    assert len(re.findall(r"[.!](?:\s|$)", words.help)) >= 2
    if knob.kind in ("integer", "power-of-two") and knob.shown:
        assert knob.minimum is not None
        assert knob.maximum is not None
        assert knob.minimum < knob.maximum
    if knob.kind == "choice":
        choices = tuple(known_names(field.path, load_catalog())) or knob.choices
        assert choices
        assert not knob.choices or set(words.choices) >= set(knob.choices)
    assert set(knob.needs) <= set(LACKING)
    for follows in knob.follows:
        assert follows.rule in RULES.keys() | REPLACING.keys()
        assert follows.why
        assert follows.path in FIELDS or follows.path in Plan.model_fields


@pytest.mark.parametrize("path", knobs())
def test_a_row_of_the_table_is_typed_metadata_of_a_field(path: str) -> None:
    assert path in FIELDS
    TypeAdapter(Knob).validate_python(values_of(knobs()[path]))


def values_of(knob: Knob) -> dict[str, object]:
    return {field.name: getattr(knob, field.name) for field in fields(knob)}


def test_the_forms_of_reports_are_the_choices_of_their_field() -> None:
    assert FIELDS["report.format"].knob.choices == tuple(REPORT_FORMATS)


def listed_fields(file: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the line and the fields of each tuple, list, set or mapping that names some.

    What gives each of several fields a name of its own is no list.
    """
    nodes = nodes_of(file)
    named = {
        id(node.value) for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    }
    for node in nodes:
        if id(node) in named:
            continue
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            entries = node.elts
        elif isinstance(node, ast.Dict):
            entries = [key for key in node.keys if key is not None]
        else:
            continue
        found = [entry.value for entry in entries if isinstance(entry, ast.Constant) and entry.value in KNOWN]
        if found:
            yield node.lineno, tuple(map(str, found))


def test_nothing_beside_the_metadata_lists_fields() -> None:
    lists = [
        f"{file}:{line}: {', '.join(found)}"
        for file in source_files()
        if name_of(file) not in ALLOWED
        for line, found in listed_fields(file)
        if len(found) > LONGEST_LIST
    ]
    assert lists == []


@pytest.mark.parametrize("name", REPORT_FORMATS)
def test_a_form_of_reports_is_asked_for_by_suffix(name: str) -> None:
    form = REPORT_FORMATS[name]
    assert form.suffixes
