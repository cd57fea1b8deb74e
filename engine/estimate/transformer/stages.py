"""How many layers the stages of a pipeline hold: the same number, or the same work with the output head as work."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.estimate.derivation import equation
from capacity_tui.engine.numeric import Number, any_true, where
from capacity_tui.engine.record import dataclass


@dataclass(frozen=True, slots=True)
class Stages:
    """Layers of pipeline stages; all those of the model without a pipeline."""

    first: Number  # of the first stage, beside the embedding
    fullest: Number  # of the stage that has most
    last: Number  # of the last stage, beside the output head


def divided(layers: Number, head: Number, stages: Number, interleave: Number, balanced: Number) -> Stages:
    """Divide the layers of a model over the stages of a pipeline.

    Args:
        layers: layers of the model.
        head: work of the output head, in layers.
        stages: pipeline stages.
        interleave: chunks a stage holds.
        balanced: 1 where stages hold the same work, 0 where they hold the same number of layers.
    """
    chunks = stages * interleave
    fullest = even_layers(layers, chunks, interleave)
    end = where(stages > 2, even_end_layers(layers, stages, fullest), fullest)
    by_work = (np.asarray(balanced) > 0) & (stages > 1)
    if not any_true(by_work):
        return Stages(end, fullest, end)
    most = balanced_layers(layers, head, chunks, interleave)
    last = balanced_last_layers(layers, head, chunks, interleave, most)
    return Stages(where(by_work, most, end), where(by_work, most, fullest), where(by_work, last, end))


@equation(
    "layers = max(ceil(layers / chunks) · interleave, layers / chunks · interleave)",
    unit="layers",
    source="stages with the same number of layers, the last to be filled with fewer",
    layers="layers of the model",
    chunks="chunks of the model over all stages",
    interleave="chunks a stage holds",
)
def even_layers(layers: Number, chunks: Number, interleave: Number) -> Number:
    """Layers of the fullest stage where all hold the same number."""
    chunk_layers = layers / chunks
    return np.maximum(np.ceil(chunk_layers), chunk_layers) * interleave


@equation(
    "layers = clip(ceil(rest / 2), 1, fullest), rest = layers - (stages - 2) · fullest",
    unit="layers",
    source="embedding and head stand where fewer layers do",
    layers="layers of the model",
    stages="pipeline stages",
    fullest=("layers of the fullest stage", "", "even_layers"),
)
def even_end_layers(layers: Number, stages: Number, fullest: Number) -> Number:
    """Layers of the first and of the last stage where all hold the same number: what the others leave."""
    return np.clip(np.ceil((layers - (stages - 2.0) * fullest) / 2.0), 1.0, fullest)


@equation(
    "head = vocab · hidden / layer_parameters",
    unit="layers",
    source="partitioners weigh blocks by parameters or FLOPs, the head as vocabulary by width",
    vocab="entries of the vocabulary",
    hidden="width of the model",
    layer_parameters="parameters a token passes in the mean layer",
)
def head_in_layers(vocab: Number, hidden: Number, layer_parameters: Number) -> Number:
    """Work of the output head, in layers."""
    return vocab * hidden / layer_parameters


@equation(
    "layers = min(ceil((layers + head) / chunks) · interleave, layers)",
    unit="layers",
    source="a stage is closed by the block with which its share of all work is reached",
    layers="layers of the model",
    head=("work of the output head, in layers", "", "head_in_layers"),
    chunks="chunks of the model over all stages",
    interleave="chunks a stage holds",
)
def balanced_layers(layers: Number, head: Number, chunks: Number, interleave: Number) -> Number:
    """Layers of the fullest stage where all hold the same work."""
    return np.minimum(np.ceil((layers + head) / chunks) * interleave, layers)


@equation(
    "layers = fullest · (interleave - 1) / interleave + max(0, layers - ceil((layers + head) · (chunks - 1) / chunks))",
    unit="layers",
    source="what the chunks before it leave, beside the output head",
    layers="layers of the model",
    head=("work of the output head, in layers", "", "head_in_layers"),
    chunks="chunks of the model over all stages",
    interleave="chunks a stage holds",
    fullest=("layers of the fullest stage", "", "balanced_layers"),
)
def balanced_last_layers(layers: Number, head: Number, chunks: Number, interleave: Number, fullest: Number) -> Number:
    """Layers of the last stage where all hold the same work."""
    left = np.maximum(0.0, layers - np.ceil((layers + head) * (chunks - 1.0) / chunks))
    return fullest * (interleave - 1.0) / interleave + left
