"""Seconds in which the data of one step arrive: read from where they lie, decoded by processor cores."""

from __future__ import annotations

import numpy as np

from capacity_tui.engine.catalog import counted
from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.numeric import Number

SHORT_VOCABULARY = counted("short-vocabulary")


@equation(
    "size = 2 if vocabulary <= 65536 else 4",
    unit="B",
    source="indexed data sets keep a token in the shortest whole number that its vocabulary needs",
)
def token_bytes(vocabulary: Number) -> Number:
    """Bytes of the number of a token on disk.

    Args:
        vocabulary: entries of the vocabulary.
    """
    return np.where(np.less_equal(vocabulary, SHORT_VOCABULARY), 2.0, 2.0 * 2.0)


@equation(
    "mean = epochs / (1 / first + (epochs - 1) / later)",
    unit="B/s",
    source="the first pass reads from the source, the others from the cache",
    units={"first": "B", "later": "B"},
)
def mean_bandwidth(epochs: Number, first: Number, later: Number) -> Number:
    """Bytes a second that a node reads, the mean over all passes through the data.

    Args:
        epochs: passes, one at least.
        first: bytes a second of the source, B/s.
        later: bytes a second of the cache, B/s.
    """
    return epochs / (1.0 / first + (epochs - 1.0) / later)


@equation(
    "seconds = units · size / (nodes · bandwidth)",
    unit="s",
    source="every node reads its share of the step",
    units={"bandwidth": "B"},
    origins={"size": "token_bytes", "bandwidth": "mean_bandwidth"},
)
def read_seconds(units: Number, size: Number, nodes: Number, bandwidth: Number) -> Number:
    """Seconds in which the data of a step are read.

    Args:
        units: tokens or samples of a step.
        size: stored bytes of one, B.
        nodes: nodes that read side by side.
        bandwidth: bytes a second that one reads, B/s.
    """
    return units * size / (nodes * bandwidth)


@equation(
    "seconds = units / (devices · max(workers, 1) · rate)",
    unit="s",
    source="worker processes decode side by side, one to a core; without any the training process does",
)
def decode_seconds(units: Number, devices: Number, workers: Number, rate: Number) -> Number:
    """Seconds in which the data of a step are decoded.

    Args:
        units: tokens or samples of a step.
        devices: devices whose workers share the step.
        workers: worker processes for each device.
        rate: tokens or samples a second that one core decodes.
    """
    return units / (devices * np.maximum(workers, 1.0) * rate)


@equation(
    "seconds = max(reading, decoding) if workers > 0 else reading + decoding",
    unit="s",
    source="workers read ahead while others decode; without any one follows the other",
    units={"reading": "s", "decoding": "s"},
    origins={"reading": "read_seconds", "decoding": "decode_seconds"},
)
def arrival_seconds(reading: Number, decoding: Number, workers: Number) -> Number:
    """Seconds in which the data of a step arrive at the devices.

    Args:
        reading: seconds in which they are read.
        decoding: seconds in which they are decoded.
        workers: worker processes for each device.
    """
    return np.where(np.greater(workers, 0.0), np.maximum(reading, decoding), reading + decoding)


@equation(
    "waiting = max(arriving - hidden · working, 0)",
    unit="s",
    source="batches that workers prefetch arrive while devices work; what takes longer, devices wait for",
    part=Figure.INPUT,
    units={"arriving": "s", "working": "s"},
    origins={"arriving": "arrival_seconds"},
)
def input_seconds(arriving: Number, hidden: Number, working: Number) -> Number:
    """Seconds of a step in which the devices wait for data.

    Args:
        arriving: seconds in which the data of the step arrive.
        hidden: 1 where they arrive beside the work of the step before, else 0.
        working: seconds of the step without waiting for data.
    """
    return np.maximum(arriving - hidden * working, 0.0)
