"""Transformers that make pictures from texts, against counts of diffusers and against work counted by hand."""

from __future__ import annotations

import pytest

from capacity_tui.engine.catalog import load_catalog
from capacity_tui.engine.errors import PlanError
from capacity_tui.engine.models.networks import LayerList, Surroundings, adapter_parameters, network_spec_type
from capacity_tui.engine.models.networks.blocks import Shape
from capacity_tui.engine.models.networks.reading import build_network


def made(name: str, image_size: int = 1024) -> LayerList:
    return network_spec_type(name)(image_size=image_size).network(load_catalog(), name)


def around(name: str, image_size: int = 1024) -> Surroundings:
    return network_spec_type(name)(image_size=image_size).surroundings(load_catalog(), name)


def attended(network: LayerList) -> list[tuple[int, int]]:
    return sorted({(layer.positions, layer.depth) for layer in network.layers if layer.kind == "attention"})


def test_a_pass_of_flux_is_what_one_counts_by_hand() -> None:
    width, picture, text = 3072, 64 * 64, 512
    both = picture + text
    block = 12 * width**2  # queries, keys, values and output, and a feed-forward of four widths
    attention = 2 * both * width  # scores, and values weighted with them, of a position
    blocks = (19 + 38) * both * (block + attention)
    ends = picture * 2 * 64 * width + text * 4096 * width
    signals = 3 * width**2 + (2 * 256 + 768) * width + (2 * 19 * 6 + 38 * 3 + 2) * width**2
    assert made("flux.1-dev").flops == 2 * (blocks + ends + signals)


def test_tokens_are_patches_of_sixteen_pixels_and_those_of_the_text() -> None:
    assert attended(made("flux.1-dev")) == [(4096 + 512, 4096 + 512)]
    assert attended(made("flux.1-schnell", 512)) == [(1024 + 256, 1024 + 256)]
    assert attended(made("stable-diffusion-3.5-large")) == [(4096 + 333, 4096 + 333)]
    # The picture attends to itself once more in some blocks.
    assert attended(made("stable-diffusion-3.5-medium")) == [(4096, 4096), (4096 + 333, 4096 + 333)]
    assert attended(made("qwen-image", 1328)) == [(83 * 83 + 512, 83 * 83 + 512)]


def test_work_grows_with_the_picture_and_parameters_do_not() -> None:
    small, usual, large = (made("flux.1-dev", size) for size in (512, 1024, 2048))
    assert small.parameters == usual.parameters == large.parameters
    # Four times the patches beside a text that stays as long; attention grows with their square.
    assert small.flops == 21_502_600_151_040
    assert 4.0 < large.flops / usual.flops < 8.0


def test_readers_and_decoders_have_the_counts_of_their_configurations() -> None:
    flux, stable = around("flux.1-dev"), around("stable-diffusion-3.5-large")
    assert [reader.parameters for reader in flux.readers] == [123_060_480, 4_762_310_656]
    assert [reader.parameters for reader in stable.readers] == [123_650_304, 694_659_840, 4_762_310_656]
    assert [reader.parameters for reader in around("stable-diffusion-2").readers] == [340_387_840]
    assert [reader.parameters for reader in around("qwen-image").readers] == [8_292_166_656]
    assert flux.readers[1].flops == 4_844_723_109_888
    assert [(decoder.parameters, decoder.flops) for decoder in flux.decoder] == [(49_545_475, 10_472_204_009_472)]
    assert around("stable-diffusion-xl").decoder[0].flops == 10_470_392_070_144
    assert flux.decoder[0].layers[-1].output == Shape(3, 1024, 1024)


def test_adapters_stand_beside_the_attention_of_both_streams() -> None:
    """Queries, keys, values and outputs of each stream in 19 blocks; those of joined streams have no output alone."""
    rank, width = 16, 3072
    assert adapter_parameters(made("flux.1-dev"), rank) == rank * 2 * width * (19 * 2 * 4 + 38 * 3)
    twice = 24 * 4 + 23 * 4 + 3 + 13 * 4
    assert adapter_parameters(made("stable-diffusion-3.5-medium"), rank) == rank * 2 * 1536 * twice


def test_streams_of_unlike_widths_are_refused() -> None:
    layers = [{"conv": 8}, {"save": "picture"}, {"text": {"tokens": 4, "width": 16}}, {"join": "picture"}]
    with pytest.raises(PlanError, match="unlike widths"):
        build_network(layers, Shape(3, 8, 8), 10)
