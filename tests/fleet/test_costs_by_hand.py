"""Scenarios of moving, each beside its costs worked out by hand from prices of one's own and the shipped ones."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.fleet.migration import JobWords, migrate, question_of_job

P5, P4D, G5, G6E, LAMBDA = (
    "aws-p5-48xlarge", "aws-p4d-24xlarge", "aws-g5-4xlarge", "aws-g6e-xlarge", "lambda-gpu-8x-h100-sxm5",
)  # fmt: skip
# Prices of whole instances, US dollars an hour, as their lists had them on 20 July 2026.
P5_USD, P4D_USD, G5_USD, G6E_USD, LAMBDA_USD = 55.04, 21.957642, 1.624, 1.861, 31.92
P5_SPOT, G5_SPOT = 11.754, 0.64
WAGE = 91.0


def moved(*instances, **words):
    return migrate(question_of_job(JobWords(instances=instances, **words), load_catalog()))


@pytest.fixture(scope="module")
def tuned():
    """Fine-tuning 8 B on one P4d, 500 hours a month, with two terabytes of data."""
    return moved(P5, LAMBDA, instance="P4d", model="llama-3.1-8b", kind="finetune", precision="bf16", hours=500,
                 data_bytes=2e12)  # fmt: skip


@pytest.fixture(scope="module")
def batched():
    """Batch inference of 8 B in INT8 on one G5, 400 hours a month; spot capacity allowed."""
    return moved(G5, instance="aws-g5-4xlarge", model="llama-3.1-8b", kind="batch_infer", precision="int8", hours=400,
                 spot=True)  # fmt: skip


@pytest.fixture(scope="module")
def served():
    """Serving 13 B on one of a P5's eight GPUs, day and night."""
    return moved(G6E, instance="P5", devices=1, model="small", kind="infer", precision="fp16", spot=True)


def only(migration, name):
    return next(each for each in migration.alternatives if each.instance == name)


def test_1_one_gpu_of_eight_costs_all_eight(served):
    assert served.current.usd_month == pytest.approx(P5_USD * 720) == pytest.approx(39_628.80)


def test_2_a_service_pays_the_month_of_its_fewest_instances(served):
    each = only(served, G6E)
    month = each.count * G6E_USD * 720
    assert each.usd_same_work.value == pytest.approx(month)
    assert each.saving_percent.value == pytest.approx((39_628.80 - month) / 39_628.80 * 100)


def test_3_a_service_runs_on_both_machines_for_three_days(served):
    each = only(served, G6E)
    once = 16 * WAGE + each.count * G6E_USD * (4 + 72)
    assert each.move_usd == pytest.approx(once)
    assert each.move_hours == pytest.approx(16 + 4 + 72)
    saved_an_hour = P5_USD - each.count * G6E_USD
    assert each.break_even_hours == pytest.approx(once / saved_an_hour)


def test_4_a_training_ends_earlier_on_a_faster_machine(tuned):
    each = only(tuned, P5)
    hours = 500 / each.performance_ratio.value
    assert 1.8 < each.performance_ratio.value < 3.6
    assert each.usd_month == pytest.approx(500 * P5_USD) == pytest.approx(27_520.0)
    assert each.usd_same_work.value == pytest.approx(hours * P5_USD)
    assert each.saving_usd.value == pytest.approx(500 * P4D_USD - hours * P5_USD)


def test_5_another_cloud_costs_what_leaves_the_first(tuned):
    transfer = next(part for part in only(tuned, LAMBDA).move if part.name == "transfer")
    # Weights in 16 bits, and in fp32 a master copy and two moments: 14 bytes for each of 8.03 billion parameters.
    gigabytes = 2000 + 14 * 8.03
    assert transfer.usd == pytest.approx((gigabytes - 100) * 0.09, rel=0.01)
    assert transfer.hours == pytest.approx(gigabytes * 8 / 5 / 3600, rel=0.01)


def test_6_the_same_cloud_and_region_costs_no_transfer(tuned):
    assert [part.name for part in only(tuned, P5).move] == ["set-up", "validation"]
    assert only(tuned, P5).move_usd == pytest.approx(16 * WAGE + 4 * P5_USD)


def test_7_answers_nobody_waits_for_lose_restarts_alone_on_spot_capacity(batched):
    each = only(batched, G5)
    # Taken back once in 24 hours, ten minutes until work goes on.
    assert each.is_spot
    assert each.usd_month_spot.value == pytest.approx(400 * G5_SPOT * (1 + 600 / 86_400))
    assert each.saving_percent.value == pytest.approx((1 - G5_SPOT * (1 + 600 / 86_400) / G5_USD) * 100)


def test_8_a_training_on_spot_capacity_loses_work_since_its_checkpoint():
    found = moved(P5, instance="P5", model="llama-3.1-8b", kind="finetune", precision="bf16", hours=100, spot=True)
    each = only(found, P5)
    states = each.usd_month_spot.value / (100 * P5_SPOT) - 1
    # Daly: each of eight devices writes an eighth of 14 bytes a parameter, or all of the weights, at 1 GB a second.
    surplus = []
    for seconds in (8.03 * 14 / 8, 8.03 * (2 + 12 / 8), 8.03 * 14):
        day, restart = 86_400.0, 600.0
        period = math.sqrt(2 * seconds * day) - seconds
        surplus.append(day / period * math.exp(restart / day) * math.expm1((period + seconds) / day) - 1)
    assert surplus[0] * 0.99 <= states <= surplus[-1] * 1.01
    transfer = next(part for part in each.move if part.name == "transfer")
    assert each.region == "us-east-2" and transfer.usd == pytest.approx(14 * 8.03 * 0.02, rel=0.01)


def test_9_without_an_on_demand_price_there_is_no_saving_to_tell():
    found = moved("aws-p5e-48xlarge", instance="P5", model="small", kind="infer", precision="fp16")
    each = only(found, "aws-p5e-48xlarge")
    assert each.fits and each.performance_ratio.value > 1
    assert each.usd_month is None and each.saving_percent is None and each.move_usd is None
    assert "no on-demand price" in each.absence
    assert any("no on-demand price" in reason for reason in each.risk.reasons)


def test_10_a_commitment_of_three_years_takes_its_share_off():
    found = moved(P4D, instance="P4d", model="llama-3.1-8b", kind="train", precision="bf16", hours=720, commitment="3y")
    assert found.current.usd_month == pytest.approx(720 * 7.751047626)


def test_11_a_load_decides_how_many_instances_serve_it():
    question = question_of_job(JobWords("P5", "small", "infer", devices=1, precision="fp16", instances=(G6E,)),
                               load_catalog())  # fmt: skip
    light = migrate(with_rate(question, 0.2)).alternatives[0]
    heavy = migrate(with_rate(question, 6.0)).alternatives[0]
    assert light.count == 1 < heavy.count
    assert heavy.usd_month == pytest.approx(heavy.count * G6E_USD * 720)


def with_rate(question, rate):
    inference = question.plan.inference.model_copy(update={"request_rate": rate})
    return replace(question, plan=question.plan.model_copy(update={"inference": inference}))


def test_12_lambda_bills_eight_gpus_for_the_same_work(tuned):
    each = only(tuned, LAMBDA)
    assert each.usd_month == pytest.approx(500 * LAMBDA_USD) == pytest.approx(15_960.0)
    # The same eight H100 at a lower price.
    assert each.performance_ratio.value == pytest.approx(only(tuned, P5).performance_ratio.value)
    assert each.usd_same_work.value / only(tuned, P5).usd_same_work.value == pytest.approx(LAMBDA_USD / P5_USD)
