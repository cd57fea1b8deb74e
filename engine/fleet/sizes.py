"""What the weights of a model of some size take in each precision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capacity_tui.engine.catalog import Catalog, ModelSize, Precision
from capacity_tui.engine.estimate import equation
from capacity_tui.engine.numeric import Number
from capacity_tui.engine.units import GIGA


@dataclass(frozen=True)
class SizeInPrecision:
    """The weights of one model size in one precision.

    Attributes:
        size: row of the size.
        precision: row of the precision.
        weights_bytes: what the weights take, alone.
    """

    size: ModelSize
    precision: Precision
    weights_bytes: float

    @property
    def weights_gb(self) -> float:
        """The same in billions of bytes, the unit in which devices' memory is marketed."""
        return self.weights_bytes / GIGA


@equation(
    "parameters · each",
    unit="B",
    source="every parameter stored alike; scales of quantized formats left out",
    units={"each": "B"},
)
def weights_bytes(parameters: Number, each: Number) -> Number:
    """Bytes of a model's weights in one format, alone.

    Args:
        parameters: count of parameters.
        each: bytes of one number.
    """
    return parameters * each


def sizes_in_precisions(
    catalog: Catalog, precisions: Iterable[str] = (), sizes: Iterable[str] = ()
) -> tuple[SizeInPrecision, ...]:
    """Return every size in every precision, in the order of both.

    Args:
        catalog: whose sizes and precisions.
        precisions: names of precisions; all where none is named.
        sizes: names of sizes; all where none is named.

    Raises:
        CatalogError: nothing is called that.
    """
    rows = [catalog.precisions.find(name) for name in precisions or catalog.precisions]
    return tuple(
        SizeInPrecision(size, row, float(weights_bytes(size.parameter_count_billion * GIGA, row.compute_bytes)))
        for size in (catalog.model_sizes.find(name) for name in sizes or catalog.model_sizes)
        for row in rows
    )
