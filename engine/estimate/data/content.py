"""What the data of a training are made of, whatever form they are stored in."""

from __future__ import annotations

from dataclasses import dataclass

from capacity_tui.engine.catalog.rows import Holds
from capacity_tui.engine.models.networks import LayerList, NetworkSpec
from capacity_tui.engine.models.transformer import TransformerShape
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.plan import Plan

IMAGE_SIZES = frozenset({"image_size", "image_h"})
"""Parameters that networks over images have."""


@dataclass(frozen=True, slots=True)
class Content:
    """The units of some data.

    Attributes:
        holds: tokens of text, images, or samples of features.
        numbers: numbers of one sample; of tokens, entries of their vocabulary.
        units_per_sample: tokens that the model makes of a sample; 1 where samples are counted.
    """

    holds: Holds
    numbers: Number
    units_per_sample: Number = 1.0


def transformer_content(plan: Plan, shape: TransformerShape) -> Content:
    """Return what a transformer reads: tokens of text, or images in patches."""
    length = float(plan.training.seq_len)
    if shape.vision is None:
        return Content("tokens", shape.vocab, length)
    return Content("images", shape.vision.channels * shape.vision.image**2, length)


def network_content(spec: NetworkSpec, network: LayerList) -> Content:
    """Return what a network of layers reads: images, or samples of features."""
    return Content("images" if is_of_images(spec) else "features", float(network.input.elements))


def is_of_images(spec: NetworkSpec) -> bool:
    """Whether a network reads images."""
    return bool(IMAGE_SIZES & type(spec).model_fields.keys())
