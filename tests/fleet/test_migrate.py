"""Moving a job to other instances: what it reaches there, what that costs, and whether it is worth it."""

from __future__ import annotations

import pytest

from capacity_tui.engine.api import MigrationQuestion, load_catalog, migrate, plan_from_data
from capacity_tui.engine.errors import PlanError

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
    monkeypatch.setattr("capacity_tui.engine.fleet.migration.migrate.TOLD_SECONDS", 0.0)
    told = []
    question = MigrationQuestion(serving(), "infer", instances=(P5_ONE, G6E, "aws-g6-xlarge"))
    found = migrate(question, told=told.append, stopped=lambda: bool(told))
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
    assert found.reasons[1] == f"{P5} itself holds it with other settings"
    advice = {each.priority: each for each in found.recommendations}
    assert advice["reliability"].set and advice["reliability"].instance == P5
    assert advice["performance"].instance == "aws-p6-b200-48xlarge"
    assert not any("well-optimized" in each.title for each in found.recommendations)
    costs = [each.figures["cost.usd"].value for each in found.alternatives if each.fits and each.risk.level != "high"]
    assert costs == sorted(costs)
