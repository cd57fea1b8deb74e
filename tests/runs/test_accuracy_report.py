"""The accuracy report: predictions beside measurements, as data, page, plot and command."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError, PlanError
from capacity_tui.engine.estimate import estimate_plan
from capacity_tui.engine.plan import Plan
from capacity_tui.engine.plan.files import example_text, plan_from_text
from capacity_tui.engine.present.runs import reports_as_data, reports_as_markdown, scatter_svg
from capacity_tui.engine.runs.accuracy import evaluate, predictor
from capacity_tui.engine.runs.accuracy.scoring import scored_measurements
from capacity_tui.engine.solve import step_seconds
from capacity_tui.engine.solve.modes import fill
from capacity_tui.tui.cli import main


@pytest.fixture(scope="module")
def report():
    rows = scored_measurements("train_memory")[:12]
    return evaluate(predictor(load_catalog()), "train_memory", rows)


def test_every_run_is_predicted_or_refused_with_a_reason(report):
    assert len(report.pairs) + len(report.refused) == 12
    assert all(pair.prediction.low < pair.prediction.value < pair.prediction.high for pair in report.pairs)
    assert all(refusal.reason for refusal in report.refused)


def test_the_page_names_scores_groups_and_the_worst(report):
    page = reports_as_markdown([report], {}, {"train_memory": "plot.svg"})
    assert "## Peak memory of training" in page
    assert "![Predicted against measured: peak memory of training](plot.svg)" in page
    assert report.worst[0].measurement.id in page
    assert "| estimates | " in page


def test_a_kind_that_cannot_be_estimated_says_so(report):
    def refuse(measurement):
        raise PlanError("not yet")

    rows = [pair.measurement for pair in report.pairs]
    empty = evaluate(refuse, "train_memory", rows)
    assert f"None of the {len(rows)} published runs can be estimated yet" in reports_as_markdown([empty], {}, {})


def test_data_is_json(report):
    data = json.loads(json.dumps(reports_as_data([report], {})))
    assert data["train_memory"]["overall"]["count"] == len(report.pairs)
    assert data["train_memory"]["unseen"] == {}


def test_the_plot_has_a_dot_for_each_run(report):
    drawing = ET.fromstring(scatter_svg(report))
    assert len(drawing.findall(".//{http://www.w3.org/2000/svg}circle")) == len(report.pairs)


def test_the_command_writes_page_and_plots(tmp_path, capsys):
    page = tmp_path / "accuracy.md"
    plots = tmp_path / "plots"
    assert main(["accuracy", "--kind", "finetune_memory", "--plots", str(plots), "-o", str(page)]) == 0
    assert "(plots/accuracy-finetune-memory.svg)" in page.read_text()
    assert (plots / "accuracy-finetune-memory.svg").exists()
    assert main(["accuracy", "--kind", "finetune_memory"]) == 0
    assert "furthest off" in capsys.readouterr().out


def test_one_call_gives_the_seconds_of_a_batch():
    assert 0.5 < step_seconds("llemma_7b_4_2_2_V") < 50
    with pytest.raises(CapacityError):
        step_seconds("no-such-example")


def test_the_example_of_estimate_train_time_holds_what_that_tool_predicts():
    # docs/cli-reference.md of github.com/DebarghaG/estimate-train-time 0.1.0: predict --example llemma_7b_4_2_2_P
    published = 9.4808
    estimate = fill(plan_from_text(example_text("llemma_7b_4_2_2_P"), "example"), "balanced").estimate
    step = estimate.computation.step_seconds
    assert step.low < published < step.high
    assert "context" not in " ".join(note.title for note in estimate.warnings)


def test_the_example_and_the_file_of_the_same_name_are_one_run(tmp_path):
    file = Path(__file__).parent.parent / "imports" / "samples" / "estimate_train_time.yml"
    assert step_seconds(str(file)) == pytest.approx(step_seconds("llemma_7b_4_2_2_P"), rel=0.01)


def test_memory_of_inference_is_what_serving_takes():
    catalog = load_catalog()
    rows = scored_measurements("inference_memory")
    predict = predictor(catalog)
    for row in [row for row in rows if row.quantity != "claimed_bytes"][::20]:
        memory = estimate_plan(Plan.model_validate(row.plan), None, catalog).estimate.memory
        counted = memory.per_device_bytes if row.quantity == "allocated_bytes" else memory.reserved_bytes
        found = predict(row).value
        assert found > counted.value if row.quantity == "claimed_bytes" else found == counted.value
    assert evaluate(predict, "inference_memory", rows).overall.median < 0.5
