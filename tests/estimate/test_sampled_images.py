"""Images of a diffusion model: as many passes of the network as its sampler makes of each."""

from __future__ import annotations

import numpy as np
import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.estimate import Estimate, figure
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.models.networks import network_spec_type
from capacity_tui.engine.plan.line import read_line
from capacity_tui.engine.solve import answer, plan_of_line
from capacity_tui.engine.verdict import Verdict


def served(line: str) -> Estimate:
    return answer(plan_of_line(read_line(line)).plan).estimate


def seconds(line: str) -> float:
    return float(np.max(served(line).computation.step_seconds.value))


def reserved(line: str) -> float:
    return float(np.max(served(line).memory.reserved_bytes.value)) / 2**30


def test_an_image_takes_the_steps_and_the_guidance_of_its_sampler() -> None:
    one, three, usual, many = (
        seconds(f"serve stable-diffusion-1 rtx-4090 model.spec.sampler_steps={steps} model.spec.guidance={guidance}")
        for steps, guidance in ((1, 1), (3, 1), (25, 2), (50, 2))
    )
    once = one - (three - one) / 2  # what reads the text and decodes the picture
    # 25 steps of a batch of two; people report 1.5 to 2.5 images a second on this card.
    assert 0 < once < one
    assert 25 < (usual - once) / (one - once) <= 50.5
    assert many - usual == pytest.approx(usual - once, rel=0.02)
    assert 1.0 < 1.0 / usual < 3.0
    assert usual == seconds("serve stable-diffusion-1 rtx-4090")


def test_passes_of_an_image_are_those_of_its_model() -> None:
    dev, schnell, large = (
        served(f"serve {name} h100") for name in ("flux.1-dev", "flux.1-schnell", "stable-diffusion-3.5-large")
    )
    assert float(dev.model.forward_flops) == 28 * 74_384_653_418_496
    assert float(schnell.model.forward_flops) == 4 * 69_466_626_981_888
    assert float(large.model.forward_flops) == 2 * 28 * 31_121_114_907_648


def test_what_reads_the_text_is_in_memory_unless_it_waits_on_the_host() -> None:
    """FLUX.1 is 22.2 GiB in 16 bits, T5-XXL 8.9 GiB, CLIP and the decoder 0.3 GiB."""
    beside = reserved("serve flux.1-dev h100")
    waiting = reserved("serve flux.1-dev h100 model.spec.idle_parts=host")
    assert 31.4 < beside < 37.0
    assert 22.2 < waiting < 26.0
    assert reserved("serve flux.1-dev h100 fp8 model.spec.idle_parts=host") < 14.0
    # Of a network in 4 bits the reader is the larger part.
    assert reserved("serve flux.1-dev h100 nf4 model.spec.idle_parts=host") > 8.9
    copied = seconds("serve flux.1-dev h100 model.spec.idle_parts=host") - seconds("serve flux.1-dev h100")
    assert 0.5 < copied < 5.0
    # Nothing can wait elsewhere where the device has the host's memory.
    shared = "serve flux.1-dev m3-max"
    assert reserved(shared) == reserved(f"{shared} model.spec.idle_parts=host")


def test_weights_that_are_unpacked_make_no_picture_sooner() -> None:
    plain, packed, narrow = (seconds(f"serve flux.1-dev h100 {name}") for name in ("bf16", "nf4", "fp8"))
    assert plain < packed < 1.2 * plain
    assert seconds("serve flux.1-dev h100 int8") > plain
    assert narrow < plain


def test_a_base_in_four_bits_leaves_room_for_adapters_on_a_card_of_24_gib() -> None:
    plain, packed = (f"flux dev {method} 3090 training.global_batch=1 1000 steps" for method in ("lora", "qlora"))
    assert reserved(plain) > 24.0
    assert reserved(packed) < 12.0
    assert seconds(packed) > seconds(plain)


def test_a_load_of_pictures_needs_devices_that_make_as_many() -> None:
    one, two = (served(f"flux 20000 images per day on {count}x h100") for count in (1, 2))
    assert one.verdict is Verdict.MISSES_LIMIT
    assert "load served" in one.verdict_text
    assert two.verdict in (Verdict.FITS, Verdict.TIGHT)


def test_the_sampler_is_told_among_what_was_assumed() -> None:
    found = {entry.key: entry.value for entry in served("serve stable-diffusion-1 rtx-4090").assumed}
    assert (found["model.spec.sampler_steps"], found["model.spec.guidance"]) == (25, 2)
    given = served("serve stable-diffusion-1 rtx-4090 model.spec.sampler_steps=30").assumed
    assert "model.spec.sampler_steps" not in [entry.key for entry in given]


def test_training_is_of_one_pass_of_texts_and_latents_made_before() -> None:
    trained = served("train stable-diffusion-1 8xh100")
    passed = served("serve stable-diffusion-1 8xh100 model.spec.sampler_steps=1 model.spec.guidance=1")
    assert float(trained.model.forward_flops) == pytest.approx(float(passed.model.forward_flops))
    assert any("texts and latents" in note for note in trained.basis.assumed)


def test_a_picture_model_fits_a_small_card_with_packed_weights_and_idle_parts_on_the_host() -> None:
    notes = served("serve sd 3.5 large on an rtx 3060 12gb").warnings
    fits = next(note.detail for note in notes if note.code == "does_not_fit")
    assert "It fits with inference.weights=nf4, model.spec.idle_parts=host" in fits


def test_a_fixed_table_of_positions_is_stored_but_not_trained() -> None:
    """stable-diffusion-3.5-medium has 384 x 384 positions of 1536 numbers, 0.42 GiB in 16 bits."""
    table = 384**2 * 1536
    trained = network_spec_type("stable-diffusion-3.5-medium")(image_size=1024).network(
        load_catalog(), "stable-diffusion-3.5-medium"
    )
    assert trained.parameters - trained.trained_parameters == table
    assert trained.trained_parameters == 2_243_171_520


def test_a_decoder_that_overflows_in_fp16_runs_in_four_bytes() -> None:
    """Two tensors of 256 channels at 1024 pixels a side take 1 GiB in 16 bits, 2 GiB in 32."""
    one = served("serve sdxl rtx-4090")
    assert np.max(one.memory.parts["activations"]) == pytest.approx(2 * 2**30, rel=0.01)
    other = served("serve stable-diffusion-1 rtx-4090 model.spec.image_size=1024")
    assert np.max(other.memory.parts["activations"]) == pytest.approx(2**30, rel=0.01)


def test_speed_is_of_pictures_wherever_it_is_shown() -> None:
    estimate = served("serve sdxl rtx-4090")
    for key in (Figure.TOKENS_PER_SECOND, Figure.SAMPLES_PER_SECOND):
        assert figure(estimate, key).text == "0.24 images/s"


def test_adapters_of_pictures_are_trained_with_one_in_a_step_unless_a_line_says_more() -> None:
    one, four = (seconds(f"flux dev qlora rtx-3090 25 pics 2000 steps {batch}") for batch in ("", "batch 4"))
    assert one == pytest.approx(seconds("flux dev qlora rtx-3090 25 pics 2000 steps batch 1"))
    assert 2.5 < four / one < 4.5
