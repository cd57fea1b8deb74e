"""Which machines end a job in time: the cheapest, the fastest, and the one that balances."""

from __future__ import annotations

import json

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.estimate import figures_of
from capacity_tui.engine.fleet import DeadlineQuestion, Machines, Recommended, database_for, recommend
from capacity_tui.engine.fleet.options import TIME, USD
from capacity_tui.engine.numeric import mean
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import plan_from_data, read_source
from capacity_tui.engine.solve.modes import fill
from capacity_tui.tui.cli import main

NAMES = ("aws-g5-xlarge", "aws-g6-xlarge", "aws-p5-48xlarge", "lambda-gpu-1x-a10", "lambda-gpu-8x-h100-sxm5")
PLAN = plan_from_data(
    {
        "task": "train",
        "model": {"name": "500M"},
        "training": {"tokens": 1e8, "seq_len": 2048, "global_batch": 64},
        "hardware": {"name": "h100-sxm-80gb", "devices": 1},
    }
)
HOUR = 3600.0
CATALOG = load_catalog()


@pytest.fixture(scope="module")
def found() -> Recommended:
    return recommend(DeadlineQuestion(PLAN, 24 * HOUR, hardware=NAMES, devices=(1, 8)))


def test_three_cheapest_and_three_fastest_of_different_instances(found: Recommended) -> None:
    prices = [mean(each.usd.value) for each in found.cheapest]
    times = [mean(each.seconds.value) for each in found.fastest]
    assert len({each.instance for each in found.cheapest}) == len({each.instance for each in found.fastest}) == 3
    assert prices == sorted(prices)
    assert times == sorted(times)
    assert {each.instance for each in found.fastest[:2]} == {"aws-p5-48xlarge", "lambda-gpu-8x-h100-sxm5"}
    assert found.balanced is not None
    assert weighed(found.balanced) <= min(weighed(each) for each in (*found.cheapest, *found.fastest))
    assert all(mean(each.seconds.high) <= 24 * HOUR for each in (*found.cheapest, *found.fastest))


def weighed(each: Machines) -> float:
    """Price and time of a job with ten minutes more for its start, which is nearly the same on all of these."""
    usd, seconds = mean(each.usd.value), mean(each.seconds.value) + 480.0
    return (usd + 480.0 / HOUR * (each.usd_per_hour or 0.0)) * (1.0 + seconds / (24 * HOUR))


@pytest.mark.parametrize("plan", [PLAN, read_source("full_finetune_8b").plan()])
def test_planning_what_is_recommended_gives_its_figures(plan: Plan) -> None:
    said = recommend(
        DeadlineQuestion(plan, 24 * HOUR, 500.0, hardware=("aws-p5-48xlarge", "runpod-rtx-a6000")), CATALOG
    )
    assert said.balanced is not None and said.complete
    for each in (*said.cheapest, *said.fastest, said.balanced):
        figures = figures_of(fill(edited(plan, each.set, CATALOG).plan, "balanced", None, CATALOG).estimate)
        assert (each.seconds, each.usd) == (figures[TIME], figures[USD])
        assert each.verdict.holds and mean(each.seconds.high) <= 24 * HOUR and mean(each.usd.high) <= 500.0


def test_balance_is_not_the_most_machines_that_may_be_had() -> None:
    said = recommend(DeadlineQuestion(PLAN, 24 * HOUR, hardware=("lambda-gpu-1x-a10", "aws-p5-48xlarge")), CATALOG)
    assert said.balanced is not None
    assert said.balanced.devices < said.fastest[0].devices == 64


def test_a_layout_that_was_written_for_other_machines_keeps_none_of_them() -> None:
    """Eight replicas, as the example writes them, are no layout of two devices or of sixteen."""
    plan = read_source("full_finetune_8b").plan()
    assert plan.parallelism.dp == 8
    said = recommend(DeadlineQuestion(plan, 72 * HOUR, hardware=("aws-p5-48xlarge",), devices=(8, 16)), CATALOG)
    assert {each.devices for each in (*said.cheapest, *said.fastest)} and not said.rejected


def test_a_stop_and_progress_keep_what_was_found() -> None:
    told: list[Recommended] = []
    said = recommend(
        DeadlineQuestion(PLAN, 24 * HOUR, hardware=NAMES), CATALOG, None, told.append, lambda: bool(told[0:1])
    )
    assert told and not said.complete and said.evaluated >= 1


def test_machines_say_what_they_have_and_what_the_job_keeps_there(found: Recommended) -> None:
    fast = next(each for each in found.fastest if each.instance == "aws-p5-48xlarge")
    assert (fast.count, fast.devices, fast.accelerator, fast.cores) == (1, 8, "h100-sxm-80gb", 192)
    assert fast.memory_bytes == 2048e9
    # Three checkpoints of 14 bytes a parameter, and four bytes a token.
    assert fast.storage_bytes == pytest.approx(0.5e9 * 14 * 3 + 1e8 * 4, rel=1e-3)
    assert fast.usd_per_hour == 55.04
    assert mean(fast.usd.value) == pytest.approx(55.04 * mean(fast.seconds.value) / HOUR)
    assert fast.database.kind == "file"
    assert fast.database.storage_bytes == pytest.approx(1.2 * 4e8, rel=1e-3)


def test_a_database_for_several_machines_is_a_server() -> None:
    server = database_for(100e9, 2)
    assert server.kind == "server"
    assert server.storage_bytes == pytest.approx(120e9)
    assert server.memory_bytes == pytest.approx(1e9 + 120e9 * 0.1 / 0.5)
    assert database_for(200e9, 1).kind == "server"


def test_what_cannot_end_in_time_is_told_with_what_is_missing() -> None:
    nothing = recommend(DeadlineQuestion(PLAN, 60.0, budget_usd=1.0, hardware=NAMES[:2], devices=(1,)))
    assert (nothing.cheapest, nothing.fastest, nothing.balanced) == ((), (), None)
    assert any("estimated_train_time_seconds" in each.rule for each in nothing.missed)
    served = plan_from_data({"task": "infer", "model": {"name": "500M"}, "hardware": {"name": "h100-sxm-80gb"}})
    with pytest.raises(PlanError, match="no end"):
        recommend(DeadlineQuestion(served, HOUR))


def test_the_command_gives_both_for_people_and_for_scripts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    asked = ("fleet", "recommend", "linear_regression", "--deadline", "1h", "--hardware", "aws-g5-xlarge,aws-g6-xlarge")
    assert main((*asked, "--devices", "1", "--format", "json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert {"cheapest", "fastest", "balanced"} <= said.keys()
    assert {"instance", "memory_bytes", "cores", "storage_bytes", "devices", "database", "usd"} <= said[
        "balanced"
    ].keys()
    assert main((*asked, "--devices", "1")) == 0
    assert "Cheapest, done in 1 h" in capsys.readouterr().out
    assert main((*asked, "--devices", "1", "--budget", "0")) == 1
    assert "nothing is done in 1 h" in capsys.readouterr().out
