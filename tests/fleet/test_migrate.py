"""Moving a job to other instances: what it reaches there, what that costs, and whether it is worth it."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.fleet.migration import (
    JobWords,
    MigrationQuestion,
    migrate,
    question_of_job,
    question_of_workload,
)
from capacity_tui.engine.fleet.migration.priced import ratio_range
from capacity_tui.engine.plan import edited
from capacity_tui.engine.plan.files import plan_from_data
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import plan_of_line
from capacity_tui.engine.solve.modes import fill
from capacity_tui.engine.uncertainty import Interval
from capacity_tui.engine.verdict import Verdict

P5, P5_ONE, G6E = "aws-p5-48xlarge", "aws-p5-4xlarge", "aws-g6e-xlarge"


def serving(**hardware):
    return plan_from_data(
        {
            "task": "infer",
            "model": {"name": "llama-2-13b"},
            "inference": {"batch": "auto", "weights": "fp16"},
            "hardware": {"name": P5, "devices": 1, **hardware},
        }
    )


@pytest.fixture(scope="module")
def served():
    question = MigrationQuestion(serving(), "infer", instances=(P5, P5_ONE, G6E, "aws-g4dn-xlarge"))
    return migrate(question)


def by_name(migration, name):
    return next(each for each in migration.alternatives if each.instance == name)


def test_an_instance_is_paid_for_whole_whatever_part_of_it_is_used(served):
    assert served.current.devices == 1 and served.current.count == 1
    row = load_catalog().instances[P5]
    assert served.current.usd_month == pytest.approx(row.on_demand_usd_per_hour * 720)


def test_a_service_gets_the_fewest_instances_that_do_the_same_work(served):
    smaller = by_name(served, G6E)
    assert smaller.fits and smaller.performance_ratio.value >= 1.0
    fewer = (smaller.count - 1) / smaller.count * smaller.performance_ratio.value
    assert fewer < 1.0
    assert smaller.usd_same_work.value == pytest.approx(smaller.usd_month)


def test_spot_is_never_proposed_where_people_wait(served):
    assert all(each.usd_month_spot is None and not each.is_spot for each in served.alternatives)


def test_what_does_not_fit_says_how_much_is_missing(served):
    small = by_name(served, "aws-g4dn-xlarge")
    assert not small.fits and small.short_bytes > 5 * 2**30
    assert served.alternatives[-1] is small


def test_questions_that_make_no_sense_are_refused():
    with pytest.raises(PlanError, match="month"):
        MigrationQuestion(serving(), "infer", hours=0)
    with pytest.raises(PlanError, match="kind of job"):
        MigrationQuestion(serving(), "inferr")


def test_progress_is_told_and_a_stop_keeps_what_was_found(monkeypatch):
    monkeypatch.setattr(sys.modules[migrate.__module__], "CALLBACK_SECONDS", 0.0)
    told = []
    question = MigrationQuestion(serving(), "infer", instances=(P5_ONE, G6E, "aws-g6-xlarge"))
    found = migrate(question, callback=told.append, stopped=lambda: bool(told))
    assert len(told) == 1 and not told[0].complete and 0 < told[0].share_done < 1
    assert not found.complete and len(found.alternatives) == 1


def test_what_is_missing_comes_with_what_would_help(served):
    small = by_name(served, "aws-g4dn-xlarge")
    lighter, larger = small.remedies
    assert lighter.short_bytes == 0 and lighter.set["inference.weights"] != "fp16"
    assert larger.words == "1 x aws-p5-4xlarge holds it"


def test_moving_away_takes_money_and_hours_part_by_part(served):
    smaller = by_name(served, G6E)
    assert {part.name for part in smaller.move} == {"set-up", "validation", "double running"}
    assert smaller.move_usd == pytest.approx(sum(part.usd for part in smaller.move))
    hours = smaller.move_usd / smaller.saving_usd.value * 720
    assert smaller.break_even_hours == pytest.approx(hours)


def test_verdict_and_recommendations_say_why(served):
    assert served.verdict == "move" and served.reasons
    assert {each.priority for each in served.recommendations} == {"cost", "performance", "reliability"}
    assert any("paid for" in each.title for each in served.recommendations)


def test_a_model_that_is_split_now_is_tried_whole_on_smaller_machines():
    plan = serving(devices=8).model_copy(update={"parallelism": plan_from_data(
        {"task": "infer", "model": {"name": "llama-2-13b"}, "parallelism": {"tp": 8}}).parallelism})  # fmt: skip
    small = migrate(MigrationQuestion(plan, "infer", instances=("aws-g6-4xlarge", G6E))).alternatives
    assert by_name_in(small, G6E).fits
    missing = by_name_in(small, "aws-g6-4xlarge")
    assert missing.short_bytes > 0 and not missing.warnings
    assert any(G6E in remedy.words for remedy in missing.remedies)


def test_names_of_devices_stand_for_the_instances_that_have_them():
    found = migrate(MigrationQuestion(serving(), "infer", instances=("l40s",)))
    devices = {load_catalog().instances[each.instance].accelerator for each in found.alternatives}
    assert devices == {"l40s"} and len(found.alternatives) > 3


def by_name_in(found, name):
    return next(each for each in found if each.instance == name)


def test_a_job_that_does_not_fit_is_told_its_first_machines():
    plan = plan_from_data(
        {
            "task": "finetune",
            "model": {"name": "llama-3.1-70b"},
            "training": {"method": "lora", "seq_len": 4096, "tokens": 5e7},
            "hardware": {"name": P5, "devices": 8},
        }
    )
    found = migrate(MigrationQuestion(plan, "finetune", instances=(P5, "aws-p6-b200-48xlarge", "aws-g5-xlarge")))
    assert not found.current.fits and found.verdict == "stay"
    assert found.reasons[1] == f"{P5} holds it with other settings"
    advice = {each.priority: each for each in found.recommendations}
    assert advice["reliability"].set and advice["reliability"].instance == P5
    assert advice["performance"].instance == "aws-p6-b200-48xlarge"
    assert not any("well-optimized" in each.title for each in found.recommendations)
    costs = [each.figures["cost.usd"].value for each in found.alternatives if each.fits and each.risk.level != "high"]
    assert costs == sorted(costs)


def test_where_the_job_does_not_fit_its_own_machine_is_mended_first():
    found = migrate(question_of_job(JobWords("G6", "small", "infer", instances=("G5", "G6e")), load_catalog()))
    assert found.verdict == "stay" and not found.current.fits
    (remedy,) = found.current.remedies
    assert remedy.is_enough and remedy.set == {"inference.weights": "int8"}
    mended = edited(question_of_job(JobWords("G6", "small", "infer"), load_catalog()).plan, remedy.set).plan
    assert fill(mended, "balanced").estimate.fits
    assert found.current.usd_same_work is None and all(each.saving_percent is None for each in found.alternatives)


def test_where_no_saving_is_known_the_cheapest_comes_first():
    plan = plan_from_data(
        {
            "task": "finetune",
            "model": {"name": "llama-2-7b"},
            "training": {"method": "lora", "seq_len": 2048, "tokens": 1e7},
            "hardware": {"name": "h800-sxm-80gb", "devices": 8},
        }
    )
    found = migrate(MigrationQuestion(plan, "finetune", instances=(P5, "aws-g6-48xlarge", "aws-p4d-24xlarge")))
    fitting = [each for each in found.alternatives if each.fits]
    assert found.current.usd_month is None and all(each.saving_usd is None for each in fitting)
    costs = [each.figures["cost.usd"].value for each in fitting]
    assert len(costs) > 2 and costs == sorted(costs)


def test_what_is_left_out_for_its_risk_is_said_beside_what_costs_more():
    words = JobWords("P5", "large", "train", devices=2, hours=500, spot=True, instances=("P5", "P6", "P4d", "P5e"))
    found = migrate(question_of_job(words, load_catalog()))
    cost = next(each for each in found.recommendations if each.priority == "cost")
    chosen = next(each for each in found.alternatives if dict(each.set) == dict(cost.set))
    assert chosen.is_spot and chosen.risk.level != "high"
    paid = "cost.usd_per_million_tokens"
    for each in found.alternatives:
        if each.fits and each.figures[paid].value < chosen.figures[paid].value:
            assert each.risk.level == "high" and each.instance in cost.detail
    assert all({"computation.tokens_per_second", paid} <= each.figures.keys() for each in found.alternatives)


def test_a_job_that_is_to_run_faster_is_answered_about_speed():
    catalog = load_catalog()
    question = question_of_workload(catalog.workloads["inference_massive_p5e"], catalog)
    found = migrate(replace(question, instances=("P6", "P5")), catalog)
    assert found.current.usd_same_work is None and found.verdict == "move"
    best = by_name(found, "aws-p6-b200-48xlarge")
    assert best.performance_ratio.low > 1.0 and "times the throughput" in found.reasons[0]
    assert found.goes_to is not None and found.goes_to.instance in found.reasons[0]
    about_cost = migrate(replace(question, instances=("P6", "P5"), goal="cost"), catalog)
    assert about_cost.verdict == "stay"


@pytest.mark.parametrize(
    ("words", "instances"),
    [
        (JobWords("P5", "small", "infer", devices=1), ("G6e",)),
        (JobWords("P5e", "massive", "infer", devices=8, precision="fp8"), ("P5",)),
        (JobWords("P5", "medium", "finetune", devices=8, hours=200), ("G6e", "P4d")),
    ],
)
def test_well_optimized_is_what_nothing_improves(words, instances):
    found = migrate(question_of_job(replace(words, instances=instances), load_catalog()))
    said = [each for each in found.recommendations if "well-optimized" in each.title]
    for each in said:
        assert each.priority != "cost" or found.current.usd_same_work is not None
        assert each.priority != "reliability" or not found.current.risk.reasons
    if any(each.priority == "cost" for each in said):
        savings = [each.saving_percent.value for each in found.alternatives if each.fits and each.saving_percent]
        assert max(savings, default=0.0) < 10.0


def test_a_machine_that_misses_a_limit_is_neither_fitting_nor_recommended():
    catalog, plan = load_catalog(), plan_of_line(read_line("serve qwen2.5-72b 8xh100 3 req/s ttft<1s")).plan
    slow, fast = "aws-g5-48xlarge", "lambda-gpu-2x-b200-sxm6"
    found = migrate(MigrationQuestion(plan, "infer", instances=(slow, fast)), catalog)
    missing, keeping = by_name(found, slow), by_name(found, fast)
    first = "computation.infer.time_to_first_token_percentile_seconds"
    assert missing.figures[first].value > 1.0 and not missing.fits and missing.verdict is Verdict.MISSES_LIMIT
    assert keeping.fits and keeping.figures[first].value <= 1.0
    assert slow not in {each.instance for each in found.recommendations}


def test_a_move_leads_to_no_machine_that_may_not_hold_the_job():
    catalog = load_catalog()
    question = question_of_workload(catalog.workloads["fine_tuning_medium_p5"], catalog)
    found = migrate(replace(question, instances=("runpod", "lambda", "G6e", "P4d")), catalog)
    assert found.current.verdict is Verdict.FITS
    tight = {each.instance for each in found.alternatives if each.verdict is Verdict.TIGHT}
    assert tight
    assert not tight & {each.instance for each in found.recommendations if each.priority != "reliability"}


def test_the_range_of_a_ratio_pairs_far_ends_of_errors_that_are_independent():
    """Work of 100 (80 to 150) over 50 (40 to 60): logarithms of errors on both sides add up as squares."""
    other, current = Interval(100.0, 80.0, 150.0), Interval(50.0, 40.0, 60.0)
    apart = ratio_range(other, current, shared_errors=False)
    # Down: 100 may be 80 (a quarter less), and 50 may be 60 (a fifth more); up: 150 (half more) over 40 (a quarter).
    down = math.sqrt(math.log(100 / 80) ** 2 + math.log(60 / 50) ** 2)
    up = math.sqrt(math.log(150 / 100) ** 2 + math.log(50 / 40) ** 2)
    assert apart.value == pytest.approx(2.0)
    assert (apart.low, apart.high) == (pytest.approx(2 / math.exp(down)), pytest.approx(2 * math.exp(up)))
    assert (round(apart.low, 3), round(apart.high, 3)) == (1.499, 3.177)
    alike = ratio_range(other, current, shared_errors=True)
    # The same device: of 1.25 down and 1.25 down nothing is left, of 1.5 up and 1.2 up a quarter.
    assert (alike.low, alike.high) == (pytest.approx(2.0), pytest.approx(2.5))
