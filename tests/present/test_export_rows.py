"""Rows of options that files of other tools have: each is of a known form, and names values that a job has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import resolve_plan
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.options import tool
from capacity_tui.engine.present.frameworks.exports import ExportRow, _blocks, _written, exported, exported_arguments
from capacity_tui.engine.present.frameworks.job import Job, job_of


@pytest.fixture
def job() -> Job:
    catalog = load_catalog()
    plan = plan_from_data({"model": {"name": "gpt2"}, "training": {"micro_batch": 2}, "hardware": {"name": "rtx-4090"}})
    job = job_of(resolve_plan(plan, catalog), catalog)
    assert job is not None
    return job


def with_nested(rows: Iterable[ExportRow]) -> Iterator[ExportRow]:
    """Yield rows, their conditions, and the rows of their options and items, at every depth."""
    for row in rows:
        yield row
        if not isinstance(row, str):
            for conditions in (row.get("when", []), row.get("unless", [])):
                yield from with_nested(conditions if isinstance(conditions, list) else [conditions])
            for section in (row.get("options", {}), *row.get("items", [])):
                yield from with_nested(section.values())


@pytest.mark.parametrize("block", _blocks())
def test_a_row_has_one_source_and_known_words(block: str) -> None:
    for row in with_nested(_blocks()[block].values()):
        if isinstance(row, str):
            continue
        assert sum(name in row for name in ("is", "of", "options", "items")) == 1, row
        assert sum(name in row for name in ("in", "not", "words", "values")) <= 1, row
        if "words" in row:
            name, _, option = row["words"].partition(".")
            assert tool(name).words(option)


def test_what_has_no_value_is_left_out_unless_it_is_written_as_null(job: Job) -> None:
    assert job.save_steps is None
    assert _written("save_steps", job, {}) is None
    assert "save_steps" not in exported("training_arguments", job, recomputes_itself=False)
    assert _written({"of": "save_steps", "else": "auto"}, job, {}) == "auto"


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ({"is": 3}, 3),
        ({"of": "micro_batch", "in": [2]}, True),
        ({"of": "micro_batch", "not": [2]}, False),
        ({"of": "micro_batch", "text": "{}Gi"}, "2Gi"),
        ({"of": "micro_batch", "text": "{} of {given} on {job.devices}"}, "2 of 7 on 1"),
        ({"is": 3, "unless": ["save_steps", {"of": "micro_batch", "in": [3]}]}, 3),
        ({"is": 3, "unless": ["save_steps", "micro_batch"]}, None),
        ({"of": "micro_batch", "values": {"2": "two"}}, "two"),
        ({"of": "micro_batch", "values": {"3": "three"}, "else": "many"}, "many"),
        ({"of": "micro_batch", "when": {"of": "micro_batch", "in": [3]}}, None),
        ({"options": {"a": "micro_batch", "b": "save_steps"}}, {"a": 2}),
        ({"items": [{"a": "micro_batch", "b": "save_steps"}]}, [{"a": 2}]),
        ({"is": 3, "when": ["micro_batch", {"of": "micro_batch", "not": [2]}]}, None),
        ("given.real", 7),
    ],
)
def test_a_row_writes_what_its_form_says(job: Job, row: ExportRow, value: object) -> None:
    assert _written(row, job, {"given": 7}) == value


def test_options_of_a_command_that_are_true_have_no_value(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    block = {"--on": {"is": True}, "--off": {"is": False}, "--size": "micro_batch", "--none": "save_steps"}
    monkeypatch.setattr("capacity_tui.engine.present.frameworks.exports._blocks", lambda: {"tool": block})
    assert list(exported_arguments("tool", job)) == [("--on",), ("--size", "2")]
