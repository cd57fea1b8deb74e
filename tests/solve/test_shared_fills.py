"""What modes share of a comparison changes no number, nor does leaving out estimates of models that take too long."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import CapacityError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.plan import Plan, with_values
from capacity_tui.engine.solve.modes import ModeName, ModePlan, compare, fill, model_choice
from capacity_tui.engine.solve.modes.modes import MODES
from capacity_tui.engine.solve.modes.training_settings import Search
from capacity_tui.engine.solve.space.configurations import TrainingSpace

AUTO = "auto"


@st.composite
def open_plans(draw: st.DrawFn, models: st.SearchStrategy[str]) -> Plan:
    """A plan whose settings, layout and job may each be open."""

    def maybe(*values: object) -> object:
        return draw(st.sampled_from((AUTO, *values)))

    devices = draw(st.sampled_from((1, 4, 16)))
    return Plan.model_validate(
        {
            "model": {"name": draw(models)},
            "hardware": {"name": draw(st.sampled_from(("rtx-4090", "h100-sxm-80gb"))), "devices": devices},
            "training": {
                "seq_len": maybe(512, 2048),
                "tokens": maybe(1e7, 1e10),
                "micro_batch": AUTO,
                "global_batch": maybe(64),
                "checkpointing": maybe("none"),
            },
            "parallelism": {"tp": maybe(1), "zero": maybe(1)},
        }
    )


def told(filled: ModePlan) -> tuple[object, ...]:
    estimate = filled.annotated_estimate
    return (
        filled.plan,
        filled.reasons,
        estimate.warnings,
        float(estimate.memory.reserved_bytes.value),
        estimate.computation.step_seconds,
        estimate.cost,
        estimate.energy,
    )


@settings(max_examples=5, deadline=None)
@given(open_plans(st.sampled_from((AUTO, "gpt2-small", "llama-3-8b"))))
def test_a_mode_fills_a_plan_the_same_alone_and_beside_others(plan: Plan) -> None:
    try:
        compared = compare(plan)
    except CapacityError:
        assume(False)
    for name, beside in zip(MODES, compared.columns, strict=True):
        assert told(beside) == told(fill(plan, name))


@settings(max_examples=10, deadline=None)
@given(open_plans(st.just(AUTO)), st.sampled_from(MODES))
def test_models_that_are_passed_over_unestimated_are_not_the_ones_to_choose(plan: Plan, mode: ModeName) -> None:
    """Of every fourth model, from the largest to the smallest."""
    models = load_catalog().architectures
    with mock.patch.object(models, "decoders", (*models.decoders[:-1:4], models.decoders[-1])):
        try:
            chosen = fill(plan, mode)
        except CapacityError:
            assume(False)
        with mock.patch.object(model_choice, "MARGIN", float("inf")):
            assert told(chosen) == told(fill(plan, mode))


def test_modes_that_take_the_batch_of_the_balanced_one_look_at_its_space() -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": "gpt2-small"},
            "hardware": {"name": "rtx-3060-12gb"},
            "training": {"micro_batch": AUTO, "global_batch": AUTO, "checkpointing": AUTO, "seq_len": 1024},
        }
    )
    with mock.patch.object(TrainingSpace, "block", autospec=True, side_effect=TrainingSpace.block) as evaluated:
        compare(plan)
    # One block of the space, and one along the micro-batch that the extreme mode makes as large as memory lets it.
    assert evaluated.call_count == 2


@pytest.mark.parametrize("precision", [AUTO, "fp32"])
def test_few_models_are_settled_before_the_one_that_ends_in_time(precision: str) -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": AUTO},
            "hardware": {"name": "h100-sxm-80gb", "devices": 64},
            "training": {"tokens": AUTO, "micro_batch": AUTO, "precision": precision, "seq_len": 1024},
        }
    )
    with mock.patch.object(Search, "settings", autospec=True, side_effect=Search.settings) as settled:
        compared = compare(plan)
    assert compared.extreme.reasons[Key.MODEL_NAME].startswith("largest model that trains within")
    assert settled.call_count <= 14  # three for each of the models that may end by a bound of their time


def test_a_job_cut_to_the_hours_of_a_mode_has_the_settings_that_it_has_when_it_is_given() -> None:
    plan = Plan.model_validate(
        {
            "model": {"name": AUTO},
            "hardware": {"name": "t4"},
            "training": {"tokens": AUTO, "micro_batch": AUTO, "checkpointing": AUTO, "seq_len": 1024},
        }
    )
    cut = compare(plan).extreme
    given = {Key.MODEL_NAME: cut.plan.model.name, Key.TRAINING_TOKENS: cut.plan.training.tokens}
    assert "as many as end within" in cut.reasons[Key.TRAINING_TOKENS]
    again = fill(with_values(plan, given), "extreme")
    assert (again.plan, again.estimate.cost) == (cut.plan, cut.estimate.cost)
