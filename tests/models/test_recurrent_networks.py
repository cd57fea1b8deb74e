"""Recurrent networks: their sizes by the formulas of libraries, and what a longer sequence costs."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, estimate_plan
from capacity_tui.engine.models.networks import LayerList
from capacity_tui.engine.models.networks.specs import RecurrentNetwork
from capacity_tui.engine.plan.files import plan_from_data

D_IN, HIDDEN, STEPS, D_OUT = 100, 256, 32, 10
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


def network(family: str, steps: int = STEPS, depth: int = 2) -> LayerList:
    spec = RecurrentNetwork(d_in=D_IN, state=HIDDEN, depth=depth, steps=steps, d_out=D_OUT)
    return spec.network(load_catalog(), family)


@pytest.mark.parametrize("family", GATES)
def test_parameters_are_those_of_torch(family: str) -> None:
    per_gate = HIDDEN * (D_IN + HIDDEN) + 2 * HIDDEN + HIDDEN * (HIDDEN + HIDDEN) + 2 * HIDDEN
    assert network(family).parameters == GATES[family] * per_gate + D_OUT * (HIDDEN + 1)


@pytest.mark.parametrize("family", GATES)
def test_every_time_step_multiplies_input_and_state(family: str) -> None:
    recurrent = 2 * STEPS * GATES[family] * HIDDEN * ((D_IN + HIDDEN) + (HIDDEN + HIDDEN))
    assert network(family).flops == recurrent + 2 * HIDDEN * D_OUT


def test_backpropagation_through_time_keeps_gates_and_states_of_every_step() -> None:
    kept = network("lstm", depth=1).kept_elements
    assert kept == STEPS * (D_IN + 4 * HIDDEN + 2 * HIDDEN) + HIDDEN
    assert network("lstm", steps=2 * STEPS).parameters == network("lstm").parameters
    assert network("rnn").kept_elements < network("gru").kept_elements < network("lstm").kept_elements


def test_steps_of_a_sequence_run_one_after_another() -> None:
    def estimate(steps: int) -> Estimate:
        model = {"name": "lstm", "spec": {"d_in": D_IN, "hidden": HIDDEN, "steps": steps}}
        training = {"micro_batch": 32, "precision": "bf16"}
        data = {"model": model, "hardware": {"name": "h100"}, "training": training}
        return estimate_plan(plan_from_data(data)).estimate

    short, long = estimate(STEPS), estimate(4 * STEPS)
    assert float(long.computation.step_seconds.value) > 3 * float(short.computation.step_seconds.value)
    assert long.memory.parts["activations"] == pytest.approx(4 * short.memory.parts["activations"], rel=0.02)
    assert long.computation.mfu is not None
    assert long.computation.mfu < 0.05
