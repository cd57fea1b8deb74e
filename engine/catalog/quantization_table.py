"""The table of quantizations, which also finds formats that are named by their average bits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path

from capacity_tui.engine.catalog.names import key_of
from capacity_tui.engine.catalog.rows.numerics import Quantization
from capacity_tui.engine.catalog.table import Table

_ANY_BITS = re.compile(r"exl2(\d(?:\.\d+)?)(?:bpw)?")
_EXL2_RANGE = (2.0, 8.0)


class QuantizationTable(Table[Quantization]):
    """Storage formats by id, and EXL2 at any average: ``exl2-4.0``."""

    def __init__(self, shipped: Sequence[Traversable], own: Sequence[Path], aliases: Mapping[str, str]) -> None:
        super().__init__("quantization", Quantization, shipped, own, aliases)

    def find(self, name: str) -> Quantization:
        """Return the row of an id, an alias or a maker's name, or EXL2 with the bits named.

        Raises:
            CatalogError: nothing is called that; the hint names the nearest known ids.
        """
        match = _ANY_BITS.fullmatch(key_of(name))
        bits = float(match[1]) if match else 0.0
        if name in self or not _EXL2_RANGE[0] <= bits <= _EXL2_RANGE[1]:
            return super().find(name)
        return self["exl2"].model_copy(
            update={
                "id": f"exl2-{bits}",
                "name": f"EXL2 {bits} bit",
                "bits_per_weight": bits,
                "body_bits": bits,
            }
        )
