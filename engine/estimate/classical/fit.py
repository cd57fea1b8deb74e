"""One fit of a classical model: its size, its memory and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capacity_tui.engine.estimate.equation import equation
from capacity_tui.engine.estimate.work import Operator
from capacity_tui.engine.keys import Figure
from capacity_tui.engine.models.classical import ClassicalSpec
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import FP32_BYTES

# A sparse row keeps the column of each value, and where the row begins.
INDEX_BYTES = FP32_BYTES


@dataclass(frozen=True, slots=True)
class Fit:
    """What an algorithm says about one fit.

    Attributes:
        parameters: numbers the fitted model keeps.
        inference_flops: FLOPs to predict one sample.
        operators: kernels of the fit.
        memory: bytes at the peak, by part: data, copies, work, model.
        peak: where memory peaks, in words.
    """

    parameters: Number
    inference_flops: Number
    operators: tuple[Operator, ...]
    memory: Mapping[str, Number]
    peak: str


@equation(
    "data = n · p · element_bytes if density = 1 else n · p · density · (element_bytes + 4) + 4 · n",
    unit="B",
    source="contiguous array; compressed sparse rows with 32-bit indices",
    units={"element_bytes": "B"},
)
def table_bytes(n: Number, p: Number, density: Number, element_bytes: Number) -> Number:
    """Bytes of the training table.

    Args:
        n: rows.
        p: features.
        density: share of the values that are not zero.
        element_bytes: bytes of a number.
    """
    if density >= 1.0:
        return n * p * element_bytes
    return n * p * density * (element_bytes + INDEX_BYTES) + n * INDEX_BYTES


@equation(
    "{addends}",
    unit="B",
    source="arrays the usual library holds at the peak of a fit",
    origins={"centred table": "table_bytes", "copy of the table": "table_bytes", "table": "table_bytes"},
)
def held_bytes(**addends: Number) -> Number:
    """Bytes of what is held side by side."""
    return sum(addends.values(), start=0.0)


@equation("{addends}", unit="", source="numbers the fitted model keeps", part=Figure.MODEL_PARAMETERS)
def kept_numbers(**addends: Number) -> Number:
    """Numbers a fitted model keeps."""
    return sum(addends.values(), start=0.0)


@equation("{addends}", unit="FLOP", source="operations to predict one sample", part=Figure.MODEL_FORWARD_FLOPS)
def prediction_flops(**addends: Number) -> Number:
    """FLOPs to predict one sample."""
    return sum(addends.values(), start=0.0)


def memory_parts(**parts: Mapping[str, Number]) -> dict[str, Number]:
    """Return bytes by part from the bytes of what each part is made of."""
    return {part: held_bytes.for_part(f"memory.parts.{part}")(**addends) for part, addends in parts.items()}


def data_bytes(spec: ClassicalSpec, element_bytes: Number) -> Number:
    """Bytes of the training table of a plan; the smaller of its dense and its sparse form."""
    dense = table_bytes(spec.n, spec.p, 1.0, element_bytes)
    return dense if spec.density >= 1.0 else min(dense, table_bytes(spec.n, spec.p, spec.density, element_bytes))
