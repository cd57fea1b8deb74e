"""Workloads and sets of them in one call: expected beside found, in every form, one fault not keeping the rest."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration import JobWords, migrate, question_of_job, run_workloads
from capacity_tui.engine.present.fleet import write_runs

WORKLOADS = ("inference_small_p5", "batch_inference_g5")


@pytest.fixture(scope="module")
def runs():
    job = JobWords("P5", "small", "infer", devices=1, precision="fp16", instances=("aws-g6e-xlarge",))
    found = migrate(question_of_job(job, load_catalog()))

    def answers(question, *_others):
        if question.kind != "infer":
            raise PlanError("the job cannot be estimated", "so it is said")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules[migrate.__module__], "migrate", answers)
        return tuple(run_workloads((*WORKLOADS, WORKLOADS[0])))


def test_each_workload_is_run_once_and_a_fault_keeps_none_of_the_others(runs):
    assert [run.workload for run in runs] == list(WORKLOADS)
    assert runs[0].migration is not None and runs[0].outcome.startswith(runs[0].migration.verdict)
    assert runs[1].migration is None and "so it is said" in runs[1].outcome


def test_no_set_means_the_one_to_begin_with():
    catalog = load_catalog()
    assert sys.modules[migrate.__module__].workloads_of((), catalog) == catalog.workload_sets["basic_demos"].workloads
    assert len(sys.modules[migrate.__module__].workloads_of(catalog.workload_sets, catalog)) == 7


def test_scripts_get_expected_and_found_with_every_machine(runs):
    first, second = json.loads(write_runs("json", runs))["runs"]
    assert first["expected_outcome"] == "Significant cost savings with G6/G6e instances"
    assert first.keys() >= {"workload", "found_outcome", "current", "alternatives", "verdict", "recommendations"}
    assert second["found_outcome"].startswith("cannot be estimated")
    rows = list(csv.DictReader(io.StringIO(write_runs("csv", runs))))
    assert [(row["workload"], row["instance"]) for row in rows] == [
        (WORKLOADS[0], "aws-p5-48xlarge"),
        (WORKLOADS[0], "aws-g6e-xlarge"),
    ]


@pytest.mark.parametrize("form", ["yaml", "markdown", "html"])
def test_pages_hold_expected_and_found(runs, form):
    text = write_runs(form, runs).replace("\\", "")
    assert "Significant cost savings" in text and "so it is said" in text
