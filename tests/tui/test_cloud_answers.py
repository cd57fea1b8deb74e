"""Offers of the real engine as the screen shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.estimate import figures_of
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import dump_plan
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.verdict import Verdict
from capacity_tui.tui.engine_view import CapacityEngine
from capacity_tui.tui.plan_document import PlanDocument
from capacity_tui.tui.shown.results import ResultRow, Results

PLAN = """
model: {name: llama-3.1-8b}
task: finetune
training: {method: lora, tokens: 5e7, seq_len: 4096}
hardware: {name: aws-p5-48xlarge, devices: 8}
"""
USUAL = "balanced"
SAID = {"instances": "runpod-h100-sxm, aws-g6e-4xlarge", "hours": "160", "spot": "yes"}


@pytest.fixture(scope="module")
def document() -> PlanDocument:
    return CapacityEngine().open(PLAN)


@pytest.fixture(scope="module")
def results(document: PlanDocument) -> Results:
    return document.migration(USUAL, {**SAID, "precision": "fp16", "region": "europe"}).answer(
        lambda _: None, lambda: False
    )


def named(results: Results, name: str) -> ResultRow:
    return next(row for row in results.rows if row.cells[0].text == name)


def cell(results: Results, row: ResultRow, title: str) -> str:
    return row.cells[[column.title for column in results.columns].index(title)].text


def test_the_machine_of_the_plan_stands_first_and_a_verdict_above(results: Results) -> None:
    assert results.is_complete
    assert results.rows[0].cells[0].text == "aws-p5-48xlarge"
    assert cell(results, results.rows[0], "saving") == "now"
    assert results.remarks[0].startswith(("→ move", "= stay"))
    assert "$/h" in [column.title for column in results.columns]


def test_taking_an_offer_makes_the_plan_what_it_says(results: Results, document: PlanDocument) -> None:
    row = named(results, "runpod-h100-sxm")
    plan = document.changed(row.change).plan
    assert plan.hardware.name == "runpod-h100-sxm"
    assert plan.training.precision == "fp16"
    assert plan.pricing.region == "europe"
    assert not document.changed(row.change).trial("training.seq_len", "4096").reason


def test_what_does_not_hold_the_job_says_by_how_much(document: PlanDocument) -> None:
    large = document.edited("model.name", "llama-3.1-70b")
    given = {"instances": "aws-g4dn-xlarge"}
    assert len(large.migration(USUAL, given).answer(lambda _: None, lambda: False).rows) == 1
    results = large.migration(USUAL, {**given, "shown": "all"}).answer(lambda _: None, lambda: False)
    row = named(results, "aws-g4dn-xlarge")
    assert row.verdict is Verdict.DOES_NOT_FIT
    assert "GiB" in cell(results, row, "short")
    assert "short on a device" in row.about[0]
    assert cell(results, row, "saving") == "n/a"


def test_offers_leave_the_program_in_five_forms(results: Results) -> None:
    assert results.source is not None
    files = {name: text for export in results.source.exports() for name, text in export.files.items()}
    assert {Path(name).suffix for name in files} == {".md", ".csv", ".json", ".yaml", ".html"}
    assert all("runpod-h100-sxm" in text for text in files.values())


def test_figures_of_estimate_and_of_the_month_open(results: Results) -> None:
    row = named(results, "aws-g6e-4xlarge")
    assert row.page is not None
    keys = {entry.key for entry in row.page.inputs if entry.key}
    assert {"usd_month", "saving_usd", "computation.step_seconds"} <= keys
    assert results.source is not None
    assert "hours · usd_per_hour" in results.source.explained(row, "usd_month").formula
    assert results.source.explained(row, "computation.step_seconds").inputs


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [("hours", "soon", "number of hours"), ("hours", "9000", "month"), ("region", "mars", "region"),
     ("data", "lots", "bytes|quantity|size")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_words(document: PlanDocument, key: str, text: str, told: str) -> None:
    with pytest.raises(CapacityError, match=told):
        document.migration(USUAL, {}).edited(key, text)


def test_the_command_says_the_question(document: PlanDocument) -> None:
    command = document.migration(USUAL, {"hours": "160", "spot": "yes", "region": "europe"}).command()
    assert "--from aws-p5-48xlarge --gpus 8 --task finetune --model llama-3.1-8b" in command
    assert "--set training.tokens=50000000" in command
    assert command.endswith("--hours 160 --spot --region europe")


@pytest.mark.parametrize("mode", ["balanced", "extreme"])
def test_where_the_plan_runs_now_has_the_figures_of_the_head(mode: str) -> None:
    plan = plan_of_line(read_line("lora llama-3.1-8b p4d 50M 4k")).plan
    document = CapacityEngine().open(dump_plan(plan))
    results = document.migration(mode, {"instances": "aws-p5-48xlarge"}).answer(lambda _: None, lambda: False)
    figures = figures_of(fill(plan, mode).estimate)
    titles = [column.title for column in results.columns]
    now, other = results.rows
    taken = figures_of(fill(edited(plan, other.change).plan, mode).estimate)
    for row, planned in ((now, figures), (other, taken)):
        assert row.cells[titles.index("time")].number == planned["computation.estimated_train_time_seconds"].value
        assert row.cells[titles.index("cost")].number == planned["cost.usd"].value


def test_whose_price_it_is_stands_beside_every_offer(results: Results) -> None:
    assert cell(results, named(results, "runpod-h100-sxm"), "price source").startswith("RunPod")
    assert cell(results, named(results, "aws-g6e-4xlarge"), "price source").startswith("AWS")
