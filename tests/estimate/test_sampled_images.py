"""Images of a diffusion model: as many passes of the network as its sampler makes of each."""

from __future__ import annotations

import pytest

from capacity_tui.engine.estimate import Estimate
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line


def served(line: str) -> Estimate:
    return answer(plan_of_line(read_line(line)).plan).estimate


def test_an_image_takes_the_steps_and_the_guidance_of_its_sampler() -> None:
    one = served("serve stable-diffusion-1 rtx-4090 model.spec.sampler_steps=1 model.spec.guidance=1")
    usual = served("serve stable-diffusion-1 rtx-4090")
    many = served("serve stable-diffusion-1 rtx-4090 model.spec.sampler_steps=50")
    seconds = [float(found.computation.step_seconds.value) for found in (one, usual, many)]
    # 25 steps of a batch of two; people report 1.5 to 2.5 images a second on this card.
    assert 25 < seconds[1] / seconds[0] <= 50.5
    assert seconds[2] == pytest.approx(2 * seconds[1], rel=0.01)
    assert 1.0 < 1.0 / seconds[1] < 3.0
    assert float(usual.model.forward_flops) == pytest.approx(50 * float(one.model.forward_flops))


def test_the_sampler_is_told_among_what_was_assumed() -> None:
    found = {entry.key: entry.value for entry in served("serve stable-diffusion-1 rtx-4090").assumed}
    assert (found["model.spec.sampler_steps"], found["model.spec.guidance"]) == (25, 2)
    given = served("serve stable-diffusion-1 rtx-4090 model.spec.sampler_steps=30").assumed
    assert "model.spec.sampler_steps" not in [entry.key for entry in given]


def test_training_is_of_one_pass() -> None:
    trained = served("train stable-diffusion-1 8xh100")
    passed = served("serve stable-diffusion-1 8xh100 model.spec.sampler_steps=1 model.spec.guidance=1")
    assert float(trained.model.forward_flops) == pytest.approx(float(passed.model.forward_flops))
