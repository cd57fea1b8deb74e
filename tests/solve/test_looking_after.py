"""What a plan says of the run while it goes on: open parts as the mode has them, with reasons, and no other figures."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.plan import Plan, edited
from capacity_tui.engine.plan.files import apply_settings, dump_plan, plan_from_text
from capacity_tui.engine.present import result_as_dict
from capacity_tui.engine.solve.modes import Comparison, compare

TEXT = """
model: {name: gpt2}
training: {tokens: 1e9, micro_batch: auto, seq_len: 1024}
hardware: {name: rtx-4090}
"""
CONTRACT = """
watch: {interval: 1, temperature_c: 85, memory_share: 0.95, power_share: 1.0, nan: stop, loss_spike: 3.0}
recovery: {out_of_memory: [micro_batch, checkpointing, precision, offload], max_restarts: 5, heat: pause,
  battery: {pause_below: 0.2, threads: auto}, device_lost: fewer, checkpoint_every: auto}
"""


def number(value: object) -> float:
    assert isinstance(value, int | float), value
    return value


@pytest.fixture(scope="module")
def compared() -> Comparison:
    return compare(plan_from_text(TEXT, "plan"))


def test_the_conservative_mode_recovers_early_and_the_extreme_one_only_tells(compared: Comparison) -> None:
    low, middle, high = (each.plan for each in compared.columns)
    for early, late in ((low, middle), (middle, high)):
        assert number(early.watch.memory_share) < number(late.watch.memory_share)
        assert number(early.recovery.max_restarts) > number(late.recovery.max_restarts)
        assert set(early.recovery.out_of_memory) > set(late.recovery.out_of_memory)
    assert (low.recovery.heat, high.recovery.heat) == ("pause", "warn")
    assert (high.recovery.device_lost, high.recovery.unstable, high.watch.nan) == ("stop", "stop", "warn")


def test_each_value_that_a_mode_chose_has_its_reason(compared: Comparison) -> None:
    for each in compared.columns:
        assert set(each.annotated_estimate.basis.running) >= {
            "watch.temperature_c",
            "recovery.heat",
            "recovery.checkpoint_every",
        }
        assert all(each.running.values())
        assert each.mode.title in each.running["recovery.out_of_memory"]


def test_the_interval_of_checkpoints_follows_the_length_of_the_job_inside_the_bounds(compared: Comparison) -> None:
    for each in compared.columns:
        least, most = (60 * minutes for minutes in each.mode.recovery.checkpoint_minutes_range)
        assert least <= number(each.plan.recovery.checkpoint_every) <= most


def test_what_the_plan_says_stays_and_changes_no_figure() -> None:
    plain = plan_from_text(TEXT.replace("auto", "4"), "plan")
    told = plan_from_text(TEXT.replace("auto", "4") + CONTRACT, "plan")
    before, after = (compare(plan).balanced for plan in (plain, told))
    assert after.plan.recovery.battery.pause_below == 0.2
    assert after.plan.watch == told.watch
    assert "recovery.heat" not in after.running
    figures = [result_as_dict(each.plan, each.annotated_estimate) for each in (before, after)]
    for result in figures:
        del result["plan"], result["basis"]
    assert figures[0] == figures[1]


def test_modes_with_the_same_settings_stay_one_column() -> None:
    found = compare(plan_from_text(TEXT.replace("auto", "4"), "plan"))
    assert len(found.groups) == 1


def test_the_sections_are_written_and_read_again(compared: Comparison) -> None:
    plan = compared.conservative.plan
    again = plan_from_text(dump_plan(plan), "again")
    assert (again.watch, again.recovery) == (plan.watch, plan.recovery)
    assert "recovery" not in dump_plan(plan_from_text(TEXT, "plan"))


def test_values_are_typed_as_people_write_them() -> None:
    plan = plan_from_text(TEXT, "plan")
    typed = ["watch.memory_share=90%", "recovery.checkpoint_every=10min", "recovery.out_of_memory=micro_batch offload"]
    found = apply_settings(plan, typed).plan
    assert found.watch.memory_share == 0.9
    assert found.recovery.checkpoint_every == 600
    assert found.recovery.out_of_memory == ("micro_batch", "offload")
    assert edited(found, {"recovery.out_of_memory": ""}).plan.recovery.out_of_memory == ()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("recovery.heat=slow", "pause, warn"),
        ("recovery.max_restart=3", "recovery.max_restarts"),
        ("watch.memory_share=120%", "above 0 to 1"),
        ("recovery.out_of_memory=[batch]", "micro_batch, checkpointing"),
        ("recovery.battery.pause=3", "recovery.battery.pause_below"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(setting: str, words: str) -> None:
    plan: Plan = plan_from_text(TEXT, "plan")
    with pytest.raises(PlanError) as refused:
        apply_settings(plan, [setting])
    assert words in str(refused.value)


def test_loss_spikes_are_told_from_where_the_detector_tells_them(compared: Comparison) -> None:
    widths = load_catalog().detectors["loss_spike"].thresholds["widths"]
    assert compared.balanced.plan.watch.loss_spike == widths
